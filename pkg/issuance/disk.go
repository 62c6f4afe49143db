package issuance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/renameio/v2"

	"github.com/certhook/certhook/pkg/fault"
)

// makeDir makes the root and folders below it, mode 0700, and returns the last. What is there already must be a folder
// of this user that nobody else writes to, and no symbolic link.
func (i *Issuer) makeDir(below ...string) (string, error) {
	dir := i.Root
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", unusable(err, dir)
	}
	for n := 0; ; n++ {
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", unusable(err, dir)
		}
		info, err := os.Lstat(dir)
		if err == nil {
			err = ours(info)
		}
		if err != nil {
			return "", unusable(err, dir)
		}
		if n == len(below) {
			return dir, nil
		}
		dir = filepath.Join(dir, below[n])
	}
}

func ours(info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return errors.New("it is not a directory (symbolic links are not followed)")
	case ok && int(st.Uid) != os.Geteuid():
		return fmt.Errorf("it belongs to user %d, not to %d who runs this", st.Uid, os.Geteuid())
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("it may be written by others (mode %04o)", info.Mode().Perm())
	}
	return nil
}

func unusable(err error, dir string) error {
	return fault.Errorf(fault.Usage, "use the directory %q: %w", dir, err).
		WithHint("it must be a directory of the user that runs this, mode 0700; CERTHOOK_STATE_DIR names another")
}

// replace writes a file as a whole and returns once it is on disk, the directory entry included.
func replace(path string, content []byte) error {
	// Not by way of $TMPDIR, which may be full or open to others.
	err := renameio.WriteFile(path, content, 0o600, renameio.WithStaticPermissions(0o600), renameio.WithTempDir(filepath.Dir(path)))
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		return fault.Errorf(fault.Usage, "write %q: %w", path, err)
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// lock keeps every other persist-issue out until release. It waits until the deadline at most.
func (i *Issuer) lock(ctx context.Context, deadline time.Time) (release func(), err error) {
	dir, err := i.makeDir()
	if err != nil {
		return nil, err
	}
	l := flock.New(filepath.Join(dir, "persist-issue.lock"), flock.SetPermissions(0o600))
	taken := await(ctx, deadline, func(context.Context) bool {
		var got bool
		got, err = l.TryLock()
		return got || err != nil
	})
	switch {
	case err != nil:
		return nil, fault.Errorf(fault.Usage, "lock %q: %w", l.Path(), err)
	case !taken && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case !taken:
		return nil, fault.Errorf(fault.Other, "another persist-issue is at work, and holds %q", l.Path()).WithHint("run this again when it has ended")
	}
	return func() { _ = l.Close() }, nil
}

// Package journal keeps the challenge records in flight on disk, so that a kill at any instant leaves a
// trace from which the next hook run can clean up. Each run of certbot has one file, replaced as a whole
// and synced before a call to the provider, and one lock.
package journal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/renameio/v2"

	"github.com/certhook/certhook/pkg/certbot"
	"github.com/certhook/certhook/pkg/fault"
)

const (
	version = 1
	maxSize = 1 << 20 // bytes: 100 names take about 50 kB

	suffix     = ".json"
	lockSuffix = ".lock"
)

// Store is the journal of this host.
type Store struct {
	dir string
}

// Open returns the journal below the state directory and makes both (mode 0700) where they are missing.
// A directory that is a symbolic link, belongs to another user or lets others write is refused. Errors
// are of kind fault.Usage.
func Open(stateDir string) (*Store, error) {
	dir := filepath.Join(stateDir, "journal")
	if err := os.MkdirAll(filepath.Dir(stateDir), 0o755); err != nil {
		return nil, unusable(err, stateDir)
	}
	for _, d := range []string{stateDir, dir} {
		if err := os.Mkdir(d, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, unusable(err, stateDir)
		}
		info, err := os.Lstat(d)
		if err != nil {
			return nil, unusable(err, stateDir)
		}
		if !info.IsDir() {
			return nil, unusable(fmt.Errorf("%q is not a directory (symbolic links are not followed)", d), stateDir)
		}
		if err := ours(d, info); err != nil {
			return nil, unusable(err, stateDir)
		}
	}
	return &Store{dir: dir}, nil
}

func unusable(err error, stateDir string) error {
	return fault.Errorf(fault.Usage, "use the state directory %q: %w", stateDir, err).
		WithHint("it must be a directory of the user that runs certbot, mode 0700; CERTHOOK_STATE_DIR names another")
}

// ours refuses what another user could have put there.
func ours(path string, info fs.FileInfo) error {
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%q belongs to user %d, not to %d who runs this", path, st.Uid, os.Geteuid())
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%q may be written by others (mode %04o)", path, info.Mode().Perm())
	}
	return nil
}

// ID names one file of the journal.
type ID string

// RunID is the file of a run of certbot.
func RunID(r certbot.Run) ID {
	return digest("run", fmt.Sprint(r.PID), fmt.Sprint(r.Start), r.Boot, r.PIDNS)
}

const single = "call-"

// ValueID is the file of one record that belongs to no order.
func ValueID(name, value string) ID {
	return single + digest("value", name, value)
}

// Single reports whether id is a ValueID.
func (id ID) Single() bool { return strings.HasPrefix(string(id), single) }

func digest(parts ...string) ID {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return ID(hex.EncodeToString(sum[:12]))
}

// IDs lists the files there are, and the locks that an hour ago nobody had made a file for.
func (s *Store) IDs() ([]ID, error) {
	files, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fault.Errorf(fault.Usage, "list the journal: %w", err)
	}
	var ids []ID
	seen := make(map[string]bool)
	for _, f := range files {
		if name, ok := strings.CutSuffix(f.Name(), suffix); ok {
			seen[name] = true
			ids = append(ids, ID(name))
		}
	}
	for _, f := range files {
		name, ok := strings.CutSuffix(f.Name(), lockSuffix)
		if info, err := f.Info(); ok && !seen[name] && err == nil && time.Since(info.ModTime()) > time.Hour {
			ids = append(ids, ID(name))
		}
	}
	return ids, nil
}

// File is one locked file of the journal. Nobody else reads or writes it until Close.
type File struct {
	Record
	path string
	lock *flock.Flock
}

// Path names the file for messages.
func (f *File) Path() string { return f.path }

// ErrBusy means that another process holds the lock.
var ErrBusy = errors.New("another hook is working on it")

// Lock waits for the file's lock until ctx ends and reads the file. One that does not exist yet is an
// empty Record. Content that is not wholly understood is an error: nothing of it may be acted upon.
func (s *Store) Lock(ctx context.Context, id ID) (*File, error) {
	return s.lock(ctx, id, func(l *flock.Flock) error {
		const poll = 20 * time.Millisecond
		_, err := l.TryLockContext(ctx, poll)
		return err
	})
}

// TryLock is Lock without the wait; the error is ErrBusy when somebody else holds the lock.
func (s *Store) TryLock(id ID) (*File, error) {
	return s.lock(context.Background(), id, func(l *flock.Flock) error {
		ok, err := l.TryLock()
		if err == nil && !ok {
			err = ErrBusy
		}
		return err
	})
}

// Peek reads a file without its lock: files are replaced as a whole, so it sees one state or the next.
func (s *Store) Peek(id ID) (Record, error) {
	f := &File{path: filepath.Join(s.dir, string(id)+suffix)}
	err := f.read()
	return f.Record, err
}

const diskHint = "no record is added without the journal; CERTHOOK_STATE_DIR must be on a writable disk with room"

func (s *Store) lock(ctx context.Context, id ID, take func(*flock.Flock) error) (*File, error) {
	f := &File{path: filepath.Join(s.dir, string(id)+suffix)}
	// O_NOFOLLOW: the lock file is made by us, never found through a link.
	f.lock = flock.New(filepath.Join(s.dir, string(id)+lockSuffix),
		flock.SetFlag(os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW), flock.SetPermissions(0o600))
	err := take(f.lock)
	switch {
	case errors.Is(err, ErrBusy):
	case err != nil && ctx.Err() != nil:
		err = fault.Errorf(fault.Other, "wait for the lock of %q: %w", f.path, err)
	case err != nil:
		err = fault.Errorf(fault.Usage, "lock %q: %w", f.path, err).WithHint(diskHint)
	default:
		err = f.read()
	}
	if err != nil {
		f.lock.Close()
		return nil, err
	}
	return f, nil
}

func (f *File) read() error {
	f.Record = Record{Version: version}
	info, err := os.Lstat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return f.damaged(err)
	case !info.Mode().IsRegular():
		return f.damaged(errors.New("it is not a regular file"))
	case info.Size() > maxSize:
		return f.damaged(fmt.Errorf("it has %d bytes", info.Size()))
	}
	if err := ours(f.path, info); err != nil {
		return f.damaged(err)
	}
	raw, err := os.ReadFile(f.path)
	if err != nil {
		return f.damaged(err)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&f.Record); err != nil {
		return f.damaged(err)
	}
	if dec.More() {
		return f.damaged(errors.New("something follows the end"))
	}
	if f.Version != version {
		return f.damaged(fmt.Errorf("its format is version %d, this program reads %d", f.Version, version))
	}
	for i, e := range f.Entries {
		if e == nil || !slices.Contains(states, e.State) {
			return f.damaged(fmt.Errorf("entry %d has no state that is known", i))
		}
	}
	return nil
}

func (f *File) damaged(err error) error {
	return fault.Errorf(fault.Usage, "read the journal file %q: %w", f.path, err).
		WithHint("nothing in it was acted upon; look at it, remove the records that it names by hand if they exist, then delete it")
}

// Save replaces the file and returns once it is on disk, the directory entry included.
func (f *File) Save() error {
	raw, err := json.MarshalIndent(f.Record, "", "  ")
	if err == nil {
		// Not by way of $TMPDIR, which may be full or open to others.
		err = renameio.WriteFile(f.path, append(raw, '\n'), 0o600, renameio.IgnoreUmask(), renameio.WithTempDir(filepath.Dir(f.path)))
	}
	if err == nil {
		err = syncDir(filepath.Dir(f.path))
	}
	if err != nil {
		return fault.Errorf(fault.Usage, "write the journal file %q: %w", f.path, err).
			WithHint(diskHint)
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

// Delete removes the file, what writers of it left that were killed, and its lock; only Close may follow. It
// is for a run that is dead, or a record that is gone: a late-comer that still waits for the removed lock
// finds its certbot dead and writes nothing.
func (f *File) Delete() error {
	paths := []string{f.path}
	dir, name := filepath.Split(f.path)
	all, err := os.ReadDir(dir)
	for _, other := range all {
		if strings.HasPrefix(other.Name(), "."+name) { // as renameio names what is to become the file
			paths = append(paths, dir+other.Name())
		}
	}
	for _, path := range append(paths, f.lock.Path()) {
		if removeErr := os.Remove(path); removeErr != nil && !errors.Is(removeErr, fs.ErrNotExist) {
			err = removeErr
		}
	}
	if err != nil {
		return fault.Errorf(fault.Usage, "delete from the journal: %w", err)
	}
	return nil
}

// Close releases the lock.
func (f *File) Close() { f.lock.Close() }

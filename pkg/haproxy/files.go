package haproxy

import (
	"errors"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/certhook/certhook/pkg/fault"
)

// staged is a new file beside the one that it is to replace. HAProxy loads everything in the folder but dotfiles.
type staged struct {
	file, temp string
}

// stage writes a file's new content to disk under a name that HAProxy passes over.
func (a *Applier) stage(file string, content []byte) (*staged, error) {
	mode, gid, err := a.access()
	if err != nil {
		return nil, err
	}
	return stageAs(file, content, mode, -1, gid)
}

// stageAs is stage with a mode and owners, -1 for ours.
func stageAs(file string, content []byte, mode os.FileMode, uid, gid int) (*staged, error) {
	s := &staged{file: file, temp: filepath.Join(filepath.Dir(file), "."+filepath.Base(file)+".tmp")}
	// One that a killed run has left is in the way of nobody: the lock is ours.
	if err := os.Remove(s.temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, unwritable(file, err)
	}
	f, err := os.OpenFile(s.temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, unwritable(file, err)
	}
	_, err = f.Write(content)
	if err == nil && (uid >= 0 || gid >= 0) {
		err = f.Chown(uid, gid)
	}
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err != nil {
		s.drop()
		return nil, unwritable(file, err)
	}
	return s, nil
}

// install puts the file in its place.
func (s *staged) install() error {
	if err := os.Rename(s.temp, s.file); err != nil {
		s.drop()
		return unwritable(s.file, err)
	}
	dir, err := os.Open(filepath.Dir(s.file))
	if err != nil {
		return unwritable(s.file, err)
	}
	defer dir.Close()
	if err := dir.Sync(); err != nil {
		return unwritable(s.file, err)
	}
	return nil
}

// drop forgets the new content.
func (s *staged) drop() { _ = os.Remove(s.temp) }

func unwritable(file string, err error) error {
	f := fault.Errorf(fault.Usage, "write %q: %w", file, err)
	if errors.Is(err, fs.ErrPermission) {
		f.Hint = "run it as root, as certbot runs its deploy hooks"
	}
	return f
}

// access is the mode of the PEM files and their group, -1 for ours.
func (a *Applier) access() (os.FileMode, int, error) {
	if a.Group == "" {
		return 0o600, -1, nil
	}
	g, err := user.LookupGroup(a.Group)
	if err != nil {
		return 0, 0, fault.Errorf(fault.Usage, "HAPROXY_GROUP: %w", err)
	}
	gid, err := strconv.Atoi(g.Gid)
	return 0o640, gid, err
}

// readable is an error where HAProxy could not read what we write: it would go on with what it has in memory, and fail
// to reload and to start.
func (a *Applier) readable(i *instance) error {
	if i.process == nil || i.process.UID == 0 || i.process.UID == os.Geteuid() {
		return nil
	}
	_, gid, err := a.access()
	if err != nil || gid >= 0 && (gid == i.process.GID || slices.Contains(i.process.Groups, gid)) {
		return err
	}
	return fault.Errorf(fault.Usage, "HAProxy runs as the user %d, who could not read its certificates", i.process.UID).
		WithHint("set HAPROXY_GROUP to a group of that user's")
}

// checkDir refuses a folder in which others than its owner could put certificates.
func (a *Applier) checkDir() error {
	info, err := os.Stat(a.CertDir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fault.Errorf(fault.Usage, "there is no folder %q for HAProxy's certificates", a.CertDir).
			WithHint("create it (install -d -m 0700 %s) and name it on HAProxy's bind line: crt %s/", a.CertDir, a.CertDir)
	case err != nil:
		return fault.Errorf(fault.Usage, "look at HAProxy's certificates: %w", err)
	case !info.IsDir():
		return fault.Errorf(fault.Usage, "%q is no folder", a.CertDir)
	case info.Mode().Perm()&0o002 != 0:
		return fault.Errorf(fault.Usage, "everybody may write to %q, and put a certificate of theirs there", a.CertDir).
			WithHint("chmod o-w %s", a.CertDir)
	}
	return nil
}

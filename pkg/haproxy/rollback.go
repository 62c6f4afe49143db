package haproxy

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/google/renameio/v2"

	"github.com/certhook/certhook/pkg/fault"
)

// The files that a reload replaces are kept in the state directory until HAProxy's own check has passed with
// the new ones: each as it was, or an empty <file>.none where there was none.

func (a *Applier) keptDir() string { return filepath.Join(a.StateDir, "haproxy", "replaced") }

// keep remembers a file as it is.
func (a *Applier) keep(file string) error {
	if err := os.MkdirAll(a.keptDir(), 0o700); err != nil {
		return unwritable(a.keptDir(), err)
	}
	old, err := os.ReadFile(file)
	name := filepath.Join(a.keptDir(), filepath.Base(file))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		name += ".none"
	case err != nil:
		return fault.Errorf(fault.Usage, "keep %q: %w", file, err)
	}
	if err := renameio.WriteFile(name, old, 0o600, renameio.WithStaticPermissions(0o600), renameio.WithTempDir(a.keptDir())); err != nil {
		return unwritable(name, err)
	}
	// Its owners and its mode belong to what is put back. The folder is nobody else's.
	if info, err := os.Stat(file); err == nil {
		stat := info.Sys().(*syscall.Stat_t)
		if err := errors.Join(os.Chown(name, int(stat.Uid), int(stat.Gid)), os.Chmod(name, info.Mode().Perm())); err != nil {
			return unwritable(name, err)
		}
	}
	return nil
}

// restore puts back all that is kept.
func (a *Applier) restore() error {
	kept, err := os.ReadDir(a.keptDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return unwritable(a.keptDir(), err)
	}
	for _, e := range kept {
		from := filepath.Join(a.keptDir(), e.Name())
		if name, none := strings.CutSuffix(e.Name(), ".none"); none {
			file := filepath.Join(a.CertDir, name)
			if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return unwritable(file, err)
			}
		} else if !strings.HasPrefix(e.Name(), ".") { // not what writing one has left
			old, err := os.ReadFile(from)
			if err != nil {
				return unwritable(from, err)
			}
			info, err := os.Stat(from)
			if err != nil {
				return unwritable(from, err)
			}
			stat := info.Sys().(*syscall.Stat_t)
			file, err := stageAs(filepath.Join(a.CertDir, e.Name()), old, info.Mode().Perm(), int(stat.Uid), int(stat.Gid))
			if err != nil {
				return err
			}
			if err := file.install(); err != nil {
				return err
			}
		}
		if err := os.Remove(from); err != nil {
			return unwritable(from, err)
		}
	}
	return nil
}

// forget drops what is kept: it is not needed any more.
func (a *Applier) forget() { _ = os.RemoveAll(a.keptDir()) }

// recover makes up for a run that was killed between the replacement of files and HAProxy's word on them.
func (a *Applier) recover(ctx context.Context, i *instance) error {
	_ = os.RemoveAll(a.trialDir())
	kept, err := os.ReadDir(a.keptDir())
	if err != nil || len(kept) == 0 {
		return nil
	}
	if err := a.check(ctx, i); fault.KindOf(err) == fault.Pending {
		return err // what is kept may be needed yet
	} else if err != nil {
		a.Log.Warn("an earlier run was cut off, and HAProxy does not take what it has left; putting back what was there before", "error", err)
		if err := a.restore(); err != nil {
			return err
		}
	}
	a.forget()
	return nil
}

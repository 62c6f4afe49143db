package journal

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/certhook/certhook/pkg/certbot"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/provider"
)

var run = certbot.Run{PID: 42, Start: 7, Boot: "b", PIDNS: "pid:[1]"}

func open(t *testing.T) *Store {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "a", "state"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func lock(t *testing.T, s *Store, id ID) *File {
	t.Helper()
	f, err := s.Lock(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

func entry(call int, state State) Entry {
	e := Entry{Call: call, Domain: "svc.example.com", Name: "n", Value: "v", Provider: "p"}
	e.Set(state)
	return e
}

func TestWhatIsSavedIsRead(t *testing.T) {
	s := open(t)
	id := RunID(run)
	f := lock(t, s, id)
	f.Run = run
	f.Begin(2, 0)
	e := f.Put(entry(0, Planned))
	e.Zone = provider.Zone{Name: "deleg.example.net", ID: "z1"}
	e.Set(Writing)
	if err := f.Save(); err != nil {
		t.Fatal(err)
	}
	f.Close()

	info, err := os.Stat(f.Path())
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
	got := lock(t, s, id)
	if got.Run != run || got.Size != 2 || len(got.Live()) != 1 || *got.Live()[0] != *e {
		t.Errorf("read back %+v", got.Record)
	}
	ids, err := s.IDs()
	if err != nil || len(ids) != 1 || ids[0] != id {
		t.Errorf("IDs = %v, %v", ids, err)
	}
	if err := got.Delete(); err != nil {
		t.Fatal(err)
	}
	got.Close()
	left, _ := os.ReadDir(s.dir)
	if len(left) != 0 {
		t.Errorf("%d files left after Delete", len(left))
	}
}

// A writer that is killed leaves a file that no reader takes for the journal's, and that goes with the run.
func TestDeleteTakesWhatKilledWritersLeft(t *testing.T) {
	s := open(t)
	f, other := lock(t, s, "x"), lock(t, s, "xy")
	if err := errors.Join(f.Save(), other.Save()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".x.json123", ".xy.json456"} {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if ids, _ := s.IDs(); len(ids) != 2 {
		t.Errorf("IDs = %v, want x and xy", ids)
	}
	if err := f.Delete(); err != nil {
		t.Fatal(err)
	}
	var left []string
	files, _ := os.ReadDir(s.dir)
	for _, file := range files {
		left = append(left, file.Name())
	}
	if !slices.Equal(left, []string{".xy.json456", "xy.json", "xy.lock"}) {
		t.Errorf("left: %q", left)
	}
}

// What is not yet the journal's must not lie where everybody writes.
func TestSaveWritesInItsOwnFolderOnly(t *testing.T) {
	f := lock(t, open(t), "x")
	elsewhere := t.TempDir()
	t.Setenv("TMPDIR", elsewhere)
	old := time.Now().Add(-time.Hour).Truncate(time.Second)
	if err := os.Chtimes(elsewhere, old, old); err != nil {
		t.Fatal(err)
	}
	if err := f.Save(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(elsewhere)
	if err != nil {
		t.Fatal(err)
	}
	if !info.ModTime().Equal(old) {
		t.Error("a file was made in $TMPDIR")
	}
}

func TestLockExcludes(t *testing.T) {
	s := open(t)
	f := lock(t, s, "x")
	if _, err := s.TryLock("x"); !errors.Is(err, ErrBusy) {
		t.Errorf("TryLock of a locked file: %v, want ErrBusy", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.Lock(ctx, "x"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Lock of a locked file: %v, want the deadline", err)
	}
	f.Close()
	again, err := s.TryLock("x")
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}

// Whatever a disk does not let us do is told with what to do about it.
func TestUnwritableJournal(t *testing.T) {
	s := open(t)
	f := lock(t, s, "x")
	if err := os.RemoveAll(s.dir); err != nil {
		t.Fatal(err)
	}
	_, lockErr := s.TryLock("y")
	for what, err := range map[string]error{"lock": lockErr, "save": f.Save()} {
		if fault.KindOf(err) != fault.Usage || !strings.Contains(fault.HintOf(err), "CERTHOOK_STATE_DIR") {
			t.Errorf("%s: %v (kind %v, hint %q)", what, err, fault.KindOf(err), fault.HintOf(err))
		}
	}
}

func TestOldLockWithoutFileIsListed(t *testing.T) {
	s := open(t)
	f := lock(t, s, "x")
	f.Close()
	if ids, _ := s.IDs(); len(ids) != 0 {
		t.Errorf("a fresh lock is listed: %v", ids)
	}
	old := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(filepath.Join(s.dir, "x.lock"), old, old); err != nil {
		t.Fatal(err)
	}
	if ids, _ := s.IDs(); len(ids) != 1 || ids[0] != "x" {
		t.Errorf("IDs = %v, want x", ids)
	}
}

// Nothing may be done on the word of a file that is not wholly understood.
func TestDamagedFilesAreRefused(t *testing.T) {
	good := `{"version":1,"run":{"pid":1,"start":1,"boot":"b","pidns":"n"},"order":1,"size":1,"entries":[]}`
	tests := map[string]func(t *testing.T, path string) error{
		"truncated": func(_ *testing.T, p string) error { return os.WriteFile(p, []byte(good[:len(good)/2]), 0o600) },
		"empty":     func(_ *testing.T, p string) error { return os.WriteFile(p, nil, 0o600) },
		"later format": func(_ *testing.T, p string) error {
			return os.WriteFile(p, []byte(strings.Replace(good, ":1", ":2", 1)), 0o600)
		},
		"unknown field": func(_ *testing.T, p string) error {
			return os.WriteFile(p, []byte(strings.Replace(good, `"size"`, `"sise"`, 1)), 0o600)
		},
		"something after the end": func(_ *testing.T, p string) error { return os.WriteFile(p, []byte(good+good), 0o600) },
		"huge": func(_ *testing.T, p string) error {
			return os.WriteFile(p, []byte(good+strings.Repeat(" ", maxSize)), 0o600)
		},
		"writable by others": func(_ *testing.T, p string) error {
			if err := os.WriteFile(p, []byte(good), 0o600); err != nil {
				return err
			}
			return os.Chmod(p, 0o622)
		},
		"symbolic link": func(t *testing.T, p string) error {
			target := filepath.Join(t.TempDir(), "elsewhere")
			if err := os.WriteFile(target, []byte(good), 0o600); err != nil {
				return err
			}
			return os.Symlink(target, p)
		},
		"directory": func(_ *testing.T, p string) error { return os.Mkdir(p, 0o700) },
	}
	for name, damage := range tests {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			path := filepath.Join(s.dir, "x.json")
			if err := damage(t, path); err != nil {
				t.Fatal(err)
			}
			f, err := s.Lock(t.Context(), "x")
			if err == nil {
				t.Fatalf("read as %+v", f.Record)
			}
			if fault.KindOf(err) != fault.Usage || !strings.Contains(err.Error(), path) || fault.HintOf(err) == "" {
				t.Errorf("error %q (kind %v, hint %q) must be of kind Usage, name the file and say what to do", err, fault.KindOf(err), fault.HintOf(err))
			}
			if _, err := os.Lstat(path); err != nil {
				t.Errorf("the file is gone: %v", err)
			}
		})
	}
}

func TestOpenRefusesUnsafeDirectories(t *testing.T) {
	tests := map[string]func(t *testing.T, dir string) error{
		"symbolic link": func(t *testing.T, dir string) error { return os.Symlink(t.TempDir(), dir) },
		"file":          func(_ *testing.T, dir string) error { return os.WriteFile(dir, nil, 0o600) },
		"writable by others": func(_ *testing.T, dir string) error {
			if err := os.Mkdir(dir, 0o700); err != nil {
				return err
			}
			return os.Chmod(dir, 0o777)
		},
		"journal is a symbolic link": func(t *testing.T, dir string) error {
			if err := os.Mkdir(dir, 0o700); err != nil {
				return err
			}
			return os.Symlink(t.TempDir(), filepath.Join(dir, "journal"))
		},
	}
	if os.Geteuid() == 0 {
		tests["another user's"] = func(_ *testing.T, dir string) error {
			if err := os.Mkdir(dir, 0o700); err != nil {
				return err
			}
			return os.Chown(dir, 65534, 65534)
		}
	}
	for name, prepare := range tests {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			if err := prepare(t, dir); err != nil {
				t.Fatal(err)
			}
			if _, err := Open(dir); fault.KindOf(err) != fault.Usage || !strings.Contains(err.Error(), dir) {
				t.Errorf("Open = %v; want an error of kind Usage that names the directory", err)
			}
		})
	}
}

func TestOrders(t *testing.T) {
	r := &Record{}
	r.Begin(3, 0)
	r.Put(entry(0, Planned))
	if r.Complete(2) {
		t.Error("complete with one of two calls")
	}
	r.Put(entry(1, Refused))
	if !r.Complete(2) {
		t.Error("a refusal is not on record")
	}
	written := r.Put(entry(2, Written))

	r.Begin(1, 0)
	if got := r.Earlier(); len(got) != 1 || got[0] != written {
		t.Errorf("left from the order before: %+v", got)
	}
	if len(r.Entries) != 1 {
		t.Errorf("%d entries kept, want the live one only", len(r.Entries))
	}
	if len(r.Current()) != 0 || r.Complete(1) {
		t.Error("the earlier order's calls count for the new one")
	}
	r.Put(entry(0, Planned))
	r.Put(entry(0, Refused))
	if got := r.Current(); len(got) != 1 || got[0].State != Refused {
		t.Errorf("a repeated call stands as %+v", got)
	}
	if len(r.Live()) != 1 || r.Find("svc.example.com", "v").Order != 2 {
		t.Error("Live or Find missed an entry")
	}
}

// When another run changed a name is known for a while after its order.
func TestBeginKeepsWhatWasSentALittleWhileAgo(t *testing.T) {
	r := &Record{}
	r.Begin(4, time.Minute)
	sent, old, planned, refused := r.Put(entry(0, Removed)), r.Put(entry(1, Removed)), r.Put(entry(2, Removed)), r.Put(entry(3, Refused))
	for _, e := range []*Entry{sent, old, refused} {
		e.Zone = provider.Zone{Name: "z"}
	}
	old.Time = old.Time.Add(-2 * time.Minute)
	if planned.Sent() || refused.Sent() {
		t.Error("what was never written counts as sent")
	}
	r.Begin(1, time.Minute)
	if len(r.Entries) != 1 || r.Entries[0] != sent {
		t.Errorf("kept %+v, want the one sent just now", r.Entries)
	}
	if r.Find("svc.example.com", "v") != sent || len(r.Earlier()) != 0 {
		t.Error("what was removed counts as live, or is not found")
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"version":1,"run":{"pid":1,"start":1,"boot":"b","pidns":"n"},"order":1,"size":1,"entries":[{"order":1,"state":"written"}]}`))
	f.Add([]byte(`{"version":1,"entries":[null]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		s := open(t)
		if err := os.WriteFile(filepath.Join(s.dir, "x.json"), raw, 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := s.Lock(context.Background(), "x")
		if err != nil {
			return
		}
		defer file.Close()
		file.Live()
		file.Earlier()
		file.Complete(file.Size)
		file.Find("d", "v")
	})
}

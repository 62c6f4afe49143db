package certbot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/certhook/certhook/pkg/bundle"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/tests/haproxytest"
)

// Certbot renews while we read, again and again: what is read is always of one certificate, and not of an earlier one
// than the last that was complete before.
func TestReadLiveWhileRenewed(t *testing.T) {
	ca, l := haproxytest.NewAuthority(t), haproxytest.NewLineages(t)
	const versions = 200
	pairs := map[int]haproxytest.Pair{}
	number := map[string]int{} // of the version, by its chain
	for n := 1; n <= versions; n++ {
		pairs[n] = ca.Issue(haproxytest.Wish{}, "a.test")
		number[string(pairs[n].Chain())] = n
	}
	l.Renew("a.test", pairs[1])
	var complete atomic.Int64
	complete.Store(1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := 2; n <= versions; n++ {
			l.Renew("a.test", pairs[n])
			complete.Store(int64(n))
			time.Sleep(time.Millisecond)
		}
	}()
	seen := map[string]bool{}
	for reading := true; reading; {
		select {
		case <-done:
			reading = false
		default:
		}
		before := int(complete.Load())
		m, err := ReadLive(t.Context(), l.Root, "a.test")
		if err != nil {
			t.Fatal(err)
		}
		b, err := bundle.Parse(m.Chain, m.Key, time.Now())
		if err != nil {
			t.Fatalf("a mix was read: %v", err)
		}
		seen[b.Serial()] = true
		if got := number[string(m.Chain)]; got < before {
			t.Errorf("version %d was read after version %d was complete", got, before)
		}
	}
	if len(seen) < 3 {
		t.Errorf("%d certificates were seen: the test does not test", len(seen))
	}
	m, err := ReadLive(t.Context(), l.Root, "a.test")
	if err != nil || !bytes.Equal(m.Chain, pairs[versions].Chain()) {
		t.Errorf("at last: %v", err)
	}
}

// While certbot stands still between two links, nothing is read; when it goes on, the new version.
func TestReadLiveInBetween(t *testing.T) {
	ca := haproxytest.NewAuthority(t)
	old, fresh := ca.Issue(haproxytest.Wish{}, "a.test"), ca.Issue(haproxytest.Wish{}, "a.test")
	for switched := range haproxytest.Kinds {
		for _, absent := range []bool{false, true} { // the next link is gone already
			if switched == 0 && !absent {
				continue
			}
			t.Run(fmt.Sprintf("%d switched, absent %t", switched, absent), func(t *testing.T) {
				t.Parallel()
				l := haproxytest.NewLineages(t)
				l.Renew("a.test", old)
				n := l.Archive("a.test", fresh.Cert, fresh.Issuer, fresh.PrivateKey)
				for _, kind := range haproxytest.Kinds[:switched] {
					l.Switch("a.test", kind, n)
				}
				if absent {
					remove(t, filepath.Join(l.Live("a.test"), haproxytest.Kinds[switched]+".pem"))
				}
				if names, err := LiveNames(l.Root); err != nil || !slices.Equal(names, []string{"a.test"}) {
					t.Errorf("names %q, %v", names, err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				m, err := ReadLive(ctx, l.Root, "a.test")
				if fault.KindOf(err) != fault.Lineage || !errors.Is(err, context.DeadlineExceeded) || m.Key != nil {
					t.Errorf("%v, %v", m, err)
				}
				go func() {
					time.Sleep(50 * time.Millisecond)
					for _, kind := range haproxytest.Kinds[switched:] {
						l.Switch("a.test", kind, n)
					}
				}()
				m, err = ReadLive(t.Context(), l.Root, "a.test")
				if err != nil || !bytes.Equal(m.Chain, fresh.Chain()) || !bytes.Equal(m.Key, fresh.PrivateKey) {
					t.Errorf("%v, %v", m, err)
				}
			})
		}
	}
}

// Of a new lineage certbot makes the links first, and then the files, the full chain last.
func TestReadLiveOfNew(t *testing.T) {
	l, p := haproxytest.NewLineages(t), haproxytest.NewAuthority(t).Issue(haproxytest.Wish{}, "a.test")
	l.Renew("a.test", p)
	fullchain := filepath.Join(l.Live("a.test"), "fullchain.pem")
	for _, content := range [][]byte{nil, p.Chain()[:100]} {
		write(t, fullchain, content)
		written := make(chan error, 1)
		go func() {
			time.Sleep(50 * time.Millisecond)
			written <- os.WriteFile(fullchain, p.Chain(), 0o600)
		}()
		m, err := ReadLive(t.Context(), l.Root, "a.test")
		if err != nil || !bytes.Equal(m.Chain, p.Chain()) {
			t.Errorf("%d octets at first: %v, %v", len(content), m, err)
		}
		if err := <-written; err != nil {
			t.Fatal(err)
		}
	}
	// One that stays like that is handed on: who takes it apart can tell what is wrong.
	write(t, fullchain, p.Chain()[:100])
	if m, err := ReadLive(t.Context(), l.Root, "a.test"); err != nil || !bytes.Equal(m.Chain, p.Chain()[:100]) {
		t.Errorf("%v, %v", m, err)
	}
}

// Plain files, as a copied lineage has them.
func TestReadLivePlain(t *testing.T) {
	root, ca := t.TempDir(), haproxytest.NewAuthority(t)
	dir := filepath.Join(root, "live", "a.test")
	for range 2 {
		p := ca.Issue(haproxytest.Wish{}, "a.test")
		for name, content := range map[string][]byte{"cert": p.Cert, "chain": p.Issuer, "fullchain": p.Chain(), "privkey": p.PrivateKey} {
			write(t, filepath.Join(dir, name+".pem"), content)
		}
		m, err := ReadLive(t.Context(), root, "a.test")
		if err != nil || !bytes.Equal(m.Chain, p.Chain()) || !bytes.Equal(m.Key, p.PrivateKey) || m.Dir != dir || m.Name != "a.test" {
			t.Errorf("%v, %v", m, err)
		}
		if told := fmt.Sprintf("%v %+v", m, m); told != "a.test a.test" {
			t.Errorf("a message shows more than the name: %s", told)
		}
	}
}

// Plain files have no number: another file, or another time, is another version.
func TestSameVersion(t *testing.T) {
	dir := t.TempDir()
	for _, file := range liveFiles {
		write(t, filepath.Join(dir, file), nil)
	}
	file, past := filepath.Join(dir, "cert.pem"), time.Now().Add(-time.Hour)
	if err := os.Chtimes(file, past, past); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func() error{
		"nothing":      func() error { return nil },
		"another time": func() error { return os.Chtimes(file, past, past.Add(time.Second)) },
		"another file of that time": func() error {
			write(t, file+".new", nil)
			return errors.Join(os.Chtimes(file+".new", past, past), os.Rename(file+".new", file))
		},
	} {
		before, err := look(dir)
		if err = errors.Join(err, change()); err != nil {
			t.Fatal(err)
		}
		after, err := look(dir)
		if err != nil || before.same(after) != (name == "nothing") {
			t.Errorf("%s: the same is %t, %v", name, before.same(after), err)
		}
		if err := os.Chtimes(file, past, past); err != nil {
			t.Fatal(err)
		}
	}
}

// What stays broken is unusable, and is not waited for any longer than the caller likes.
func TestReadLiveBroken(t *testing.T) {
	p := haproxytest.NewAuthority(t).Issue(haproxytest.Wish{}, "a.test")
	for name, spoil := range map[string]func(t *testing.T, l *haproxytest.Lineages){
		"no such lineage": func(t *testing.T, l *haproxytest.Lineages) {
			if err := os.RemoveAll(l.Live("a.test")); err != nil {
				t.Fatal(err)
			}
		},
		"a link is gone": func(t *testing.T, l *haproxytest.Lineages) { remove(t, filepath.Join(l.Live("a.test"), "privkey.pem")) },
		"a file is gone": func(t *testing.T, l *haproxytest.Lineages) {
			remove(t, filepath.Join(l.Root, "archive/a.test/privkey1.pem"))
		},
		"a renewal was cut short": func(t *testing.T, l *haproxytest.Lineages) {
			l.Switch("a.test", "cert", l.Archive("a.test", p.Cert, p.Issuer, p.PrivateKey))
		},
		"a file among links": func(t *testing.T, l *haproxytest.Lineages) {
			remove(t, filepath.Join(l.Live("a.test"), "privkey.pem"))
			write(t, filepath.Join(l.Live("a.test"), "privkey.pem"), p.PrivateKey)
		},
		"a link to another lineage": func(t *testing.T, l *haproxytest.Lineages) {
			l.Renew("b.test", p)
			link(t, "../../archive/b.test/privkey1.pem", filepath.Join(l.Live("a.test"), "privkey.pem"))
		},
		"a link to another file": func(t *testing.T, l *haproxytest.Lineages) {
			link(t, "../../archive/a.test/cert1.pem", filepath.Join(l.Live("a.test"), "privkey.pem"))
		},
		"a pipe": func(t *testing.T, l *haproxytest.Lineages) {
			file := filepath.Join(l.Root, "archive/a.test/privkey1.pem")
			remove(t, file)
			if err := syscall.Mkfifo(file, 0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := haproxytest.NewLineages(t)
			l.Renew("a.test", p)
			spoil(t, l)
			ctx := t.Context()
			if name != "a renewal was cut short" { // one has to wait as long as it does by itself
				limited, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
				defer cancel()
				ctx = limited
			}
			m, err := ReadLive(ctx, l.Root, "a.test")
			if fault.KindOf(err) != fault.Lineage || fault.HintOf(err) == "" || !strings.Contains(err.Error(), `"a.test"`) || m.Key != nil {
				t.Errorf("%v, %v (%s)", m, err, fault.HintOf(err))
			}
		})
	}
}

// What may not be read is a matter of permission, and told at once.
func TestLivePermission(t *testing.T) {
	l, p := haproxytest.NewLineages(t), haproxytest.NewAuthority(t).Issue(haproxytest.Wish{}, "a.test")
	l.Renew("a.test", p)
	live, key := filepath.Join(l.Root, "live"), filepath.Join(l.Root, "archive/a.test/privkey1.pem")
	for _, dir := range []string{l.Root, live, l.Live("a.test"), filepath.Join(l.Root, "archive"), filepath.Dir(key)} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"cert1", "chain1", "fullchain1"} {
		if err := os.Chmod(filepath.Join(filepath.Dir(key), name+".pem"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	check := func(err error) {
		t.Helper()
		if !errors.Is(err, fs.ErrPermission) || fault.KindOf(err) != fault.Usage || !strings.Contains(fault.HintOf(err), "root") {
			t.Errorf("%v of kind %v (%s)", err, fault.KindOf(err), fault.HintOf(err))
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // so that waiting would be told
	unprivileged(t, key, func() {
		_, err := ReadLive(ctx, l.Root, "a.test")
		check(err)
	})
	unprivileged(t, l.Live("a.test"), func() {
		names, err := LiveNames(l.Root)
		if err != nil || !slices.Equal(names, []string{"a.test"}) {
			t.Errorf("%q, %v", names, err)
		}
		_, err = ReadLive(ctx, l.Root, "a.test")
		check(err)
	})
	unprivileged(t, live, func() {
		_, err := LiveNames(l.Root)
		check(err)
	})
}

// Names that lead elsewhere, or that no command to HAProxy can hold, are refused at once; all others are not.
func TestReadLiveNames(t *testing.T) {
	l, p := haproxytest.NewLineages(t), haproxytest.NewAuthority(t).Issue(haproxytest.Wish{}, "a.test")
	for _, name := range []string{"a.test", "A_b-1", "größe", `a'b"c`, "a#b", "-a", "a..b"} {
		l.Renew(name, p)
		if _, err := ReadLive(t.Context(), l.Root, name); err != nil {
			t.Error(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // so that a name which is let pass is not waited for
	for _, name := range []string{"", ".", "..", ".a", "a/b", "../live/a.test", "/a", "a b", "a;b", `a\b`, "a<b", "a\nb", "a\tb", "a\x00b", "a\x1bb", "a\u00a0b", "a\u2028b", "a\xffb", "a\x7fb"} {
		_, err := ReadLive(ctx, l.Root, name)
		if fault.KindOf(err) != fault.Lineage || fault.HintOf(err) == "" || errors.Is(err, context.Canceled) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestLiveNames(t *testing.T) {
	l, p := haproxytest.NewLineages(t), haproxytest.NewAuthority(t).Issue(haproxytest.Wish{}, "a.test")
	if names, err := LiveNames(t.TempDir()); err != nil || len(names) > 0 {
		t.Errorf("of nothing: %q, %v", names, err)
	}
	if names, err := LiveNames(l.Root); err != nil || len(names) > 0 {
		t.Errorf("of a README: %q, %v", names, err)
	}
	for _, name := range []string{"b.test", "a.test", ".hidden", "broken"} {
		l.Renew(name, p)
	}
	for _, kind := range haproxytest.Kinds { // its links lead nowhere
		remove(t, filepath.Join(l.Root, "archive", "broken", kind+"1.pem"))
	}
	write(t, filepath.Join(l.Root, "live", "left over", "README"), nil)
	link(t, "nowhere", filepath.Join(l.Root, "live", "dangling"))
	link(t, l.Live("a.test"), filepath.Join(l.Root, "live", "linked"))
	want := []string{"a.test", "b.test", "broken", "linked"}
	if names, err := LiveNames(l.Root); err != nil || !slices.Equal(names, want) {
		t.Errorf("%q, %v, want %q", names, err, want)
	}
	file := t.TempDir()
	write(t, filepath.Join(file, "live"), nil)
	if names, err := LiveNames(file); fault.KindOf(err) != fault.Usage {
		t.Errorf("of a file: %q, %v", names, err)
	}
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// link puts a link in the place of whatever is there.
func link(t *testing.T, target, path string) {
	t.Helper()
	_ = os.Remove(path)
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

package admin

import (
	"context"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/certhook/certhook/tests/haproxytest"
)

// lab is a HAProxy that serves a.test and b.test.
type lab struct {
	*haproxytest.HAProxy
	*Client
	ca           *haproxytest.Authority
	a, b         string // names of the stores
	first, other haproxytest.Pair
}

func newLab(t *testing.T, o haproxytest.Options) *lab {
	t.Helper()
	o.NoMaster = true
	l := &lab{HAProxy: haproxytest.New(t, o), ca: haproxytest.NewAuthority(t)}
	l.Client = &Client{Path: l.AdminSocket, Timeout: 30 * time.Second} // this machine may be busy
	l.a, l.b = filepath.Join(l.CertDir, "a.pem"), filepath.Join(l.CertDir, "b.pem")
	l.first, l.other = l.ca.Issue(haproxytest.Wish{}, "a.test"), l.ca.Issue(haproxytest.Wish{}, "b.test")
	for name, p := range map[string]haproxytest.Pair{l.a: l.first, l.b: l.other} {
		if err := os.WriteFile(name, p.PEM(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l.Start()
	return l
}

// state fails the test unless a.test is served with that certificate and the open transaction is that one.
func (l *lab) state(t *testing.T, served *x509.Certificate, transaction string) {
	t.Helper()
	if got := l.Served("a.test")[0]; !got.Equal(served) {
		t.Errorf("%s is served, want %s", haproxytest.Serial(got), haproxytest.Serial(served))
	}
	list, err := l.List(t.Context())
	if err != nil || list.Transaction != transaction || !slices.Equal(list.Names, []string{l.a, l.b}) {
		t.Errorf("%+v, %v, want the transaction %q", list, err, transaction)
	}
}

// refused fails the test unless the error tells that HAProxy replied with these words.
func refused(t *testing.T, err error, words string) {
	t.Helper()
	if r, ok := errors.AsType[*Refused](err); !ok || !strings.Contains(r.Reply, words) {
		t.Errorf("%v, want a refusal with %q", err, words)
	}
}

func TestReplace(t *testing.T) {
	l, ctx := newLab(t, haproxytest.Options{}), t.Context()
	fresh := l.ca.Issue(haproxytest.Wish{}, "a.test", "more.a.test")
	l.state(t, l.first.Leaf, "")
	if err := l.Set(ctx, l.a, fresh.PEM()); err != nil {
		t.Fatal(err)
	}
	l.state(t, l.first.Leaf, l.a)
	shows(t, l, "*"+l.a, "Unused", fresh.Leaf)
	shows(t, l, l.a, "Used", l.first.Leaf)
	if err := l.Commit(ctx, l.a); err != nil {
		t.Fatal(err)
	}
	l.state(t, fresh.Leaf, "")
	shows(t, l, l.a, "Used", fresh.Leaf)
	if _, err := l.Show(ctx, "*"+l.a); !errors.Is(err, ErrUnknownName) {
		t.Errorf("a transaction that has ended: %v", err)
	}
	if chain := l.Served("a.test"); len(chain) != 2 {
		t.Errorf("%d certificates are served", len(chain))
	}
}

// shows fails the test unless a description is that of a certificate.
func shows(t *testing.T, l *lab, name, status string, leaf *x509.Certificate) {
	t.Helper()
	c, err := l.Show(t.Context(), name)
	if err != nil || c.Name != name || c.Status != status || c.SHA1 != haproxytest.SHA1(leaf) || c.Serial != haproxytest.Serial(leaf) ||
		!c.NotBefore.Equal(leaf.NotBefore) || !c.NotAfter.Equal(leaf.NotAfter) || !slices.Equal(c.SANs, leaf.DNSNames) {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestShowAll(t *testing.T) {
	l, ctx := newLab(t, haproxytest.Options{}), t.Context()
	// So many that one line cannot hold them.
	var names []string
	for range 500 {
		names = append(names, l.a, l.b)
	}
	found, err := l.ShowAll(ctx, names)
	if err != nil || len(found) != 2 || found[l.a].SHA1 != haproxytest.SHA1(l.first.Leaf) || found[l.b].SHA1 != haproxytest.SHA1(l.other.Leaf) {
		t.Errorf("%+v, %v", found, err)
	}
	if found, err := l.ShowAll(ctx, nil); err != nil || len(found) != 0 {
		t.Errorf("of none: %+v, %v", found, err)
	}
	for _, names := range [][]string{{"/none.pem"}, {l.a, "/none.pem"}, {"/none.pem", l.a}} {
		if found, err := l.ShowAll(ctx, names); !errors.Is(err, ErrUnknownName) {
			t.Errorf("%q: %+v, %v", names, found, err)
		}
	}
	l.Command("new ssl cert /empty.pem")
	if c, err := l.Show(ctx, "/empty.pem"); err != nil || c.Status != "Empty" || c.SHA1 != "" || !c.NotAfter.IsZero() {
		t.Errorf("an empty store: %+v, %v", c, err)
	}
}

// A HAProxy without certificates has an empty list; a reply that holds nothing is not always a failure.
func TestListOfNone(t *testing.T) {
	l := newLab(t, haproxytest.Options{})
	config, err := os.ReadFile(l.Config)
	if err != nil {
		t.Fatal(err)
	}
	l.Stop()
	config = []byte(strings.ReplaceAll(string(config), " ssl crt "+l.CertDir+"/", ""))
	if err := os.WriteFile(l.Config, config, 0o600); err != nil {
		t.Fatal(err)
	}
	l.Start()
	if list, err := l.List(t.Context()); err != nil || len(list.Names) > 0 || list.Transaction != "" {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestProcess(t *testing.T) {
	l := newLab(t, haproxytest.Options{Level: "user"})
	p, err := l.Process(t.Context())
	if err != nil || p.Name != "HAProxy" || p.PID != l.PID() || p.Version == "" || p.Uptime < 0 || p.Uptime > time.Hour {
		t.Errorf("%+v, %v", p, err)
	}
}

// What HAProxy does not commit stays open until it is aborted, and serves nobody.
func TestRefusedCommit(t *testing.T) {
	l, ctx := newLab(t, haproxytest.Options{}), t.Context()
	fresh, more := l.ca.Issue(haproxytest.Wish{}, "a.test"), l.ca.Issue(haproxytest.Wish{}, "a.test")
	for name, tt := range map[string]struct{ pem, words string }{
		"another's key": {string(fresh.Chain()) + string(more.PrivateKey), "inconsistencies between private key and certificate"},
		"no key":        {string(fresh.Chain()), "must contain at least a certificate and a private key"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := l.Set(ctx, l.a, []byte(tt.pem)); err != nil {
				t.Fatal(err)
			}
			refused(t, l.Commit(ctx, l.a), tt.words)
			l.state(t, l.first.Leaf, l.a)
			if err := l.Abort(ctx, l.a); err != nil {
				t.Fatal(err)
			}
			l.state(t, l.first.Leaf, "")
		})
	}
}

// With a transaction open for one file HAProxy 2.6 puts what is set for another into it.
func TestForeign(t *testing.T) {
	l, ctx := newLab(t, haproxytest.Options{}), t.Context()
	fresh, wrong := l.ca.Issue(haproxytest.Wish{}, "a.test"), l.ca.Issue(haproxytest.Wish{}, "b.test")
	if err := l.Set(ctx, l.a, fresh.PEM()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{l.b, l.a, "/none.pem"} {
		err := l.Set(ctx, name, wrong.PEM())
		if foreign, ok := errors.AsType[*Foreign](err); !ok || foreign.Transaction != l.a {
			t.Errorf("%s: %v", name, err)
		}
	}
	shows(t, l, "*"+l.a, "Unused", wrong.Leaf)
	refused(t, l.Commit(ctx, l.b), "The ongoing transaction is about '"+l.a+"'")
	refused(t, l.Abort(ctx, l.b), "The ongoing transaction is about '"+l.a+"'")
	l.state(t, l.first.Leaf, l.a)
	if err := l.Abort(ctx, l.a); err != nil {
		t.Fatal(err)
	}
	l.state(t, l.first.Leaf, "")
}

func TestNoTransaction(t *testing.T) {
	l, ctx := newLab(t, haproxytest.Options{}), t.Context()
	if err := l.Commit(ctx, l.a); !errors.Is(err, ErrNoTransaction) {
		t.Errorf("commit: %v", err)
	}
	if err := l.Set(ctx, l.a, l.first.PEM()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := l.Abort(ctx, l.a); err != nil {
			t.Errorf("abort: %v", err)
		}
	}
	l.state(t, l.first.Leaf, "")
}

func TestRefusedSet(t *testing.T) {
	l, ctx := newLab(t, haproxytest.Options{}), t.Context()
	if err := l.Set(ctx, "/none.pem", l.first.PEM()); !errors.Is(err, ErrUnknownName) {
		t.Errorf("a file that HAProxy does not load: %v", err)
	}
	refused(t, l.Set(ctx, l.a, []byte("garbage\n")), "Can't load the payload")
	refused(t, l.Set(ctx, l.a, l.first.PrivateKey), "Can't load the payload")
	l.state(t, l.first.Leaf, "")
}

// The largest command that HAProxy takes has one octet less than its buffer. One more, and nothing is sent.
func TestSizes(t *testing.T) {
	l, ctx := newLab(t, haproxytest.Options{}), t.Context()
	tap := haproxytest.NewTap(t, l.HAProxy)
	l.Path = tap.Path
	for _, size := range []int{15359, 15360, 16383} {
		fresh := l.ca.Issue(haproxytest.Wish{ManyNames: 40}, "a.test")
		if err := l.Set(ctx, l.a, padded(t, l.a, fresh, size)); err != nil {
			t.Fatalf("%d: %v", size, err)
		}
		if err := l.Commit(ctx, l.a); err != nil {
			t.Fatalf("%d: %v", size, err)
		}
		l.state(t, fresh.Leaf, "")
	}
	tap.Commands()
	for _, size := range []int{16384, 16385, 100000} {
		if err := l.Set(ctx, l.a, padded(t, l.a, l.first, size)); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%d: %v", size, err)
		}
	}
	if _, err := l.Show(ctx, "/"+strings.Repeat("a", 16384)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a name of that size: %v", err)
	}
	if sent := tap.Commands(); len(sent) > 0 {
		t.Errorf("sent: %q", sent)
	}
}

// padded is a PEM whose command has that size. What is outside of the blocks HAProxy leaves out.
func padded(t *testing.T, name string, p haproxytest.Pair, size int) []byte {
	t.Helper()
	missing := size - Size(name, p.PEM())
	if missing < 2 {
		t.Fatalf("the certificate is too large for %d", size)
	}
	var b strings.Builder
	for missing > 66 {
		b.WriteString("#" + strings.Repeat("x", 62) + "\n")
		missing -= 64
	}
	b.WriteString(strings.Repeat("#", missing-1) + "\n")
	pem := append([]byte(b.String()), p.PEM()...)
	if Size(name, pem) != size || Size(name, pem) != len("set ssl cert "+name+" <<\n"+string(pem)+"\n") {
		t.Fatalf("%d octets, want %d", Size(name, pem), size)
	}
	return pem
}

// A commit for many names takes its time. Meanwhile everything else is locked. A client that went away would leave a
// transaction that HAProxy 2.6 crashes on, so that nobody can make the commit stop once it has begun.
func TestCommitAtWork(t *testing.T) {
	entries := strings.Repeat("{certs}/a.pem *.a.test\n", 4000) + "{certs}/b.pem\n"
	l := newLab(t, haproxytest.Options{Certs: "crt-list {dir}/list", Files: map[string]string{"list": entries}})
	fresh := l.ca.Issue(haproxytest.Wish{}, "a.test")
	if err := l.Set(t.Context(), l.a, fresh.PEM()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- l.Commit(ctx, l.a) }()
	for {
		if _, err := l.List(t.Context()); errors.Is(err, ErrLocked) {
			break
		}
		select {
		case err := <-done:
			t.Fatalf("the commit ended before anybody else asked: %v", err)
		default:
		}
	}
	cancel()
	_, one := l.Show(t.Context(), l.a)
	_, both := l.ShowAll(t.Context(), []string{l.a, l.b})
	for i, err := range []error{one, both, l.Abort(t.Context(), l.a), l.Commit(t.Context(), l.a), l.Set(t.Context(), l.b, l.other.PEM())} {
		if !errors.Is(err, ErrLocked) && len(done) == 0 {
			t.Errorf("%d: %v", i, err)
		}
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := l.Abort(t.Context(), l.b); err != nil { // the Set may have come too late to be locked out
		t.Error(err)
	}
	l.state(t, fresh.Leaf, "")
	if err := l.Commit(ctx, l.a); !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnfinished) {
		t.Errorf("a commit that was given up before it began: %v", err)
	}
}

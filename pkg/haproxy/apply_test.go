package haproxy

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/tests/haproxytest"
)

// A new lineage comes by a reload, its renewal by a hot update, and then there is nothing to do.
func TestNewRenewedUnchanged(t *testing.T) {
	t.Parallel()
	s := newScene(t, haproxytest.Options{})
	s.Start()
	first := s.renew("a.test", haproxytest.Wish{})
	states, err := s.apply()
	if err != nil || states[0].Action != Reload {
		t.Fatalf("%s, %v, steps %q", brief(states), err, s.steps)
	}
	s.serves(first)

	second := s.renew("a.test", haproxytest.Wish{Age: 30e9})
	states, err = s.apply()
	if err != nil || states[0].Action != Hot {
		t.Fatalf("%s, %v, steps %q", brief(states), err, s.steps)
	}
	s.serves(second)
	if err := s.Check(); err != nil {
		t.Error(err)
	}

	before, err := os.Stat(states[0].File)
	if err != nil {
		t.Fatal(err)
	}
	if states, err = s.apply(); err != nil || states[0].Action != None || len(s.steps) > 0 {
		t.Errorf("%s, %v, steps %q", brief(states), err, s.steps)
	}
	if after, err := os.Stat(states[0].File); err != nil || !after.ModTime().Equal(before.ModTime()) || before.Mode().Perm() != 0o600 {
		t.Errorf("the file was %v and is %v (%v)", before, after, err)
	}

	// The same survives a reload.
	s.Signal(syscall.SIGUSR2)
	if states, err = s.apply(); err != nil {
		t.Errorf("%s, %v, steps %q", brief(states), err, s.steps)
	}
	s.serves(second)
}

// What no server could use never gets near HAProxy, and stops no other lineage.
func TestUnusableLineage(t *testing.T) {
	t.Parallel()
	s := newScene(t, haproxytest.Options{})
	s.Start()
	good := s.renew("good.test", haproxytest.Wish{})
	a := s.renew("a.test", haproxytest.Wish{})
	if _, err := s.apply(); err != nil {
		t.Fatal(err)
	}
	other := s.ca.Issue(haproxytest.Wish{}, "a.test")
	expired := s.ca.Issue(haproxytest.Wish{Age: 48e9 * 3600, Left: -1e9}, "a.test")
	fresh := s.ca.Issue(haproxytest.Wish{}, "a.test")
	for name, put := range map[string]func(){
		"another's key":      func() { s.lineages.RenewWith("a.test", other.Cert, other.Issuer, fresh.PrivateKey) },
		"expired":            func() { s.lineages.Renew("a.test", expired) },
		"intermediate first": func() { s.lineages.RenewWith("a.test", fresh.Issuer, fresh.Cert, fresh.PrivateKey) },
		"cut short":          func() { s.lineages.RenewWith("a.test", fresh.Cert, nil, fresh.PrivateKey) },
		"no key":             func() { s.lineages.RenewWith("a.test", fresh.Cert, fresh.Issuer, nil) },
		"junk": func() {
			s.lineages.RenewWith("a.test", fresh.Cert, append([]byte("hello\n"), fresh.Issuer...), fresh.PrivateKey)
		},
	} {
		put()
		renewed := s.renew("good.test", haproxytest.Wish{})
		states, err := s.apply()
		kind(t, err, fault.Lineage)
		if states[0].Name != "a.test" || states[0].Err == nil || states[1].Err != nil {
			t.Errorf("%s: %s", name, brief(states))
		}
		s.serves(a)
		s.serves(renewed)
		if err := s.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	_ = good

	// Blank lines and CRLF are no harm.
	s.lineages.RenewWith("a.test", crlf(fresh.Cert), crlf(fresh.Issuer), crlf(fresh.PrivateKey))
	if states, err := s.apply(); err != nil {
		t.Errorf("%s, %v", brief(states), err)
	}
	s.serves(fresh)
	if n := len(s.Served("a.test")); n != 2 {
		t.Errorf("%d certificates are served", n)
	}
}

func crlf(text []byte) []byte {
	out := []byte("\r\n")
	for _, c := range text {
		if c == '\n' {
			out = append(out, '\r')
		}
		out = append(out, c)
	}
	return append(out, "\r\n\r\n"...)
}

// Certbot says which names the renewed lineage is for.
func TestRenewedNames(t *testing.T) {
	t.Parallel()
	s := newScene(t, haproxytest.Options{})
	s.Start()
	s.renew("a.test", haproxytest.Wish{}, "a.test", "*.a.test")
	s.renew("b.test", haproxytest.Wish{})
	renewed := func(names ...string) func(*Applier) {
		return func(a *Applier) { a.Renewed = Renewed{s.lineages.Live("a.test"), names} }
	}
	_, err := s.apply(renewed("a.test", "more.test"))
	kind(t, err, fault.Lineage)
	if states, err := s.apply(renewed("A.test", "*.a.test")); err != nil {
		t.Errorf("%s, %v", brief(states), err)
	}
}

// A reload that fails changes nothing, and the next plain run makes up for it.
func TestReloadFails(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(*scene){
		"broken configuration": func(s *scene) { s.Break() },
		"a port is taken":      func(s *scene) { s.TakePort() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, haproxytest.Options{})
			s.Start()
			first := s.renew("a.test", haproxytest.Wish{})
			if _, err := s.apply(); err != nil {
				t.Fatal(err)
			}
			harm(s)
			// A hot update needs no reload.
			second := s.renew("a.test", haproxytest.Wish{})
			if states, err := s.apply(); err != nil {
				t.Errorf("%s, %v, steps %q", brief(states), err, s.steps)
			}
			s.serves(second)
			_ = first

			fresh := s.renew("b.test", haproxytest.Wish{})
			states, err := s.apply()
			if err == nil || states[1].Err == nil || states[0].Err != nil {
				t.Errorf("%s, %v, steps %q", brief(states), err, s.steps)
			}
			s.serves(second)
			s.Mend()
			if err := s.Check(); err != nil {
				t.Error(err)
			}
			if states, err := s.apply(); err != nil {
				t.Errorf("%s, %v, steps %q", brief(states), err, s.steps)
			}
			s.serves(fresh)
		})
	}
}

// While HAProxy is down the file waits on disk, and nobody is told that it is served.
func TestDown(t *testing.T) {
	t.Parallel()
	s := newScene(t, haproxytest.Options{})
	p := s.renew("a.test", haproxytest.Wish{})
	states, err := s.apply()
	kind(t, err, fault.Pending)
	if states[0].Action != Staged {
		t.Error(brief(states))
	}
	s.Start()
	s.serves(p)
	if states, err := s.apply(); err != nil || states[0].Action != None {
		t.Errorf("%s, %v, steps %q", brief(states), err, s.steps)
	}
	s.Kill() // the sockets stay
	s.renew("a.test", haproxytest.Wish{})
	_, err = s.apply()
	kind(t, err, fault.Pending)
}

// Another file has a certificate for the same name, and HAProxy prefers it: that file is named.
func TestShadowed(t *testing.T) {
	t.Parallel()
	s := newScene(t, haproxytest.Options{})
	p := s.renew("a.test", haproxytest.Wish{})
	if _, err := s.apply(); err == nil {
		t.Fatal("HAProxy is down")
	}
	s.put("zz-old.pem", s.ca.Issue(haproxytest.Wish{Age: 7200e9}, "a.test"))
	s.Start()
	s.serves(p)
	s.renew("a.test", haproxytest.Wish{})
	_, err := s.apply()
	kind(t, err, fault.Verdict)
	if !strings.Contains(err.Error(), "zz-old.pem") {
		t.Errorf("the file is not named: %v", err)
	}
	if err := os.Remove(filepath.Join(s.CertDir, "zz-old.pem")); err != nil {
		t.Fatal(err)
	}
	s.Signal(syscall.SIGUSR2)
	if states, err := s.apply(); err != nil {
		t.Errorf("%s, %v, steps %q", brief(states), err, s.steps)
	}
}

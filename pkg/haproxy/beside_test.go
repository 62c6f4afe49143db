package haproxy

import (
	"crypto/ed25519"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/tests/haproxytest"
)

// shows fails the test unless HAProxy shows a certificate to who takes its kind of key alone.
func (s *scene) shows(p haproxytest.Pair, rsa bool) {
	s.t.Helper()
	got := s.Shown(haproxytest.Look{Addr: s.Addr, Name: p.Leaf.DNSNames[0], RSA: rsa, ECDSA: !rsa})[0]
	if !got.Equal(p.Leaf) {
		s.t.Errorf("RSA %v: HAProxy shows serial %X, want %X", rsa, got.SerialNumber, p.Leaf.SerialNumber)
	}
}

// A bundle, one file for each type of key under one name, stays one: each lineage has its half, whatever way it comes.
func TestBundle(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]haproxytest.Options{
		"by name":  {Certs: "crt {certs}/000-default.pem crt {certs}/a.pem"},
		"in list":  {Certs: "crt {certs}/000-default.pem crt-list {dir}/list", Files: map[string]string{"list": "{certs}/a.pem [alpn h2] a.test\n"}},
		"in dir":   {},
		"no admin": {NoStatsSocket: true, Certs: "crt {certs}/a.pem"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, o)
			s.put("a.pem.rsa", s.ca.Issue(haproxytest.Wish{RSA: 2048}, "a.test"))
			s.put("a.pem.ecdsa", s.ca.Issue(haproxytest.Wish{}, "a.test"))
			s.Start()
			for range 2 {
				ec := s.renew("a", haproxytest.Wish{}, "a.test")
				rsa := s.renew("a-rsa", haproxytest.Wish{RSA: 2048}, "a.test")
				states, err := s.apply()
				want := Hot
				if o.NoStatsSocket {
					want = Reload
				}
				if err != nil || states[0].Action != want || states[1].Action != want {
					t.Fatalf("%s, %v, steps %q", brief(states), err, s.steps)
				}
				s.shows(ec, false)
				s.shows(rsa, true)
				if err := s.Reload(); err != nil {
					t.Fatal(err)
				}
				s.shows(ec, false)
				s.shows(rsa, true)
				if states, err := s.apply(); err != nil || states[0].Action != None || states[1].Action != None {
					t.Errorf("again: %s, %v, steps %q", brief(states), err, s.steps)
				}
			}
			if files, _ := filepath.Glob(filepath.Join(s.CertDir, "*.pem")); len(files) != 1 {
				t.Errorf("files %q; a.pem would have HAProxy pass over the bundle", files)
			}
			// Two for one half, and one for none.
			s.renew("a-ecdsa", haproxytest.Wish{}, "a.test")
			_, key, _ := ed25519.GenerateKey(nil)
			s.renew("a-rsa", haproxytest.Wish{}, "a.test")
			states, err := s.apply()
			kind(t, err, fault.Usage)
			if states[0].Err != nil || states[1].Err == nil {
				t.Errorf("%s", brief(states))
			}
			s.renew("a", haproxytest.Wish{Key: key}, "a.test")
			states, _ = s.apply()
			kind(t, states[0].Err, fault.Usage)
		})
	}
}

// What belongs to a certificate is loaded with it, so that the renewed one comes by a reload, after HAProxy's own
// check: a .issuer that is another's keeps HAProxy from starting.
func TestCompanions(t *testing.T) {
	t.Parallel()
	s := newScene(t, haproxytest.Options{})
	beside := func(kind, content string) string {
		path := filepath.Join(s.CertDir, "a.test.pem."+kind)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	s.Start()
	first := s.renew("a.test", haproxytest.Wish{})
	if states, err := s.apply(); err != nil {
		t.Fatalf("%s, %v", brief(states), err)
	}
	ocsp := beside("ocsp", "an OCSP response for "+string(first.Leaf.SerialNumber.Bytes()))
	issuer := beside("issuer", string(first.Issuer))
	second := s.renew("a.test", haproxytest.Wish{})
	states, err := s.apply()
	if err != nil || states[0].Action != Reload || !strings.Contains(s.log.String(), ocsp) || strings.Contains(s.log.String(), issuer) {
		t.Fatalf("by the same issuer: %s, %v, log %s", brief(states), err, s.log.String())
	}
	s.serves(second)

	s.ca = haproxytest.NewAuthority(t)
	third := s.renew("a.test", haproxytest.Wish{})
	_, err = s.apply()
	kind(t, err, fault.Refused)
	if !strings.Contains(fault.HintOf(err), issuer) {
		t.Errorf("%v, hint %q", err, fault.HintOf(err))
	}
	s.serves(second)
	if err := s.Check(); err != nil {
		t.Errorf("what is on disk now HAProxy does not start with: %v", err)
	}
	os.Remove(issuer)
	os.Remove(ocsp)
	if states, err = s.apply(); err != nil || states[0].Action != Hot {
		t.Fatalf("%s, %v", brief(states), err)
	}
	s.serves(third)

	// HAProxy 2.6 crashes at the end of a check with such a file.
	sctl := beside("sctl", "\x00\x06\x00\x04abcd")
	fourth := s.renew("a.test", haproxytest.Wish{})
	if states, err = s.apply(); err != nil || states[0].Action != Reload || !strings.Contains(s.log.String(), sctl) {
		t.Fatalf("%s, %v, log %s", brief(states), err, s.log.String())
	}
	s.serves(fourth)
}

// Where HAProxy cannot be reloaded, or does not look for them, they are no reason to keep a certificate from it.
func TestCompanionsThatDoNotCount(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]haproxytest.Options{
		"no reload": {NoMaster: true},
		"not read":  {Global: "ssl-load-extra-files bundle key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, o)
			s.put("a.test.pem", s.ca.Issue(haproxytest.Wish{Age: 2 * time.Hour}, "a.test"))
			s.Start()
			if err := os.WriteFile(filepath.Join(s.CertDir, "a.test.pem.ocsp"), []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
			p := s.renew("a.test", haproxytest.Wish{})
			if states, err := s.apply(); err != nil || states[0].Action != Hot {
				t.Fatalf("%s, %v", brief(states), err)
			}
			s.serves(p)
		})
	}
}

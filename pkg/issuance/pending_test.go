package issuance

import (
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/certhook/certhook/tests/acmetest"
)

// issuedBy counts the certificates that the CA has made.
func (s *scene) issuedBy() int { return strings.Count(s.ca.Log(), "Issued certificate serial") }

// A certificate that was ordered and has not arrived is fetched by the next run, and not ordered once more.
func TestOrderCutShort(t *testing.T) {
	lost := errors.New("the network is gone")
	const finalize, certificate = "/finalize-order/", "/certZ/"
	lose := func(path string, after bool) func(*testing.T, *scene) {
		return func(t *testing.T, s *scene) {
			s.network.set(func(r *http.Request) (error, error) {
				switch {
				case !strings.HasPrefix(r.URL.Path, path):
					return nil, nil
				case after:
					return nil, lost
				}
				return lost, nil
			})
			if _, err := s.Renew(t.Context(), nil, true); err == nil {
				t.Fatal("no error")
			}
			s.network.set(nil)
		}
	}
	kill := func(step string) func(*testing.T, *scene) {
		return func(t *testing.T, s *scene) {
			if !s.cutShort(step, func() { _, _ = s.Renew(t.Context(), nil, true) }) {
				t.Fatal("was not cut short")
			}
		}
	}
	for name, tc := range map[string]struct {
		cut    func(*testing.T, *scene)
		issued int // by the CA after the next run
	}{
		"killed before the CA is asked":       {kill("order kept"), 2},
		"the question is lost":                {lose(finalize, false), 2},
		"the answer is lost":                  {lose(finalize, true), 2},
		"the certificate is lost":             {lose(certificate, true), 2},
		"killed before the files are there":   {kill("files written"), 2},
		"killed before the switch":            {kill("certificate written"), 2},
		"the question is lost, and forgotten": {func(t *testing.T, s *scene) { lose(finalize, false)(t, s); s.done("p.example.com") }, 2},
		"the answer is lost, and forgotten":   {func(t *testing.T, s *scene) { lose(finalize, true)(t, s); s.done("p.example.com") }, 3},
		"the file is damaged":                 {func(t *testing.T, s *scene) { lose(finalize, true)(t, s); s.damage(t) }, 3},
		"the order is of another account":     {func(t *testing.T, s *scene) { lose(finalize, true)(t, s); s.change(t) }, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, acmetest.Options{})
			s.register()
			s.publish("p.example.com")
			s.issue("p.example.com")
			before := s.leaf("p.example.com")
			tc.cut(t, s)
			s.again()
			if all, err := s.Renew(t.Context(), nil, true); err != nil || !all[0].Issued || s.leaf("p.example.com").Equal(before) {
				t.Fatalf("%+v, %v", all, err)
			}
			if n := s.issuedBy(); n != tc.issued {
				t.Errorf("the CA has made %d certificates, want %d", n, tc.issued)
			}
			if _, err := os.Stat(s.pendingFile("p.example.com")); !os.IsNotExist(err) {
				t.Errorf("the order is still on disk: %v", err)
			}
			// And the one after that is a new one.
			if all, err := s.Renew(t.Context(), nil, true); err != nil || !all[0].Issued || s.issuedBy() != tc.issued+1 {
				t.Errorf("%+v, %v, %d certificates", all, err, s.issuedBy())
			}
		})
	}
}

func (s *scene) damage(t *testing.T) {
	if err := os.WriteFile(s.pendingFile("p.example.com"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// change has another account take over.
func (s *scene) change(t *testing.T) {
	told, _ := s.rotate()
	s.create(told[0].Create)
	if _, err := s.rotate(); err != nil {
		t.Fatal(err)
	}
}

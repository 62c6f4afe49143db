package issuance

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/tests/acmetest"
)

// newAccount is Pebble's path for it.
const newAccount = "/sign-me-up"

// cutShort runs what stops dead when it comes to a step, as a killed program does, and reports whether it came there.
func (s *scene) cutShort(step string, run func()) bool {
	s.again()
	cut := false
	s.reached = func(at string) {
		if at == step {
			cut = true
			runtime.Goexit()
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		run()
	}()
	<-done
	s.again()
	return cut
}

// Whatever cuts a registration short, the next run ends with an account, and the CA has no other.
func TestRegistrationCutShort(t *testing.T) {
	lost := errors.New("the network is gone")
	onNewAccount := func(fault func() (before, after error)) func(*http.Request) (error, error) {
		n := 0
		return func(r *http.Request) (error, error) {
			if r.URL.Path != newAccount {
				return nil, nil
			}
			if n++; n > 1 {
				return nil, nil
			}
			return fault()
		}
	}
	for name, first := range map[string]func(*testing.T, *scene){
		"killed with the key on disk": func(t *testing.T, s *scene) {
			if !s.cutShort("key kept", func() { _, _ = s.Register(t.Context()) }) {
				t.Error("was not cut short")
			}
		},
		"killed before the URI is on disk": func(t *testing.T, s *scene) {
			if !s.cutShort("known to the CA", func() { _, _ = s.Register(t.Context()) }) {
				t.Error("was not cut short")
			}
		},
		"request lost": func(t *testing.T, s *scene) {
			s.network.set(onNewAccount(func() (error, error) { return lost, nil }))
			_, err := s.Register(t.Context())
			checkRetry(t, err)
		},
		"answer lost": func(t *testing.T, s *scene) {
			s.network.set(onNewAccount(func() (error, error) { return nil, lost }))
			_, err := s.Register(t.Context())
			checkRetry(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, acmetest.Options{})
			first(t, s)
			if _, err := s.Account(); err == nil || fault.KindOf(err) != fault.Usage || !strings.Contains(fault.HintOf(err), "register") {
				t.Errorf("an account without URI: %v, hint %q", err, fault.HintOf(err))
			}
			s.again()
			uri := s.register()
			if n := s.ca.Accounts(); n != 1 {
				t.Errorf("the CA has %d accounts, want one", n)
			}
			if a, err := s.Account(); err != nil || a.URI != uri || a.Owner != Own {
				t.Errorf("account %+v, %v, want %s", a, err, uri)
			}
			path := filepath.Join(append(append([]string{s.Root}, s.ledgerDir()...), ledgerFile)...)
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("the file with the keys: %v, %v", info, err)
			}
		})
	}
}

func checkRetry(t *testing.T, err error) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), "the network is gone") || !strings.Contains(fault.HintOf(err), "run the same command again") {
		t.Errorf("error %v, hint %q", err, fault.HintOf(err))
	}
}

// What cannot be read is not written over: it may be all there is to an account.
func TestLedgerThatCannotBeRead(t *testing.T) {
	for _, content := range []string{"{", `{"version": 2}`, `{"version": 1, "current": {"key": "x", "uri": "https://ca.example/acct/1"}}`} {
		s := newScene(t, acmetest.Options{})
		dir, err := s.makeDir(s.ledgerDir()...)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, ledgerFile)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Register(t.Context()); err == nil || fault.KindOf(err) != fault.Usage {
			t.Errorf("%s: error %v, want one of kind Usage", content, err)
		}
		if text, _ := os.ReadFile(path); string(text) != content || s.ca.Accounts() > 0 {
			t.Errorf("%s: it is now %s, and the CA has %d accounts", content, text, s.ca.Accounts())
		}
	}
}

// A CA that wants an external account binding gets one, and says so where there is none; the key is shown nowhere.
func TestBinding(t *testing.T) {
	t.Parallel()
	const kid = "kid-1"
	key := []byte("0123456789abcdef0123456789abcdef")
	s := newScene(t, acmetest.Options{Bindings: map[string]string{kid: "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY"}})
	if _, err := s.Register(t.Context()); err == nil || fault.KindOf(err) != fault.Usage || !strings.Contains(err.Error(), "ACME_EAB_KID") {
		t.Errorf("without a binding: %v", err)
	}
	s.again()
	s.Binding = &Binding{KID: "kid-2", Key: key}
	if _, err := s.Register(t.Context()); err == nil || fault.KindOf(err) != fault.Other || !strings.Contains(err.Error(), "the CA says: ") {
		t.Errorf("with one that the CA does not know: %v", err)
	}
	s.again()
	s.Binding = &Binding{KID: kid, Key: key}
	r, err := s.Register(t.Context())
	if err != nil || !r.New || s.ca.Accounts() != 1 {
		t.Fatalf("%+v, %v, %d accounts", r, err, s.ca.Accounts())
	}
	s.publish("p.example.com")
	s.issue("p.example.com")
}

// A state directory that others could have made is refused before the CA hears of anything.
func TestForeignStateDirectory(t *testing.T) {
	for name, prepare := range map[string]func(root string) error{
		"a link": func(root string) error {
			if err := os.Mkdir(root+"-elsewhere", 0o700); err != nil {
				return err
			}
			return os.Symlink(root+"-elsewhere", root)
		},
		"others may write": func(root string) error { return errors.Join(os.Mkdir(root, 0o700), os.Chmod(root, 0o777)) },
		"a file":           func(root string) error { return os.WriteFile(root, nil, 0o600) },
	} {
		s := newScene(t, acmetest.Options{})
		if err := prepare(s.Root); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Register(t.Context()); err == nil || fault.KindOf(err) != fault.Usage || s.ca.Accounts() > 0 {
			t.Errorf("%s: error %v, %d accounts", name, err, s.ca.Accounts())
		}
	}
}

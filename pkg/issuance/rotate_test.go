package issuance

import (
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/tests/acmetest"
)

// rotate runs one step of a rotation and returns what it has told.
func (s *scene) rotate() (told []Rotation, err error) {
	s.again()
	err = s.Rotate(s.t.Context(), nil, func(r Rotation) error {
		told = append(told, r)
		return nil
	})
	return told, err
}

// No order fails while an account gives way to another: each finds a record for the account in use.
func TestRotate(t *testing.T) {
	t.Parallel()
	s := newScene(t, acmetest.Options{})
	old := s.register()
	s.publish(pair...)
	s.issue(pair...)

	told, err := s.rotate()
	if fault.KindOf(err) != fault.Verdict || len(told) != 1 || told[0].Done || told[0].From != old || len(told[0].Remove) > 0 {
		t.Fatalf("%+v, %v", told, err)
	}
	next := told[0].To
	for _, want := range []string{"_validation-persist.p.example.com. TXT", next, "policy=wildcard", "draft -01", "experimental", "both accounts"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, err)
		}
	}
	if hint := fault.HintOf(err); !strings.Contains(hint, "remove nothing") || !strings.Contains(hint, "persist-issue rotate") || strings.Contains(err.Error()+hint, "register") {
		t.Errorf("hint %q", hint)
	}
	if o := s.issue(pair...); o.Account != old {
		t.Errorf("issued to %s, want %s, which has the record", o.Account, old)
	}

	s.create(told[0].Create)
	if o := s.issue(pair...); o.Account != old {
		t.Errorf("issued to %s before the change", o.Account)
	}
	told, err = s.rotate()
	if err != nil || len(told) != 1 || !told[0].Done || told[0].To != next || told[0].From != old {
		t.Fatalf("%+v, %v", told, err)
	}
	if o := s.issue(pair...); o.Account != next {
		t.Errorf("issued to %s after the change, want %s", o.Account, next)
	}
	s.delete(told[0].Remove)
	s.issue(pair...)
	if said := s.said.take(); said != "" {
		t.Errorf("warnings without a cause: %s", said)
	}
	if n := s.ca.Accounts(); n != 2 {
		t.Errorf("the CA has %d accounts, want two", n)
	}
}

// Wherever a rotation is killed, running it again finishes it, with one new account and the same last words.
func TestRotationCutShort(t *testing.T) {
	t.Parallel()
	steps := []string{"key kept", "known to the CA", "registered", "about to switch", "switched", "told"}
	for _, step := range steps {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, acmetest.Options{})
			old := s.register()
			s.publish("p.example.com")
			s.issue("p.example.com")
			cut, done := false, Rotation{}
			for range 6 {
				if !cut {
					cut = s.cutShort(step, func() { _, _ = s.rotate1() })
				}
				a, err := s.Account()
				if err != nil {
					t.Fatal(err)
				}
				if o := s.issue("p.example.com"); o.Account != a.URI {
					t.Fatalf("issued to %s, in use is %s", o.Account, a.URI)
				}
				told, err := s.rotate()
				if len(told) == 0 {
					t.Fatalf("nothing told: %v", err)
				}
				last := told[len(told)-1]
				if last.Done {
					done = last
					break
				}
				s.create(last.Create)
			}
			if !cut || done.From != old || len(done.Remove) == 0 {
				t.Errorf("cut short: %v; ends with %+v", cut, done)
			}
			if n := s.ca.Accounts(); n != 2 {
				t.Errorf("the CA has %d accounts, want two", n)
			}
			if a, err := s.Account(); err != nil || a.URI != done.To {
				t.Errorf("in use is %+v, %v, want %s", a, err, done.To)
			}
		})
	}
}

// rotate1 is rotate without a fresh start.
func (s *scene) rotate1() (Rotation, error) {
	var told Rotation
	err := s.Rotate(s.t.Context(), nil, func(r Rotation) error {
		told = r
		return nil
	})
	return told, err
}

// What fails half-way says what is in place and what to run, and that is never a registration.
func TestRotationFailsHalfWay(t *testing.T) {
	t.Parallel()
	lost := errors.New("the network is gone")
	for name, tc := range map[string]struct {
		fault func(*http.Request) (before, after error)
		place string
	}{
		"the CA is away":               {func(*http.Request) (error, error) { return lost, nil }, "whether the CA has the account it will be asked first"},
		"the CA's answer is lost":      {func(r *http.Request) (error, error) { return nil, map[bool]error{true: lost}[r.URL.Path == newAccount] }, "whether the CA has the account it will be asked first"},
		"the CA is away after the key": {nil, "is registered, and its key kept"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, acmetest.Options{})
			old := s.register()
			s.publish("p.example.com")
			s.issue("p.example.com")
			s.again()
			if tc.fault == nil {
				s.reached = func(step string) {
					if step == "registered" {
						s.network.set(func(*http.Request) (error, error) { return lost, nil })
					}
				}
			} else {
				s.network.set(tc.fault)
			}
			_, err := s.rotate1()
			s.network.set(nil)
			if err == nil {
				t.Fatal("no error")
			}
			if !strings.Contains(err.Error(), "in place: "+old+" is in use as before") || !strings.Contains(err.Error(), tc.place) {
				t.Errorf("it is not said what is in place: %v", err)
			}
			if hint := fault.HintOf(err); !strings.Contains(hint, "persist-issue rotate") || strings.Contains(hint, "register") {
				t.Errorf("hint %q", hint)
			}
			s.again()
			if o := s.issue("p.example.com"); o.Account != old {
				t.Errorf("issued to %s", o.Account)
			}
			if told, err := s.rotate(); fault.KindOf(err) != fault.Verdict || len(told) != 1 || s.ca.Accounts() != 2 {
				t.Errorf("%+v, %v, %d accounts", told, err, s.ca.Accounts())
			}
		})
	}
}

// A disk that takes no more in the instant of the change leaves the old account in use.
func TestRotationCannotBeNoted(t *testing.T) {
	s := newScene(t, acmetest.Options{})
	old := s.register()
	s.publish("p.example.com")
	s.issue("p.example.com")
	told, _ := s.rotate()
	s.create(told[0].Create)
	s.again()
	l, err := s.ledger()
	if err != nil {
		t.Fatal(err)
	}
	s.reached = func(step string) {
		if step == "about to switch" {
			if err := errors.Join(os.Rename(l.path, l.path+".kept"), os.Mkdir(l.path, 0o700)); err != nil {
				t.Error(err)
			}
		}
	}
	_, err = s.rotate1()
	if err == nil || !strings.Contains(err.Error(), "in place: "+old+" is in use as before") || !strings.Contains(err.Error(), told[0].To+" is registered") {
		t.Errorf("error %v", err)
	}
	if err := errors.Join(os.Remove(l.path), os.Rename(l.path+".kept", l.path)); err != nil {
		t.Fatal(err)
	}
	if told, err := s.rotate(); err != nil || !told[0].Done || s.ca.Accounts() != 2 {
		t.Errorf("%+v, %v, %d accounts", told, err, s.ca.Accounts())
	}
}

// As long as one server does not show the record, or a CAA record keeps the new account out, nothing changes.
func TestRotationWaits(t *testing.T) {
	s := newScene(t, acmetest.Options{})
	old := s.register()
	s.publish("p.example.com")
	s.issue("p.example.com")
	told, _ := s.rotate()
	for _, r := range told[0].Create[0].Records {
		if r.Type == "TXT" {
			s.Add(zone, strings.Replace(r.String(), ". ", ". 300 IN ", 1))
		}
	}
	if _, err := s.rotate(); fault.KindOf(err) != fault.Verdict || !strings.Contains(err.Error(), "a CAA record keeps the CA from issuing") {
		t.Errorf("the CAA record is for the old account alone: %v", err)
	}
	s.server.SetDead(true)
	if _, err := s.rotate(); fault.KindOf(err) != fault.Unknown {
		t.Errorf("nobody can tell: %v, kind %v", err, fault.KindOf(err))
	}
	s.server.SetDead(false)
	if a, err := s.Account(); err != nil || a.URI != old {
		t.Errorf("in use is %+v, %v, want %s", a, err, old)
	}
}

// The change waits until no CA can remember the names without the new records, within half of the time.
func TestRotationSettles(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		memory, least, most time.Duration
		lowered             bool
	}{{2 * time.Second, 2 * time.Second, 4 * time.Second, false}, {time.Hour, 3 * time.Second, 5 * time.Second, true}} {
		s := newScene(t, acmetest.Options{})
		s.register()
		s.publish("p.example.com")
		s.issue("p.example.com")
		told, _ := s.rotate()
		s.create(told[0].Create)
		s.Budget, s.Memory = 8*time.Second, tc.memory
		start := time.Now()
		told, err := s.rotate()
		if took := time.Since(start); err != nil || !told[0].Done || took < tc.least || took > tc.most {
			t.Errorf("%+v: after %v %+v, %v", tc, took, told, err)
		}
		if said := s.said.take(); tc.lowered != strings.Contains(said, "PROPAGATION_SETTLE") {
			t.Errorf("%+v: said %s", tc, said)
		}
	}
}

// The settings may name an account that a rotation cannot take out of use.
func TestRotationAgainstTheSettings(t *testing.T) {
	s := newScene(t, acmetest.Options{})
	uri := s.register()
	s.publish("p.example.com")
	s.issue("p.example.com")
	s.Choice = uri
	if _, err := s.rotate(); fault.KindOf(err) != fault.Usage || s.ca.Accounts() != 1 {
		t.Errorf("error %v, %d accounts", err, s.ca.Accounts())
	}
}

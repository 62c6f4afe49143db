package challenge

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/certhook/certhook/pkg/certbot"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/journal"
)

// present runs all auth calls of an order and returns the error of the last.
func (l *lab) present(t *testing.T, by Caller, calls []certbot.Challenge) error {
	t.Helper()
	var last error
	for _, c := range calls {
		_, last = l.Present(t.Context(), c, by)
		if _, aborted := errors.AsType[*Aborted](last); aborted && !c.Last() {
			t.Errorf("%s: aborted before the last call", c.Domain)
		}
	}
	return last
}

func TestAbort(t *testing.T) {
	tests := map[string]struct {
		domains []string
		prepare func(*lab)
		aborted bool
		kind    fault.Kind
	}{
		"refused first": {domains: []string{"undelegated.example.com", "a.example.com"}, aborted: true},
		"refused last":  {domains: []string{"a.example.com", "undelegated.example.com"}, aborted: true, kind: fault.Verdict},
		"one write fails": {
			domains: []string{"a.example.com", "b.example.com"}, aborted: true, kind: fault.Provider,
			prepare: func(l *lab) { l.provider.fail["add "+record("a.example.com")] = errRefused },
		},
		"zone look-up fails": {
			domains: []string{"a.example.com"}, aborted: true, kind: fault.Provider,
			prepare: func(l *lab) { l.provider.fail["zone"] = errRefused },
		},
		// Certbot goes on to the CA, and may well succeed.
		"not propagated in time": {
			domains: []string{"a.example.com"}, kind: fault.Propagation,
			prepare: func(l *lab) { l.Hooks.Propagation.Timeout = time.Second; l.ns[0].SetLag(time.Hour) },
		},
	}
	for name, tt := range tests {
		for _, on := range []bool{true, false} {
			t.Run(name+map[bool]string{true: "", false: ", without the setting"}[on], func(t *testing.T) {
				l := newLab(t)
				l.AbortOnFailure = on
				if tt.prepare != nil {
					tt.prepare(l)
				}
				calls := order(1, tt.domains...)
				err := l.present(t, caller(t), calls)
				if _, aborted := errors.AsType[*Aborted](err); aborted != (tt.aborted && on) {
					t.Fatalf("aborted: %v; error %v", aborted, err)
				}
				if tt.kind != fault.Other {
					wantKind(t, err, tt.kind)
				}
				if tt.aborted && on {
					for _, domain := range tt.domains {
						l.wantValues(t, domain)
					}
					if got := l.live(t); len(got) != 0 {
						t.Errorf("left in the journal: %q", got)
					}
				}
				if !tt.aborted {
					l.wantValues(t, "a.example.com", val(1))
				}
			})
		}
	}
}

// A certbot that dies while its hook waits, or writes and then waits for a moment only, asks for no cleanup.
func TestOrphanRemovesItsValues(t *testing.T) {
	for name, tt := range map[string]struct {
		at  StepName
		lag time.Duration
	}{"while it waits": {StepVisible, time.Hour}, "while it writes": {StepWrite, 0}} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.ns[0].SetLag(tt.lag)
			run, end := process(t)
			by := caller(t)
			by.Run = run
			observe := l.Observe
			l.Observe = func(s Step) {
				observe(s)
				if s.Name == tt.at {
					end()
				}
			}
			l.Hooks.Propagation.Timeout = time.Minute
			err := l.present(t, by, order(1, "a.example.com", "b.example.com"))
			wantKind(t, err, fault.Other, "gone")
			l.wantValues(t, "a.example.com")
			l.wantValues(t, "b.example.com")
			if got := l.live(t); len(got) != 0 {
				t.Errorf("left in the journal: %q", got)
			}
		})
	}
}

// A CA may remember for a while what it saw at a name; two values of one order come at once.
func TestSettle(t *testing.T) {
	const settle = 1500 * time.Millisecond
	settled := func(l *lab) bool {
		return slices.ContainsFunc(l.steps, func(s Step) bool { return s.Name == StepSettle })
	}
	other, _ := process(t)
	for name, tt := range map[string]struct {
		second []certbot.Challenge
		by     func(Caller) Caller
		waits  bool
	}{
		"next attempt of another run":   {second: order(5, "a.example.com"), by: func(c Caller) Caller { c.Run = other; return c }, waits: true},
		"next order of the same run":    {second: order(5, "a.example.com"), by: func(c Caller) Caller { return c }, waits: true},
		"another name":                  {second: order(5, "b.example.com"), by: func(c Caller) Caller { return c }},
		"call by call, as next attempt": {second: order(5, "a.example.com"), by: func(c Caller) Caller { return Caller{parent: c.parent} }, waits: true},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.Settle = settle
			by := caller(t)
			first := order(1, "a.example.com", "a.example.com")
			if err := l.present(t, by, first); err != nil {
				t.Fatal(err)
			}
			if settled(l) {
				t.Fatal("the first attempt waited for nobody")
			}
			changed := time.Now() // no later than the change itself
			if _, err := l.CleanUp(t.Context(), first[0], by); err != nil {
				t.Fatal(err)
			}
			if err := l.present(t, tt.by(by), tt.second); err != nil {
				t.Fatal(err)
			}
			if settled(l) != tt.waits {
				t.Errorf("waited: %v, want %v", settled(l), tt.waits)
			}
			if since := time.Since(changed); tt.waits && since < settle-50*time.Millisecond {
				t.Errorf("returned %v after the change", since)
			}
		})
	}
}

// After a clock was set back, a change seems to lie in the future.
func TestSettleIgnoresTheFuture(t *testing.T) {
	l := newLab(t)
	l.Settle = time.Minute
	alive, _ := process(t)
	put(t, l, alive, -time.Hour, func(e *journal.Entry) { e.State = journal.Removed })
	if err := l.world.RemoveTXT(alias, record("a.example.com"), val(1)); err != nil {
		t.Fatal(err)
	}
	if err := l.present(t, caller(t), order(5, "a.example.com")); err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(l.steps, func(s Step) bool { return s.Name == StepSettle }) {
		t.Error("it waited")
	}
}

// An order that was cleaned up before its values were written changed nothing.
func TestSettleIgnoresWhatWasNeverWritten(t *testing.T) {
	l := newLab(t)
	l.Settle = time.Minute
	by := caller(t)
	calls := order(1, "a.example.com", "undelegated.example.com")
	if _, err := l.Present(t.Context(), calls[0], by); err != nil {
		t.Fatal(err)
	}
	if _, err := l.CleanUp(t.Context(), calls[0], by); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := l.present(t, by, order(5, "a.example.com")); err != nil {
		t.Fatal(err)
	}
	if time.Since(began) > 30*time.Second {
		t.Error("it waited for a change that never was")
	}
}

package challenge

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/certhook/certhook/pkg/certbot"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/journal"
	"github.com/certhook/certhook/pkg/provider"
)

// A clean-up that lies is the worst one: it must say "not removed", keep the entry, and the next run
// must do it.
func TestFailedCleanupIsToldAndRetried(t *testing.T) {
	for name, fail := range map[string]string{"removal": "remove", "one of two removals": "remove " + record("b.example.com")} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			run, end := process(t)
			by := caller(t)
			by.Run = run
			calls := order(1, "a.example.com", "b.example.com")
			for _, c := range calls {
				if _, err := l.Present(t.Context(), c, by); err != nil {
					t.Fatal(err)
				}
			}
			l.provider.set(func() { l.provider.fail[fail] = errRefused })
			text, err := l.CleanUp(t.Context(), calls[0], by)
			wantKind(t, err, fault.Provider, "not removed", record("b.example.com"))
			if text != "" || fault.HintOf(err) == "" {
				t.Errorf("a failed cleanup says %q, with the hint %q", text, fault.HintOf(err))
			}
			if got := l.live(t); len(got) == 0 {
				t.Error("the entry is gone from the journal")
			}
			end() // certbot ends; some later hook run sweeps
			l.provider.set(func() { delete(l.provider.fail, fail) })
			l.Sweep(t.Context())
			l.wantValues(t, "a.example.com")
			l.wantValues(t, "b.example.com")
			if ids, _ := l.Journal.IDs(); len(ids) != 0 {
				t.Errorf("journal files left: %v", ids)
			}
		})
	}
}

// An ID of the zone that was wrong when the value was sent is not used for ever.
func TestCleanupWithAWrongZoneID(t *testing.T) {
	for name, today := range map[string]string{"still wrong": mistyped, "looked up": "", "corrected": "0123"} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.PinnedZoneID = mistyped
			c := order(1, "a.example.com")[0]
			if _, err := l.Present(t.Context(), c, caller(t)); err != nil {
				t.Fatal(err)
			}
			l.PinnedZoneID = today
			_, err := l.CleanUp(t.Context(), c, caller(t))
			if today == mistyped {
				wantKind(t, err, fault.Provider, "not removed")
				if got := l.provider.called("remove"); len(got) != 1 {
					t.Errorf("%d tries", len(got))
				}
				return
			}
			if err != nil {
				t.Error(err)
			}
			l.wantValues(t, "a.example.com")
		})
	}
}

// The journal may be lost, as with a container that was made anew: name and value suffice.
func TestCleanupWithoutJournal(t *testing.T) {
	for _, failing := range []bool{false, true} {
		l := newLab(t)
		if err := l.world.AddTXT(alias, record("a.example.com"), val(1), 60); err != nil {
			t.Fatal(err)
		}
		if err := l.world.AddTXT(alias, record("a.example.com"), val(2), 60); err != nil {
			t.Fatal(err)
		}
		c := order(1, "a.example.com")[0]
		if failing {
			l.provider.fail["zone"] = errRefused
			_, err := l.CleanUp(t.Context(), c, caller(t))
			wantKind(t, err, fault.Provider, "not removed")
			if got := l.live(t); len(got) != 1 {
				t.Errorf("the journal holds %q, want what was not removed", got)
			}
			l.provider.set(func() { delete(l.provider.fail, "zone") })
		}
		if _, err := l.CleanUp(t.Context(), c, caller(t)); err != nil {
			t.Fatal(err)
		}
		l.wantValues(t, "a.example.com", val(2))
		text, err := l.CleanUp(t.Context(), c, caller(t))
		if err != nil || !strings.Contains(text, "already absent") {
			t.Errorf("second removal: %q, %v; want already absent", text, err)
		}
	}
}

// A request that got no answer may take effect after the cleanup looked, so one look is not enough.
func TestRequestThatTakesEffectLate(t *testing.T) {
	l := newLab(t)
	run, end := process(t)
	by := caller(t)
	by.Run = run
	c := order(1, "a.example.com")[0]
	l.provider.fail["add"] = errRefused
	if _, err := l.Present(t.Context(), c, by); err == nil {
		t.Fatal("success without an answer")
	}
	text, err := l.CleanUp(t.Context(), c, by)
	if err != nil || strings.Contains(text, "already absent") || !strings.Contains(text, "again later") {
		t.Errorf("cleanup: %q, %v", text, err)
	}
	end()
	if err := l.world.AddTXT(alias, record("a.example.com"), val(1), 60); err != nil {
		t.Fatal(err)
	}
	l.Sweep(t.Context()) // too early to look again
	f, err := l.Journal.Lock(t.Context(), journal.RunID(run))
	if err != nil || len(f.Entries) != 1 || f.Entries[0].State != journal.Absent {
		t.Fatalf("the journal has forgotten it: %+v, %v", f, err)
	}
	f.Entries[0].Time = f.Entries[0].Time.Add(-lateRequest)
	if err := f.Save(); err != nil {
		t.Fatal(err)
	}
	f.Close()
	l.Sweep(t.Context())
	l.wantValues(t, "a.example.com")
	if ids, _ := l.Journal.IDs(); len(ids) != 0 {
		t.Errorf("journal files left: %v", ids)
	}
}

// put files a written value of some run in the journal and in the zone.
func put(t *testing.T, l *lab, run certbot.Run, age time.Duration, change func(*journal.Entry)) {
	t.Helper()
	e := journal.Entry{
		Domain: "a.example.com", Name: record("a.example.com"), Value: val(1), Alias: alias,
		Provider: "memory", Zone: provider.Zone{Name: alias, ID: "id-" + alias},
	}
	e.Set(journal.Written)
	e.Time = e.Time.Add(-age)
	if change != nil {
		change(&e)
	}
	f, err := l.Journal.Lock(t.Context(), journal.RunID(run))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.Run = run
	f.Begin(1, 0)
	f.Put(e)
	if err := f.Save(); err != nil {
		t.Fatal(err)
	}
	if err := l.world.AddTXT(alias, record("a.example.com"), val(1), 60); err != nil {
		t.Fatal(err)
	}
}

func TestSweep(t *testing.T) {
	alive, _ := process(t)
	dead, end := process(t)
	end()
	elsewhere := alive
	elsewhere.Boot = "another"
	tests := map[string]struct {
		run    certbot.Run
		age    time.Duration
		change func(*journal.Entry)
		swept  bool
	}{
		"dead run":                       {run: dead, swept: true},
		"run that lives":                 {run: alive, age: 48 * time.Hour},
		"run of another boot, fresh":     {run: elsewhere, age: 59 * time.Minute},
		"run of another boot, old":       {run: elsewhere, age: 61 * time.Minute, swept: true},
		"unknown run, fresh":             {age: time.Minute},
		"unknown run, old":               {age: 2 * time.Hour, swept: true},
		"zone not yet known":             {run: dead, change: func(e *journal.Entry) { e.Zone = provider.Zone{} }, swept: true},
		"outside the alias zones":        {run: dead, change: func(e *journal.Entry) { e.Name = "www.example.com" }},
		"the alias zone itself":          {run: dead, change: func(e *journal.Entry) { e.Name = alias }},
		"similar to the alias zone":      {run: dead, change: func(e *journal.Entry) { e.Name = "x.notdeleg.example.net" }},
		"not a dns-01 value":             {run: dead, change: func(e *journal.Entry) { e.Value = "v=spf1 -all" }},
		"another provider":               {run: dead, change: func(e *journal.Entry) { e.Provider = "rfc2136" }},
		"name outside the entry's zone":  {run: dead, change: func(e *journal.Entry) { e.Zone.Name = "example.com" }},
		"another value at the same name": {run: dead, change: func(e *journal.Entry) { e.Value = val(2) }},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			put(t, l, tt.run, tt.age, tt.change)
			l.Sweep(t.Context())
			if tt.swept {
				l.wantValues(t, "a.example.com")
				if got := l.live(t); len(got) != 0 {
					t.Errorf("left in the journal: %q", got)
				}
			} else {
				l.wantValues(t, "a.example.com", val(1))
			}
		})
	}
}

func TestSweepWithoutDelegation(t *testing.T) {
	dead, end := process(t)
	end()
	l := newLab(t)
	l.Targets.Aliases = nil
	put(t, l, dead, 0, nil) // made while an alias zone was configured
	l.Sweep(t.Context())
	l.wantValues(t, "a.example.com", val(1))
}

func TestSweepPassesOverDamagedFiles(t *testing.T) {
	dead, end := process(t)
	end()
	l := newLab(t)
	put(t, l, dead, 0, nil)
	bad := filepath.Join(l.state, "journal", "0.json")
	if err := os.WriteFile(bad, []byte(`{"version":1`), 0o600); err != nil {
		t.Fatal(err)
	}
	l.Sweep(t.Context())
	l.wantValues(t, "a.example.com")
	if _, err := os.Stat(bad); err != nil {
		t.Errorf("the damaged file: %v", err)
	}
	if !strings.Contains(l.log.String(), bad) {
		t.Error("the log does not name the damaged file")
	}
}

func TestBothHooksSweep(t *testing.T) {
	dead, end := process(t)
	end()
	for name, call := range map[string]func(*lab, certbot.Challenge, Caller) (string, error){
		"auth":    func(l *lab, c certbot.Challenge, by Caller) (string, error) { return l.Present(t.Context(), c, by) },
		"cleanup": func(l *lab, c certbot.Challenge, by Caller) (string, error) { return l.CleanUp(t.Context(), c, by) },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			put(t, l, dead, 0, nil)
			if _, err := call(l, order(5, "b.example.com")[0], caller(t)); err != nil {
				t.Fatal(err)
			}
			l.wantValues(t, "a.example.com")
		})
	}
}

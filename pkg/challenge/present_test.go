package challenge

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/certhook/certhook/pkg/certbot"
	"github.com/certhook/certhook/pkg/fault"
)

var errRefused = fault.Errorf(fault.Provider, "403 from the API")

func TestOrderIsWrittenByItsLastCallAndRemovedByItsFirstCleanup(t *testing.T) {
	l := newLab(t)
	by := caller(t)
	calls := order(1, "a.example.com", "example.com", "example.com")
	foreign := val(99)
	if err := l.world.AddTXT(alias, record("example.com"), foreign, 60); err != nil {
		t.Fatal(err)
	}
	for _, c := range calls[:2] {
		if _, err := l.Present(t.Context(), c, by); err != nil {
			t.Fatal(err)
		}
		if got := l.provider.called("add"); len(got) != 0 {
			t.Fatalf("written before the last call: %q", got)
		}
	}
	if _, err := l.Present(t.Context(), calls[2], by); err != nil {
		t.Fatal(err)
	}
	l.wantValues(t, "a.example.com", val(1))
	l.wantValues(t, "example.com", val(2), val(3), foreign)
	if got := l.provider.called("zone"); !slices.Equal(got, []string{alias}) {
		t.Errorf("zones looked up: %q, want the alias zone once", got)
	}

	if _, err := l.CleanUp(t.Context(), calls[0], by); err != nil {
		t.Fatal(err)
	}
	l.wantValues(t, "a.example.com")
	l.wantValues(t, "example.com", foreign)
	before := len(l.provider.called("remove"))
	for _, c := range calls[1:] {
		text, err := l.CleanUp(t.Context(), c, by)
		if err != nil || !strings.Contains(text, "nothing left to do") {
			t.Errorf("later cleanup: %q, %v", text, err)
		}
	}
	if got := l.provider.called("remove"); len(got) != before || before != 3 {
		t.Errorf("removals: %q, want three, all by the first call", got)
	}
	if got := l.provider.called("zone"); len(got) != 1 {
		t.Errorf("cleanup looked zones up again: %q", got)
	}
}

// Certbot before 1.4 does not number its calls, and a hook in a strange place cannot tell its certbot:
// then no call may wait for another.
func TestCallsThatFormNoOrderAreWrittenAtOnce(t *testing.T) {
	for name, change := range map[string]func(*certbot.Challenge, *Caller){
		"old certbot": func(c *certbot.Challenge, _ *Caller) {
			*c = certbot.Challenge{Domain: c.Domain, Validation: c.Validation, Size: 1}
		},
		"untraceable certbot": func(_ *certbot.Challenge, by *Caller) { *by = Caller{parent: by.parent} },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			calls := order(1, "example.com", "example.com")
			by := caller(t)
			for i := range calls {
				change(&calls[i], &by)
				if _, err := l.Present(t.Context(), calls[i], by); err != nil {
					t.Fatal(err)
				}
			}
			l.wantValues(t, "example.com", val(1), val(2))
			if _, err := l.CleanUp(t.Context(), calls[0], by); err != nil {
				t.Fatal(err)
			}
			l.wantValues(t, "example.com", val(2))
			if _, err := l.CleanUp(t.Context(), calls[1], by); err != nil {
				t.Fatal(err)
			}
			l.wantValues(t, "example.com")
			if got := l.live(t); len(got) != 0 {
				t.Errorf("left in the journal: %q", got)
			}
		})
	}
}

func TestRefusedNameDoesNotKeepTheOthersBack(t *testing.T) {
	for place := range 3 {
		domains := []string{"a.example.com", "b.example.com", "c.example.com"}
		domains[place] = "undelegated.example.com"
		t.Run(strings.Join(domains, ","), func(t *testing.T) {
			l := newLab(t)
			by := caller(t)
			calls := order(1, domains...)
			for i, c := range calls {
				_, err := l.Present(t.Context(), c, by)
				switch {
				case i == place:
					wantKind(t, err, fault.Verdict, "_acme-challenge.undelegated.example.com.", "CNAME", record("undelegated.example.com")+".")
				case err != nil:
					t.Fatalf("%s: %v", c.Domain, err)
				}
			}
			if got := l.provider.called("add"); len(got) != 2 || slices.Contains(got, record("undelegated.example.com")) {
				t.Errorf("written: %q, want the two other names", got)
			}
			text, err := l.CleanUp(t.Context(), calls[place], by)
			if err != nil {
				t.Errorf("cleanup of the refused name: %q, %v", text, err)
			}
			if got := l.provider.called("remove"); len(got) != 2 {
				t.Errorf("removed: %q, want the two that were written", got)
			}
		})
	}
}

func TestFailedWriteDoesNotKeepTheOthersBack(t *testing.T) {
	l := newLab(t)
	by := caller(t)
	l.provider.fail["add "+record("a.example.com")] = errRefused
	calls := order(1, "a.example.com", "b.example.com")
	if _, err := l.Present(t.Context(), calls[0], by); err != nil {
		t.Fatal(err)
	}
	_, err := l.Present(t.Context(), calls[1], by)
	wantKind(t, err, fault.Provider, "403")
	l.wantValues(t, "b.example.com", val(2))
	waited := slices.ContainsFunc(l.steps, func(s Step) bool { return s.Name == StepVisible && s.Record == record("b.example.com") })
	if !waited {
		t.Error("the value that was written was not waited for")
	}
	// What failed may be there all the same, so the cleanup looks.
	if _, err := l.CleanUp(t.Context(), calls[0], by); err != nil {
		t.Fatal(err)
	}
	if got := l.provider.called("remove"); len(got) != 2 {
		t.Errorf("removals: %q, want both", got)
	}
}

func TestNothingIsWritten(t *testing.T) {
	tests := map[string]struct {
		run  func(t *testing.T, l *lab, by Caller) error
		kind fault.Kind
	}{
		"an earlier call is missing": {func(t *testing.T, l *lab, by Caller) error {
			_, err := l.Present(t.Context(), order(1, "a.example.com", "b.example.com")[1], by)
			return err
		}, fault.Other},
		"the order was cleaned up": {func(t *testing.T, l *lab, by Caller) error {
			calls := order(1, "a.example.com", "b.example.com")
			if _, err := l.Present(t.Context(), calls[0], by); err != nil {
				t.Fatal(err)
			}
			if _, err := l.CleanUp(t.Context(), calls[0], by); err != nil {
				t.Fatal(err)
			}
			_, err := l.Present(t.Context(), calls[1], by)
			return err
		}, fault.Other},
		"certbot is dead": {func(t *testing.T, l *lab, by Caller) error {
			run, end := process(t)
			end()
			by.Run = run
			_, err := l.Present(t.Context(), order(1, "a.example.com")[0], by)
			return err
		}, fault.Other},
		"the parent is another": {func(t *testing.T, l *lab, by Caller) error {
			by.parent++
			_, err := l.Present(t.Context(), order(1, "a.example.com")[0], by)
			return err
		}, fault.Other},
		"the zone look-up fails": {func(t *testing.T, l *lab, by Caller) error {
			l.provider.fail["zone"] = errRefused
			_, err := l.Present(t.Context(), order(1, "a.example.com")[0], by)
			return err
		}, fault.Provider},
		"the journal cannot be written": {func(t *testing.T, l *lab, by Caller) error {
			// A directory where the temporary file's rename has to land.
			if err := os.RemoveAll(filepath.Join(l.state, "journal")); err != nil {
				t.Fatal(err)
			}
			_, err := l.Present(t.Context(), order(1, "a.example.com")[0], by)
			return err
		}, fault.Usage},
		"the CNAME is missing": {func(t *testing.T, l *lab, by Caller) error {
			_, err := l.Present(t.Context(), order(1, "undelegated.example.com")[0], by)
			return err
		}, fault.Verdict},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			wantKind(t, tt.run(t, l, caller(t)), tt.kind)
			if got := l.provider.called("add"); len(got) != 0 {
				t.Errorf("written: %q", got)
			}
		})
	}
}

// A failed look-up must not fall back to the zone of an earlier call.
func TestFailedLookUpAfterAGoodOne(t *testing.T) {
	l := newLab(t)
	by := caller(t)
	if _, err := l.Present(t.Context(), order(1, "a.example.com")[0], by); err != nil {
		t.Fatal(err)
	}
	l.provider.set(func() { l.provider.fail["zone"] = errRefused })
	_, err := l.Present(t.Context(), order(2, "b.example.com")[0], by)
	wantKind(t, err, fault.Provider)
	if got := l.provider.called("add"); len(got) != 1 {
		t.Errorf("written: %q, want only the first", got)
	}
}

// What cannot be told must not stop an issuance that would have worked.
func TestPreflightThatCannotTellGoesOn(t *testing.T) {
	l := newLab(t)
	l.production.SetRcode(2)
	if _, err := l.Present(t.Context(), order(1, "a.example.com")[0], caller(t)); err != nil {
		t.Fatal(err)
	}
	l.wantValues(t, "a.example.com", val(1))
	if !strings.Contains(l.log.String(), "level=WARN") {
		t.Error("no warning in the log")
	}
}

// In one renew the lineages follow each other under one certbot process.
func TestNextOrderOfTheRun(t *testing.T) {
	l := newLab(t)
	by := caller(t)
	first, second := order(1, "a.example.com")[0], order(2, "b.example.com")[0]
	if _, err := l.Present(t.Context(), first, by); err != nil {
		t.Fatal(err)
	}
	l.provider.set(func() { l.provider.fail["remove"] = errRefused })
	_, err := l.CleanUp(t.Context(), first, by)
	wantKind(t, err, fault.Provider, "not removed")

	// Removal still fails, which is no reason not to serve the second lineage.
	if _, err := l.Present(t.Context(), second, by); err != nil {
		t.Fatal(err)
	}
	l.wantValues(t, "b.example.com", val(2))
	l.provider.set(func() { delete(l.provider.fail, "remove") })
	if _, err := l.CleanUp(t.Context(), second, by); err != nil {
		t.Fatal(err)
	}
	l.wantValues(t, "a.example.com")
	l.wantValues(t, "b.example.com")
	if got := l.live(t); len(got) != 0 {
		t.Errorf("left in the journal: %q", got)
	}
}

func TestJournalStandsBeforeTheWrite(t *testing.T) {
	l := newLab(t)
	var entries string
	l.provider.before = func(call string) {
		if strings.HasPrefix(call, "add ") {
			files, _ := filepath.Glob(filepath.Join(l.state, "journal", "*.json"))
			for _, f := range files {
				raw, err := os.ReadFile(f)
				if err != nil {
					t.Error(err)
				}
				entries += string(raw)
			}
		}
	}
	if _, err := l.Present(t.Context(), order(1, "a.example.com")[0], caller(t)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{record("a.example.com"), val(1), `"writing"`, `"id-` + alias + `"`} {
		if !strings.Contains(entries, want) {
			t.Errorf("when the value was sent, the journal lacked %s:\n%s", want, entries)
		}
	}
}

func TestErrorsJoinOwnFirst(t *testing.T) {
	l := newLab(t)
	by := caller(t)
	l.provider.fail["add "+record("a.example.com")] = errRefused
	calls := order(1, "a.example.com", "undelegated.example.com")
	if _, err := l.Present(t.Context(), calls[0], by); err != nil {
		t.Fatal(err)
	}
	_, err := l.Present(t.Context(), calls[1], by)
	wantKind(t, err, fault.Verdict)
	if !errors.Is(err, errRefused) {
		t.Errorf("%v does not tell of the failed write", err)
	}
}

package challenge

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/certhook/certhook/pkg/fault"
)

func TestRehearse(t *testing.T) {
	l := newLab(t)
	if err := l.Rehearse(t.Context(), []string{"a.example.com", "b.example.com"}); err != nil {
		t.Fatal(err)
	}
	for _, domain := range []string{"a.example.com", "b.example.com"} {
		l.wantValues(t, domain)
		for _, name := range []StepName{StepTarget, StepCNAME, StepZone, StepWrite, StepVisible, StepThrough, StepRemove} {
			if !slices.ContainsFunc(l.steps, func(s Step) bool { return s.Name == name && s.Record == record(domain) && s.Err == nil }) {
				t.Errorf("no step %q for %s", name, domain)
			}
		}
	}
	if got := l.provider.called("add"); len(got) != 2 {
		t.Errorf("written: %q", got)
	}
	if ids, _ := l.Journal.IDs(); len(ids) != 0 {
		t.Errorf("journal files left: %v", ids)
	}
}

func TestRehearseTellsWhatWouldFail(t *testing.T) {
	tests := map[string]struct {
		prepare func(*lab)
		domain  string
		kind    fault.Kind
		word    string
	}{
		"no CNAME":       {domain: "undelegated.example.com", kind: fault.Verdict, word: "CNAME"},
		"no credentials": {prepare: func(l *lab) { l.provider.fail["zone"] = errRefused }, kind: fault.Provider, word: "403"},
		"write refused":  {prepare: func(l *lab) { l.provider.fail["add"] = errRefused }, kind: fault.Provider, word: "403"},
		"not removed":    {prepare: func(l *lab) { l.provider.fail["remove"] = errRefused }, kind: fault.Provider, word: "not removed"},
		// A hook would go on, for the check must not stop what might work; a rehearsal is asked for proof.
		"cannot tell": {prepare: func(l *lab) { l.production.SetRcode(2) }, kind: fault.Unknown, word: "cannot tell"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			if tt.prepare != nil {
				tt.prepare(l)
			}
			if tt.domain == "" {
				tt.domain = "a.example.com"
			}
			wantKind(t, l.Rehearse(t.Context(), []string{tt.domain}), tt.kind, tt.word)
			if tt.kind != fault.Provider {
				l.wantValues(t, tt.domain)
			}
		})
	}
}

func TestInterruptedRehearsalRemovesItsValues(t *testing.T) {
	l := newLab(t)
	for _, ns := range l.ns {
		ns.SetLag(time.Hour)
	}
	ctx, cancel := context.WithCancel(t.Context())
	observe := l.Observe
	l.Observe = func(s Step) {
		observe(s)
		if s.Name == StepWrite {
			cancel()
		}
	}
	if err := l.Rehearse(ctx, []string{"a.example.com"}); err == nil {
		t.Error("an interrupted rehearsal reports success")
	}
	l.wantValues(t, "a.example.com")
	if !strings.Contains(strings.Join(l.provider.called("remove"), " "), record("a.example.com")) {
		t.Error("nothing was removed")
	}
}

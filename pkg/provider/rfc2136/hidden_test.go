package rfc2136_test

import (
	"strings"
	"testing"

	"github.com/certhook/certhook/pkg/provider"
	"github.com/certhook/certhook/tests/bindtest"
)

// Where a record would be seen by nobody none is left, though the server would take it: BIND says NOERROR to
// all of these.
func TestNothingInTheDark(t *testing.T) {
	l := newLab(t)
	policy := bindtest.Zone{Name: "wide.example.org", Policy: []string{"grant certhook-key. zonesub TXT"}}
	wide := newLab(t, policy, bindtest.Zone{Name: "child.wide.example.org"})

	for _, there := range []string{"", "somebody else's", value} {
		what := "below the cut to a zone of the same server"
		if there != "" {
			what += ", which has " + there
			l.Add(zone, owner+` 60 TXT "`+there+`"`)
		}
		t.Run(what, func(t *testing.T) {
			err := l.provider(nil).Add(t.Context(), provider.Zone{Name: parent}, challenge)
			refused(t, l.key.Secret, err, zone, zone)
			if got := l.TXT(parent, owner); len(got) > 0 {
				t.Errorf("the zone has %q", got)
			}
		})
	}

	const name = "_acme-challenge.svc.example.com.wide.example.org"
	const elsewhere = "_acme-challenge.child.wide.example.org"
	for what, tc := range map[string]struct {
		add    string // to the zone
		name   string
		text   string
		update int // updates that are needed
	}{
		"CNAME":            {add: name + " 60 CNAME target.example.org", name: name, text: "target.example.org", update: 1},
		"delegated":        {add: "com.wide.example.org 60 NS ns.example.org", name: name, text: "com.wide.example.org is delegated", update: 1},
		"delegated itself": {add: name + " 60 NS ns.example.org", name: name, text: name + " is delegated", update: 1},
		"DNAME":            {add: "example.com.wide.example.org 60 DNAME example.org", name: name, text: "DNAME at example.com.wide.example.org", update: 1},
		// Only the look-up afterwards tells, and the record is taken back.
		"zone without a cut": {name: elsewhere, text: "another zone of this server, child.wide.example.org; it was taken back", update: 2},
	} {
		t.Run(what, func(t *testing.T) {
			wide.Reset(policy.Name)
			if tc.add != "" {
				wide.Add(policy.Name, tc.add)
			}
			before, updates := wide.Transfer(policy.Name), wide.updates()
			rec := challenge
			rec.Name = tc.name
			err := wide.provider(nil).Add(t.Context(), provider.Zone{Name: policy.Name}, rec)
			refused(t, wide.key.Secret, err, tc.text, "ACME_CHALLENGE_MAP")
			if now := wide.Transfer(policy.Name); strings.Join(now, "\n") != strings.Join(before, "\n") {
				t.Errorf("the zone is\n%s\nbefore it was\n%s", strings.Join(now, "\n"), strings.Join(before, "\n"))
			}
			if n := wide.updates() - updates; n != tc.update {
				t.Errorf("%d updates, want %d", n, tc.update)
			}
		})
	}

	t.Run("a wildcard is no obstacle", func(t *testing.T) {
		wide.Reset(policy.Name)
		wide.Add(policy.Name, "*.wide.example.org 60 CNAME target.example.org")
		rec := challenge
		rec.Name = name
		p, z := wide.provider(nil), provider.Zone{Name: policy.Name}
		if err := p.Add(t.Context(), z, rec); err != nil {
			t.Error(err)
		}
		if removed, err := p.Remove(t.Context(), z, rec); err != nil || !removed {
			t.Errorf("removed = %v, %v", removed, err)
		}
		if removed, err := p.Remove(t.Context(), z, rec); err != nil || removed {
			t.Errorf("again, removed = %v, %v", removed, err)
		}
	})

	// A record that a later delegation or CNAME hides is not said to be gone, but removed.
	for what, tc := range map[string]struct {
		add  string
		ours bool
	}{
		"hidden by a delegation":             {"com.wide.example.org 60 NS ns.example.org", true},
		"nothing there, under a delegation":  {"com.wide.example.org 60 NS ns.example.org", false},
		"hidden by a DNAME":                  {"com.wide.example.org 60 DNAME example.org", true},
		"nothing there, a CNAME at the name": {name + " 60 CNAME target.example.org", false},
	} {
		t.Run(what, func(t *testing.T) {
			wide.Reset(policy.Name)
			before := wide.Transfer(policy.Name)
			rec := challenge
			rec.Name = name
			p, z := wide.provider(nil), provider.Zone{Name: policy.Name}
			if tc.ours {
				if err := p.Add(t.Context(), z, rec); err != nil {
					t.Fatal(err)
				}
			}
			wide.Add(policy.Name, tc.add)
			removed, err := p.Remove(t.Context(), z, rec)
			if err != nil || removed != tc.ours {
				t.Errorf("removed = %v, %v; want %v", removed, err, tc.ours)
			}
			wide.Remove(policy.Name, tc.add)
			if now := wide.Transfer(policy.Name); strings.Join(now, "\n") != strings.Join(before, "\n") {
				t.Errorf("left in the zone:\n%s", strings.Join(now, "\n"))
			}
		})
	}
}

package e2e

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/tests/cloudflaretest"
	"github.com/certhook/certhook/tests/lab"
)

func TestOneName(t *testing.T) {
	record := lab.Target("svc.example.com", lab.AliasZone)
	s := newScene(t, lab.Options{}, record)
	s.Delegate("svc.example.com")
	s.issue("svc.example.com")
	if n := len(s.API.Calls()); n > 4 {
		t.Errorf("%d calls of the API for one value, at most 4 are needed", n)
	}
	for _, values := range s.seenByCA(record) {
		if len(values) != 1 {
			t.Errorf("the CA saw %q", values)
		}
	}
}

func TestBaseAndWildcard(t *testing.T) {
	record := lab.Target("example.com", lab.AliasZone)
	s := newScene(t, lab.Options{}, record)
	s.Delegate("example.com")
	s.issue("example.com", "*.example.com")
	for _, values := range s.seenByCA(record) {
		if len(values) != 2 || values[0] == values[1] {
			t.Errorf("the CA saw %q, want the values of both names at once", values)
		}
	}
	if n := len(s.API.Calls()); n > 7 {
		t.Errorf("%d calls of the API for two values, at most 7 are needed", n)
	}
}

// Twenty names cost about what one costs: they are written in parallel and waited for once.
func TestTwentyNames(t *testing.T) {
	var names, records []string
	for i := range 20 {
		name := fmt.Sprintf("n%02d.example.com", i)
		names = append(names, name)
		records = append(records, lab.Target(name, lab.AliasZone))
	}
	const call = 150 * time.Millisecond
	const lag = 1500 * time.Millisecond
	s := newScene(t, lab.Options{CallDelay: call}, records...)
	s.Delegate(names...)
	s.Alias[2].SetLag(lag)
	s.issue(names...)

	writes := s.writes()
	if len(writes) != len(names) {
		t.Fatalf("%d writes for %d names", len(writes), len(names))
	}
	if n := cloudflaretest.Overlap(writes); n < 4 {
		t.Errorf("%d writes at once, at most", n)
	}
	var removals []cloudflaretest.Call
	lookups := 0
	for _, c := range s.API.Calls() {
		switch {
		case c.Method == "DELETE":
			removals = append(removals, c)
		case c.Path == cloudflaretest.Zones:
			lookups++
		}
	}
	if n := cloudflaretest.Overlap(removals); n < 4 {
		t.Errorf("%d removals at once, at most", n)
	}
	if lookups != 1 {
		t.Errorf("%d look-ups of the zone", lookups)
	}

	// One wait: the CA looks soon after the slowest server has caught up, not twenty times that later.
	var asked time.Time
	for _, q := range s.World.Queries() {
		if asked.IsZero() && q.From.String() == lab.CAResolver && q.Type == dns.TypeTXT {
			asked = q.Time
		}
	}
	last := writes[len(writes)-1].End
	if waited := asked.Sub(last); waited < lag-call || waited > 5*lag {
		t.Errorf("the CA looked %v after the last write; the slowest server takes %v", waited, lag)
	}
}

func TestTwoAliasZones(t *testing.T) {
	a, b := lab.Target("a.example.com", lab.AliasZone), lab.Target("b.example.com", lab.AliasZone2)
	s := newScene(t, lab.Options{Settings: map[string]string{
		"ACME_CHALLENGE_ALIAS": lab.AliasZone + ";" + lab.AliasZone2,
		"ACME_CHALLENGE_MAP":   "b.example.com=" + lab.AliasZone2 + ".",
	}}, a, b)
	s.DelegateTo("a.example.com", a)
	s.DelegateTo("b.example.com", b)
	s.issue("a.example.com", "b.example.com")
	s.seenByCA(a)
	s.seenByCA(b)
}

func TestHashedLabel(t *testing.T) {
	sum := sha256.Sum256([]byte("svc.example.com"))
	label := strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:]))
	record := label + "." + lab.AliasZone
	s := newScene(t, lab.Options{Settings: map[string]string{"ACME_CHALLENGE_LABEL": "hashed"}}, record)
	s.DelegateTo("svc.example.com", record)
	s.issue("svc.example.com", "*.svc.example.com")
	s.seenByCA(record)
}

func TestPinnedRecord(t *testing.T) {
	record := "chosen-by-hand." + lab.AliasZone
	s := newScene(t, lab.Options{Settings: map[string]string{"ACME_CHALLENGE_MAP": "svc.example.com=" + record}}, record)
	s.DelegateTo("svc.example.com", record)
	s.issue("svc.example.com")
	s.seenByCA(record)
}

// Without an alias the value goes where it would go without delegation, into the domain's own zone.
func TestNoAlias(t *testing.T) {
	record := "_acme-challenge.svc.example.com"
	s := newScene(t, lab.Options{Settings: map[string]string{"ACME_CHALLENGE_ALIAS": ""}}, record)
	s.issue("svc.example.com", "*.svc.example.com")
	s.seenByCA(record)
}

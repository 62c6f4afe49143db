package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/certhook/certhook/tests/lab"
)

// Certbot issues and renews through BIND with a key that may change the TXT at the challenge names and
// nothing else. The zone looks afterwards as it did before.
func TestBIND(t *testing.T) {
	svc, base := lab.Target("svc.example.com", lab.BINDZone), lab.Target("example.com", lab.BINDZone)
	s := &scene{Lab: lab.New(t, lab.Options{}), t: t}
	bind := s.StartBIND(nil, "grant certhook-key. name "+svc+". TXT", "grant certhook-key. name "+base+". TXT")
	for _, record := range []string{svc, base} {
		bind.Add(lab.BINDZone, record+` 60 TXT "`+foreign+`"`)
	}
	s.DelegateTo("svc.example.com", svc)
	s.DelegateTo("example.com", base)
	before := bind.Transfer(lab.BINDZone)

	names := []string{"example.com", "*.example.com", "svc.example.com"}
	s.issue(names...)
	first := s.checkLineage("example.com", names...).SerialNumber
	s.FreshAccount()
	validated := len(s.CA.Validations())
	if r := s.Renew(); r.Code != 0 {
		t.Fatalf("certbot renew: %v", r)
	}
	if s.checkLineage("example.com", names...).SerialNumber.Cmp(first) == 0 {
		t.Error("the lineage has its old certificate")
	}
	if n := len(s.CA.Validations()) - validated; n != len(names) {
		t.Errorf("the CA validated %d names, want %d", n, len(names))
	}

	// A name that the key has no grant for: what BIND wants to be told is in the message.
	other := lab.Target("other.example.com", lab.BINDZone)
	s.DelegateTo("other.example.com", other)
	if r := s.Run(lab.Hook("auth-hook"), "rehearse", "-d", "other.example.com"); r.Code != 11 ||
		!strings.Contains(r.Stderr, "grant certhook-key. name "+other+". TXT;") {
		t.Errorf("a name that is not granted: %v", r)
	}

	if now := bind.Transfer(lab.BINDZone); !slices.Equal(now, before) {
		t.Errorf("the zone is\n%s\nbefore it was\n%s", strings.Join(now, "\n"), strings.Join(before, "\n"))
	}
	if live := inFlight(t); len(live) > 0 {
		t.Errorf("still in the journal: %q", live)
	}
	if calls := s.API.Calls(); len(calls) > 0 {
		t.Errorf("%d calls of another provider's API", len(calls))
	}
	seen := false
	for line := range strings.Lines(bind.Log()) {
		if strings.Contains(line, "query: _acme-challenge.") {
			seen = seen || strings.Contains(line, lab.CAResolver+"#")
			if strings.Contains(line, lab.Resolver+"#") {
				t.Errorf("a public resolver was asked about a challenge: %s", line)
			}
		}
	}
	if !seen {
		t.Error("the CA never looked")
	}
}

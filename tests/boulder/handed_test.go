package boulder

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/tests/boulder/oracle"
)

// handed is a question to Boulder and the answer that it gave when the rules were written down.
type handed struct {
	ID     string
	Domain string
	Method string
	Zone   []string
	Rcode  map[string]string // by name/CAA
	Want   struct {
		Allow        bool
		Type, Detail string
	}
}

// The Boulder that is asked here gives the answers that are on record, and ours are the same.
func TestHandedCases(t *testing.T) {
	raw, err := os.ReadFile("../../pkg/caa/testdata/boulder.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	boulder := oracle.New(t)
	for line := range bytes.Lines(raw) {
		var c handed
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		n++
		q := question{domain: c.Domain, method: cmp.Or(c.Method, "dns-01"), account: 1}
		q.domain, q.wildcard = strings.CutPrefix(strings.ToLower(c.Domain), "*.")
		z := &zone{rrs: map[string][]dns.RR{}, fails: map[string]string{}}
		for _, text := range c.Zone {
			rr, err := dns.NewRR(text)
			if err != nil {
				t.Fatalf("%s: %v", c.ID, err)
			}
			z.add(rr)
		}
		for what, how := range c.Rcode {
			z.fails[strings.TrimSuffix(what, "/CAA")] = how
		}

		asked := q.boulders()
		asked.Domain = c.Domain
		answer, err := boulder.CAA(t.Context(), z, asked)
		if err != nil {
			t.Fatalf("%s: %v", c.ID, err)
		}
		if want := (oracle.Answer{Allowed: c.Want.Allow, Type: c.Want.Type, Detail: c.Want.Detail}); answer != want {
			t.Errorf("%s: Boulder says %+v, on record is %+v", c.ID, answer, want)
		}
		set, verdict, err := climb(t.Context(), z, q.domain)
		if err != nil {
			t.Fatalf("%s: %v", c.ID, err)
		}
		if verdict == "" {
			for _, rr := range set.Records {
				rr.Value = older(rr.Value)
			}
			verdict = ours(q.ours(), set)
		}
		if verdict != boulders(answer) {
			t.Errorf("%s: ours is %q, Boulder's %q, from %q", c.ID, verdict, boulders(answer), c.Zone)
		}
	}
	if n < 51 {
		t.Errorf("%d cases", n)
	}
}

package persist

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/authority"
	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/tests/dnstest"
)

// boulderCase is a question to Boulder's own validation authority, the DNS that it saw, and its answer.
type boulderCase struct {
	ID     string
	Domain string
	Now    int64
	TXT    []string // raw values at the record's name
	Zone   []string
	Rcode  map[string]string // by name
	Want   struct {
		Allow  bool
		Type   string // dns, malformed, unauthorized
		Detail string
	}
}

// The whole way, from the question to servers up to the verdict, against the answers that Boulder gave.
func TestBouldersAnswers(t *testing.T) {
	raw, err := os.ReadFile("testdata/boulder.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range bytes.Lines(raw) {
		var c boulderCase
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		n++
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			w := dnstest.New(t)
			server := w.AddServer("ns.test")
			for _, zone := range []string{"", "com", "example", "example.com", "other.example"} {
				w.AddZone(zone, server)
			}
			for _, value := range c.TXT {
				if err := w.AddTXT("example.com", Owner(c.Domain), value, 60); err != nil {
					t.Fatal(err)
				}
			}
			for _, rr := range c.Zone {
				zone := "example.com"
				if !dnsname.Within(strings.TrimSuffix(strings.Fields(rr)[0], "."), zone) {
					zone = "other.example"
				}
				w.Add(zone, rr)
			}
			for name, rcode := range c.Rcode {
				server.SetRcodeFor(name, dns.StringToRcode[rcode])
			}
			client := &authority.Client{Recursive: w, Port: w.Port, Timeout: time.Second}
			q := Question{Issuer: issuer, Account: acct, Now: time.Unix(c.Now, 0), Draft: Draft01}
			q.Wildcard = strings.HasPrefix(c.Domain, "*.")

			s, err := Lookup(t.Context(), client, panelOf(t, w.AddResolver(), w.AddResolver()), c.Domain)
			if fault.KindOf(err) == fault.Unknown {
				if c.Want.Type != "dns" {
					t.Errorf("error %v, Boulder says %q", err, c.Want.Detail)
				}
				return
			}
			v := s.Evaluate(q)
			want := c.Want.Detail
			if c.Want.Type == "dns" && strings.Contains(want, "NXDOMAIN") { // to Boulder a failure, to us a name without a record
				want = "No TXT record found for DNS-PERSIST-01 challenge"
			}
			if err != nil || v.OK != c.Want.Allow || v.Detail != want || v.Malformed != (c.Want.Type == "malformed") {
				t.Errorf("got %+v, error %v; Boulder says %q: %q", v, err, c.Want.Type, c.Want.Detail)
			}
		})
	}
	if n != 40 {
		t.Errorf("%d cases", n)
	}
}

package caa

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/authority"
	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/pkg/resolver"
	"github.com/certhook/certhook/tests/dnstest"
)

// boulderCase is a question to Boulder's own validation authority, the DNS that it saw, and its answer.
type boulderCase struct {
	ID     string
	Domain string
	Method string
	Zone   []string
	Rcode  map[string]string // by name/CAA
	Want   struct {
		Allow  bool
		Type   string // caa, dns
		Detail string
	}
}

// different has the cases whose answers differ on purpose.
var different = map[string]string{
	"hyphen tag":   "the Boulder that was asked is older than its change of the tag's grammar",
	"TRUNC at own": "a truncated answer is asked for again over TCP here; a CA's resolver does that for it",
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
			client, panel := c.serve(t)
			q := Question{Issuer: us, Method: cmp.Or(c.Method, "dns-01"), Account: acct}
			q.Domain, q.Wildcard = strings.CutPrefix(strings.ToLower(c.Domain), "*.")
			set, err := Lookup(t.Context(), client, panel, q.Domain)
			var got string
			switch r := Evaluate(q, set); {
			case err != nil:
				got = "dns"
				if e, ok := errors.AsType[*Error](err); !ok || !strings.Contains(c.Want.Detail, "looking up CAA for "+e.Name) {
					t.Errorf("error %v, Boulder says %q", err, c.Want.Detail)
				}
			case !r.Allowed:
				got = "caa"
				if !strings.HasSuffix(c.Want.Detail, "CAA record for "+set.Owner+" prevents issuance") {
					// Boulder writes a wildcard's base name with its star.
					if !q.Wildcard || !strings.Contains(c.Want.Detail, set.Owner) {
						t.Errorf("forbidden at %q, Boulder says %q", set.Owner, c.Want.Detail)
					}
				}
			}
			same := got == c.Want.Type
			if why := different[c.ID]; same == (why != "") {
				t.Errorf("got %q, %+v, error %v; Boulder says %q %s", got, set, err, c.Want.Type, why)
			}
		})
	}
	if n < 50 {
		t.Errorf("%d cases", n)
	}
}

// serve puts the case's records on authoritative servers.
func (c boulderCase) serve(t *testing.T) (*authority.Client, resolver.Panel) {
	t.Helper()
	w := dnstest.New(t)
	top, below := w.AddServer("top.test"), w.AddServer("below.test")
	zones := []string{"", "com", "example", "example.com", "cdn.example"}
	w.AddZone("", top)
	for _, zone := range zones[1:] {
		if c.Rcode[zone+"/CAA"] == "NXDOMAIN" {
			zones = zones[:1] // nothing can be below it
			c.Zone = nil
			break
		}
		server := top
		if strings.Contains(zone, ".") {
			server = below
		}
		w.AddZone(zone, server)
	}
	for _, rr := range c.Zone {
		owner := strings.TrimSuffix(strings.Fields(rr)[0], ".")
		zone := ""
		for _, z := range zones {
			if dnsname.Within(owner, z) {
				zone = z
			}
		}
		w.Add(zone, rr)
	}
	for what, rcode := range c.Rcode {
		name := strings.TrimSuffix(what, "/CAA")
		switch rcode {
		case "NXDOMAIN": // by itself, where there is no record
		case "TRUNC":
			below.SetTruncate(true)
		default:
			top.SetRcodeFor(name, dns.StringToRcode[rcode])
			below.SetRcodeFor(name, dns.StringToRcode[rcode])
		}
	}
	return &authority.Client{Recursive: w, Port: w.Port, Timeout: time.Second}, panelOf(t, w.AddResolver(), w.AddResolver())
}

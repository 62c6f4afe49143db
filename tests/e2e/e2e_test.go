// Package e2e runs certbot, the hooks, a CA, a resolver and a DNS provider together, for real.
package e2e

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/tests/cloudflaretest"
	"github.com/certhook/certhook/tests/lab"
)

func TestMain(m *testing.M) { os.Exit(lab.Enter(m.Run)) }

// scene is a lab in which somebody else has a TXT at every record that the challenges of a test use.
type scene struct {
	*lab.Lab
	t       *testing.T
	records []string
}

const foreign = "somebody-else-put-this-here"

// newScene brings up a lab. At the end of the test it checks that nothing of ours is left anywhere, that
// the foreign values are, that the provider was asked about no other zone than those of the records, and
// that no public resolver was asked about a record: it would have remembered that there is none.
func newScene(t *testing.T, o lab.Options, records ...string) *scene {
	t.Helper()
	if o.Zones == nil {
		for _, r := range records {
			if z := lab.ZoneOf(r); !slices.Contains(o.Zones, z) {
				o.Zones = append(o.Zones, z)
			}
		}
	}
	s := &scene{lab.New(t, o), t, records}
	for _, r := range records {
		s.API.Seed(lab.ZoneOf(r), "TXT", r, foreign)
	}
	t.Cleanup(func() { s.checkClean(o.Zones) })
	return s
}

func (s *scene) checkClean(zones []string) {
	s.t.Helper()
	for _, zone := range lab.Zones() {
		for name, values := range s.World.AllTXT(zone) {
			if !slices.Contains(s.records, name) || !slices.Equal(values, []string{foreign}) {
				s.t.Errorf("left in zone %s: %s TXT %q", zone, name, values)
			}
		}
	}
	for _, r := range s.records {
		if got := s.API.TXT(r); !slices.Equal(got, []string{foreign}) {
			s.t.Errorf("the provider has at %s: %q", r, got)
		}
	}
	for _, c := range s.API.OutsideZone(zones...) {
		s.t.Errorf("outside %q: %s %s %v", zones, c.Method, c.Path, c.Query)
	}
	for _, q := range s.World.Queries() {
		asked := slices.Contains(s.records, q.Name) || strings.HasPrefix(q.Name, "_acme-challenge.")
		if asked && q.From.String() == lab.Resolver {
			s.t.Errorf("a public resolver was asked about a challenge: %v", q)
		}
	}
	if live := inFlight(s.t); len(live) > 0 {
		s.t.Errorf("still in the journal: %q", live)
	}
}

// inFlight lists the records that the journal takes for existing.
func inFlight(t *testing.T) []string {
	t.Helper()
	return inFlightIn(t, lab.StateDir)
}

// inFlightIn is inFlight for another state directory.
func inFlightIn(t *testing.T, state string) []string {
	t.Helper()
	var live []string
	files, err := filepath.Glob(state + "/journal/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var record struct {
			Entries []struct{ Name, State string }
		}
		if err := json.Unmarshal(text, &record); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		for _, e := range record.Entries {
			if e.State == "writing" || e.State == "written" {
				live = append(live, e.State+" "+e.Name)
			}
		}
	}
	return live
}

// issue gets a certificate and checks that it is one for exactly these names.
func (s *scene) issue(names ...string) {
	s.t.Helper()
	if r := s.Issue(names...); r.Code != 0 {
		s.t.Fatalf("certbot for %q: %v", names, r)
	}
	s.checkLineage(names[0], names...)
}

func (s *scene) checkLineage(lineage string, names ...string) *x509.Certificate {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(lab.CertbotDir, "live", lineage, "cert.pem"))
	if err != nil {
		s.t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		s.t.Fatalf("lineage %q: no PEM in %q", lineage, text)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		s.t.Fatalf("lineage %q: %v", lineage, err)
	}
	got, want := slices.Sorted(slices.Values(cert.DNSNames)), slices.Sorted(slices.Values(names))
	if !slices.Equal(got, want) {
		s.t.Errorf("lineage %q is for %q, want %q", lineage, got, want)
	}
	return cert
}

// seenByCA returns what the alias zone's servers told the CA's resolver about a record, each answer without
// the foreign value.
func (s *scene) seenByCA(record string) [][]string {
	s.t.Helper()
	var seen [][]string
	for _, q := range s.World.Matching(record, dns.TypeTXT) {
		if q.From.String() != lab.CAResolver {
			continue
		}
		if !slices.Contains(q.Answer, foreign) {
			s.t.Errorf("the CA did not see the foreign value: %v", q)
		}
		seen = append(seen, slices.DeleteFunc(q.Answer, func(v string) bool { return v == foreign }))
	}
	if len(seen) == 0 {
		s.t.Errorf("the CA never looked at %s", record)
	}
	return seen
}

// calls returns the calls of the provider's API with that method.
func (s *scene) calls(method string) []cloudflaretest.Call {
	return slices.DeleteFunc(s.API.Calls(), func(c cloudflaretest.Call) bool { return c.Method != method })
}

// writes returns the calls that add a record.
func (s *scene) writes() []cloudflaretest.Call { return s.calls(http.MethodPost) }

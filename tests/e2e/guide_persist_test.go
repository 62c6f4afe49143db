package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/certhook/certhook/tests/lab"
)

// guide runs dnsguide and wants an exit code.
func (p *persisting) guide(code int, args ...string) lab.Result {
	p.t.Helper()
	r := p.Run(lab.Hook("dnsguide"), args...)
	if r.Code != code {
		p.t.Fatalf("dnsguide %q: want exit code %d: %v", args, code, r)
	}
	return r
}

// create puts what dnsguide prints into production and returns it.
func (p *persisting) create(args ...string) (records []string) {
	p.t.Helper()
	for line := range strings.Lines(p.guide(0, append([]string{"records", "--zonefile"}, args...)...).Stdout) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, ";") {
			records = append(records, line)
			p.World.Add(lab.ProductionZone, line)
		}
	}
	return records
}

// The whole setup comes from an account's URI alone, before anything has heard of the CA; and what dnsguide calls fine,
// the CA takes.
func TestGuidePersist(t *testing.T) {
	p := newPersisting(t, map[string]string{"CHALLENGE_TYPE": "dns-persist-01", "PERSIST_ACCOUNT": "certbot"})
	uri := p.Register()
	names := dashD([]string{"p.example.com", "*.p.example.com"})
	if r := p.guide(3, append([]string{"verify"}, names...)...); strings.Count(r.Stdout, "missing   validation") != 2 {
		t.Errorf("nothing is there: %v", r)
	}
	got := p.create(append(names, "--account-uri", uri)...)
	want := []string{
		`p.example.com. 300 IN CAA 0 issue "letsencrypt.org;validationmethods=dns-persist-01;accounturi=` + uri + `"`,
		`_validation-persist.p.example.com. 300 IN TXT "letsencrypt.org; accounturi=` + uri + `; policy=wildcard"`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("records\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if r := p.guide(0, append([]string{"verify"}, names...)...); !strings.Contains(r.Stdout, "draft -01 of dns-persist-01, which is experimental") {
		t.Errorf("all is there: %v", r)
	}
	p.run(0, append([]string{"issue"}, names...)...)
	p.checkPersisted("p.example.com", "p.example.com", "*.p.example.com")

	// What one has set up for the one method, the other is told about.
	if r := p.guide(3, "verify", "-d", "p.example.com", "--challenge", "dns-01"); !strings.Contains(r.Stdout, "by dns-persist-01 it is allowed") ||
		!strings.Contains(r.Stdout, "validationmethods=dns-01,dns-persist-01;accounturi="+uri) {
		t.Errorf("dns-01 for a name that is pinned to dns-persist-01: %v", r)
	}
	for _, record := range p.create("-d", "p.example.com", "--challenge", "dns-01", "--include", "caa") {
		if !strings.Contains(record, "validationmethods=dns-01,dns-persist-01;") {
			t.Errorf("for a name that persist-issue renews: %s", record)
		}
	}
	p.World.Remove(lab.ProductionZone, want[0])
	p.guide(0, append([]string{"verify", "--challenge", "both"}, names...)...)
	p.run(0, "renew", "--force")

	// One that ends soon is warned about.
	p.World.Remove(lab.ProductionZone, want[1])
	ends := strings.Replace(want[1], "wildcard", fmt.Sprintf("wildcard; persistUntil=%d", time.Now().Add(10*24*time.Hour+time.Hour).Unix()), 1)
	p.World.Add(lab.ProductionZone, ends)
	if r := p.guide(0, append([]string{"verify", "--challenge", "both"}, names...)...); !strings.Contains(r.Stderr, "(persistUntil), in 10 days") {
		t.Errorf("one that ends soon: %v", r)
	}
	p.World.Remove(lab.ProductionZone, ends)

	// Another account's record is none, and so is one that has expired.
	p.World.Add(lab.ProductionZone, strings.Replace(want[1], uri, uri+"0", 1))
	if r := p.guide(3, append([]string{"verify"}, names...)...); !strings.Contains(r.Stdout, "it is for another account (expected "+uri+", it has "+uri+"0)") {
		t.Errorf("another account's: %v", r)
	}
	p.World.Add(lab.ProductionZone, strings.Replace(want[1], "wildcard", "wildcard; persistUntil=1700000000", 1))
	if r := p.guide(3, append([]string{"verify"}, names...)...); !strings.Contains(r.Stdout, "it has expired") {
		t.Errorf("one that has expired: %v", r)
	}
}

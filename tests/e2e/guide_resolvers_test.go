package e2e

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/tests/lab"
)

// guideReport is what dnsguide verify --json prints.
type guideReport struct {
	OK      bool
	Results []struct {
		Name     string
		Findings []struct {
			Kind, Status string
			Lagging      []struct{ Server, Says string }
		}
	}
}

// verifyWith runs dnsguide verify for a name with these resolvers, and returns what it finds about the CAA and which
// servers lag behind there.
func verifyWith(t *testing.T, l *lab.Lab, domain string, resolvers ...*lab.RecursiveServer) (r lab.Result, status string, lagging []string) {
	t.Helper()
	args := []string{"verify", "--json", "-d", domain}
	for _, s := range resolvers {
		args = append(args, "--resolver", s.URL())
	}
	r = l.Run(lab.Hook("dnsguide"), args...)
	var report guideReport
	if err := json.Unmarshal([]byte(r.Stdout), &report); err != nil {
		t.Fatalf("%v: %v", err, r)
	}
	for _, result := range report.Results {
		for _, f := range result.Findings {
			if f.Kind != "caa" {
				continue
			}
			status = f.Status
			for _, s := range f.Lagging {
				lagging = append(lagging, s.Server)
			}
		}
	}
	return r, status, lagging
}

// A resolver was asked for the CAA before it stood and remembers that there is none. The record counts all the same,
// whether the authoritative servers can be asked or not, and that resolver is named. Nobody but it to ask is too
// little.
func TestGuideWithALaggard(t *testing.T) {
	const domain = "svc.example.com"
	l := lab.New(t, lab.Options{})
	l.Delegate(domain)
	account := l.Register()
	unbound, bind := l.StartResolvers()
	both := []*lab.RecursiveServer{unbound, bind}
	block := func(on bool) {
		for _, s := range l.Production {
			if s.SetBlocked(); on {
				s.SetBlocked(fromHook)
			}
		}
	}
	names := func(lagging []string, s *lab.RecursiveServer) bool {
		return len(lagging) == 1 && strings.Contains(lagging[0], s.Addr)
	}
	for _, laggard := range both {
		for _, s := range both {
			s.Flush()
		}
		if m := laggard.Ask(domain, dns.TypeCAA); len(m.Answer) != 0 {
			t.Fatalf("%s before there is a record: %v", laggard.Addr, m)
		}
		l.Lock(domain, account)

		if r, status, lagging := verifyWith(t, l, domain, both...); r.Code != 0 || status != "ok" || !names(lagging, laggard) {
			t.Errorf("%s lags, CAA %q, named %q: %v", laggard.Addr, status, lagging, r)
		}
		r := l.Run(lab.Hook("dnsguide"), "verify", "-d", domain, "--resolver", unbound.URL()+","+bind.URL())
		tells := func(line string) bool {
			return strings.Contains(line, "lagging") && strings.Contains(line, laggard.Addr)
		}
		if r.Code != 0 || !slices.ContainsFunc(strings.Split(r.Stdout, "\n"), tells) {
			t.Errorf("%s lags, and it does not say so: %v", laggard.Addr, r)
		}

		block(true)
		if r, status, lagging := verifyWith(t, l, domain, both...); r.Code != 0 || status != "ok" || !names(lagging, laggard) {
			t.Errorf("%s lags, nobody else can be asked but the other resolver, CAA %q, named %q: %v", laggard.Addr, status, lagging, r)
		}
		// The test of the test: it does hide the record, and whoever asked nobody else would believe it.
		if m := laggard.Ask(domain, dns.TypeCAA); m.Rcode != dns.RcodeSuccess || len(m.Answer) != 0 {
			t.Errorf("%s does not lag: %v", laggard.Addr, m)
		}
		if r, status, _ := verifyWith(t, l, domain, laggard); r.Code == 0 || status == "ok" {
			t.Errorf("%s alone, which lags, CAA %q: %v", laggard.Addr, status, r)
		}
		block(false)
		l.Unlock(domain, account)
	}
}

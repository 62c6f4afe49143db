package challenge

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/resolver"
	"github.com/certhook/certhook/tests/dnstest"
)

// What the authoritative servers prove to be wrong stops the hook before anything is written, with the
// record to add; what cannot be told is a warning.
func TestPreflight(t *testing.T) {
	const domain, challenge = "svc.example.com", "_acme-challenge.svc.example.com"
	line := challenge + ". CNAME " + record(domain) + "."
	cname := func(owner, target string) func(*lab) {
		return func(l *lab) { l.world.Add("example.com", owner+" 300 CNAME "+target) }
	}
	all := func(fs ...func(*lab)) func(*lab) {
		return func(l *lab) {
			for _, f := range fs {
				f(l)
			}
		}
	}
	good := func(l *lab) { l.delegate(domain) }
	tests := map[string]struct {
		prepare func(*lab)
		says    []string   // in the error; none means that the value is written
		kind    fault.Kind // of the error; Verdict where it is not said
		warns   bool
	}{
		"leads there":                      {prepare: good},
		"leads there in two steps":         {prepare: all(cname(challenge, "hop.example.com"), cname("hop.example.com", record(domain)))},
		"leads there in other letter case": {prepare: cname(challenge, strings.ToUpper(record(domain)))},
		"leads there by a wildcard":        {prepare: cname("*.svc.example.com", record(domain))},
		"missing":                          {says: []string{line}},
		"missing beside other records":     {prepare: func(l *lab) { l.world.Add("example.com", challenge+" 300 A 192.0.2.1") }, says: []string{line}},
		"leads elsewhere":                  {prepare: cname(challenge, "elsewhere.example.com"), says: []string{line, "elsewhere.example.com"}},
		"leads to another record of the alias zone": {
			prepare: cname(challenge, record("other.example.com")), says: []string{line, record("other.example.com")},
		},
		"leads elsewhere by a wildcard": {
			prepare: all(cname("*.example.com", "lb.example.com"), func(l *lab) { l.world.Add("example.com", "lb.example.com 300 A 192.0.2.1") }), says: []string{line, "*.example.com", "lb.example.com"},
		},
		"hidden by a TXT": {
			prepare: func(l *lab) { l.world.Add("example.com", challenge+` 300 TXT "old"`) }, says: []string{line, "TXT"},
		},
		"a circle":          {prepare: all(cname(challenge, "hop.example.com"), cname("hop.example.com", challenge)), says: []string{line, "circle"}},
		"a CNAME to itself": {prepare: cname(challenge, challenge), says: []string{line}},
		"the alias zone is delegated to nobody": {
			prepare: all(good, func(l *lab) { l.world.Undelegate(alias); l.provider.zones = []string{alias} }),
			says:    []string{"not delegated", "NS"},
		},
		"production answers SERVFAIL":  {prepare: all(good, func(l *lab) { l.production.SetRcode(2) }), warns: true},
		"production is lame":           {prepare: all(good, func(l *lab) { l.production.SetLame(true) }), warns: true},
		"production does not answer":   {prepare: all(good, func(l *lab) { l.production.Close() }), warns: true},
		"production is not found":      {prepare: all(good, func(l *lab) { l.world.FailAsk("example.com", dnstest.ServFail) }), warns: true},
		"missing, but nobody can tell": {prepare: func(l *lab) { l.production.SetRcode(2) }, warns: true},
		"a hop's zone does not answer": {
			prepare: all(cname(challenge, "x.test"), func(l *lab) { l.world.FailAsk("x.test", dnstest.ServFail); l.world.FailAsk("test", dnstest.ServFail) }), warns: true,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			if tt.prepare != nil {
				tt.prepare(l)
			}
			_, err := l.Present(t.Context(), order(1, domain)[0], caller(t))
			if tt.says == nil {
				if err != nil {
					t.Fatal(err)
				}
				l.wantValues(t, domain, val(1))
			} else {
				if tt.kind == fault.Other {
					tt.kind = fault.Verdict
				}
				wantKind(t, err, tt.kind)
				for _, want := range tt.says {
					if text := err.Error() + " " + fault.HintOf(err); !strings.Contains(text, want) {
						t.Errorf("the message lacks %q: %s", want, text)
					}
				}
				if got := l.provider.called("add"); len(got) != 0 {
					t.Errorf("written: %q", got)
				}
			}
			if warned := slices.ContainsFunc(l.steps, func(s Step) bool { return s.Warn }); warned != tt.warns {
				t.Errorf("warned: %v, want %v\n%s", warned, tt.warns, l.log)
			}
			for _, q := range l.world.Queries() {
				if below := dnsname.Below(q.Name, "example.com") || dnsname.Below(q.Name, "example.net"); q.Recursive && q.Type == dns.TypeNS && below {
					t.Errorf("a resolver was asked about %s", q.Name)
				}
			}
		})
	}
}

// Where only resolvers can be asked, their word is a warning at most, and to a rehearsal no proof.
func TestPreflightByResolvers(t *testing.T) {
	const domain = "svc.example.com"
	line := dnsname.Challenge(domain) + ". CNAME " + record(domain) + "."
	for name, tt := range map[string]struct {
		prepare func(*lab)
		warns   bool
	}{
		"leads there": {func(l *lab) { l.delegate(domain) }, false},
		"missing":     {func(*lab) {}, true},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			tt.prepare(l)
			l.production.SetBlocked(netip.MustParseAddr("127.0.0.1"))
			l.DNS.Timeout = 300 * time.Millisecond
			var endpoints []resolver.Endpoint
			for range 2 {
				e, err := resolver.ParseEndpoint(l.world.AddResolver().URL())
				if err != nil {
					t.Fatal(err)
				}
				endpoints = append(endpoints, e)
			}
			l.Panel = resolver.NewPanel(endpoints)
			if _, err := l.Present(t.Context(), order(1, domain)[0], caller(t)); err != nil {
				t.Fatal(err)
			}
			l.wantValues(t, domain, val(1))
			warned := slices.ContainsFunc(l.steps, func(s Step) bool { return s.Warn && strings.Contains(s.Detail, line) })
			if warned != tt.warns {
				t.Errorf("warned of %q: %v, want %v\n%s", line, warned, tt.warns, l.log)
			}
			if _, err := l.CleanUp(t.Context(), order(1, domain)[0], caller(t)); err != nil {
				t.Fatal(err)
			}
			if err := l.Rehearse(t.Context(), []string{domain}); !tt.warns && err != nil {
				t.Error(err)
			} else if tt.warns {
				wantKind(t, err, fault.Unknown, line)
			}
			for _, q := range l.world.Matching(record(domain), dns.TypeANY) {
				if q.Recursive {
					t.Errorf("a resolver was asked: %v", q)
				}
			}
		})
	}
}

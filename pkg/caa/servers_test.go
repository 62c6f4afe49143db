package caa

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/tests/dnstest"
)

// A CA may ask any server of a zone: where they differ, each view is what it finds that way, the climb included.
func TestViews(t *testing.T) {
	const us, other = `CAA 0 issue "letsencrypt.org"`, `CAA 0 issue "other.example"`
	lag := func(l *lab) { l.two.SetLag(time.Hour) }
	tests := []struct {
		name    string
		records []string // before the second server begins to lag
		after   func(*lab)
		views   []string // servers, owner, values or error
	}{
		{name: "they agree", records: []string{domain + " " + us}},
		{name: "none has any", after: func(l *lab) { l.add(domain + " A 192.0.2.1") }},
		{name: "added", after: func(l *lab) { l.add(domain + " " + us) }, views: []string{"one.example.com: svc.example.com letsencrypt.org", "two.example.com: nothing"}},
		{name: "removed", records: []string{domain + " " + us}, after: func(l *lab) { l.Remove("example.com", domain+" "+us) }, views: []string{"one.example.com: nothing", "two.example.com: svc.example.com letsencrypt.org"}},
		{
			name: "replaced", records: []string{domain + " " + us},
			after: func(l *lab) { l.Remove("example.com", domain+" "+us); l.add(domain + " " + other) },
			views: []string{"one.example.com: svc.example.com other.example", "two.example.com: svc.example.com letsencrypt.org"},
		},
		{
			name: "without it the one above counts", records: []string{"example.com " + other},
			after: func(l *lab) { l.add(domain + " " + us) },
			views: []string{"one.example.com: svc.example.com letsencrypt.org", "two.example.com: example.com other.example"},
		},
		{
			name:  "two differences, one above the other",
			after: func(l *lab) { l.add(domain+" "+us, "example.com "+other) },
			views: []string{"one.example.com: svc.example.com letsencrypt.org", "two.example.com one.example.com: example.com other.example", "two.example.com two.example.com: nothing"},
		},
		{
			name: "CNAMEs to different targets", records: []string{domain + " CNAME t.cdn.example.net", "t.cdn.example.net " + us, "u.cdn.example.net " + other},
			after: func(l *lab) {
				l.Remove("example.com", domain+" CNAME t.cdn.example.net")
				l.add(domain + " CNAME u.cdn.example.net")
			},
			views: []string{"two.example.com: svc.example.com letsencrypt.org", "one.example.com: svc.example.com other.example"},
		},
		{
			name: "CNAMEs to targets with the same", records: []string{domain + " CNAME t.cdn.example.net", "t.cdn.example.net " + us, "u.cdn.example.net " + us},
			after: func(l *lab) {
				l.Remove("example.com", domain+" CNAME t.cdn.example.net")
				l.add(domain + " CNAME u.cdn.example.net")
			},
		},
		{
			name: "records, and before a CNAME into a dead zone", records: []string{domain + " CNAME t.cdn.example.net"},
			after: func(l *lab) {
				l.cdn.SetDead(true)
				l.Remove("example.com", domain+" CNAME t.cdn.example.net")
				l.add(domain + " " + us)
			},
			views: []string{"one.example.com: svc.example.com letsencrypt.org", "two.example.com: error"},
		},
		{
			name: "delegated by one only", records: []string{domain + " " + us},
			after: func(l *lab) { l.AddZone(domain, l.cdn); l.Add(domain, domain+" "+other) },
			views: []string{"two.example.com: svc.example.com letsencrypt.org", "ns.cdn.example.net: svc.example.com other.example"},
		},
		{
			name: "delegated by one only, to nobody", records: []string{domain + " " + us},
			after: func(l *lab) { l.AddZone(domain, l.cdn); l.cdn.SetLame(true) },
			views: []string{"two.example.com: svc.example.com letsencrypt.org", "those of the zone svc.example.com: error"},
		},
		{
			name: "the target's servers differ", records: []string{domain + " CNAME t.example.com"},
			after: func(l *lab) { l.add("t.example.com " + us) },
			views: []string{"one.example.com: svc.example.com letsencrypt.org", "two.example.com: nothing"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.add(tt.records...)
			lag(l)
			if tt.after != nil {
				tt.after(l)
			}
			s, err := Lookup(t.Context(), l.client, l.panel, domain)
			if err != nil {
				t.Fatal(err)
			}
			var views []string
			for _, v := range s.Views {
				text := strings.Join(v.Servers, " ") + ":"
				for _, rr := range v.Set.Records {
					text += " " + v.Set.Owner + " " + rr.Value
				}
				switch {
				case v.Err != nil:
					text += " error"
				case len(v.Set.Records) == 0:
					text += " nothing"
				}
				views = append(views, text)
			}
			if !slices.Equal(views, tt.views) {
				t.Errorf("views %q, want %q", views, tt.views)
			}
			if len(tt.views) > 0 && s.Proven {
				t.Error("proven, though the servers differ")
			}
		})
	}
}

// A server that does not answer while another does is named.
func TestLookupNamesWhoFails(t *testing.T) {
	for name, prepare := range map[string]func(*dnstest.Server){
		"SERVFAIL": func(s *dnstest.Server) { s.SetRcodeFor(domain, dns.RcodeServerFailure) },
		"lame":     func(s *dnstest.Server) { s.SetLame(true) },
		"dead":     func(s *dnstest.Server) { s.SetDead(true) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.add(domain + ` CAA 0 issue "letsencrypt.org"`)
			prepare(l.two)
			s, err := Lookup(t.Context(), l.client, l.panel, domain)
			if err != nil || len(s.Failing) != 1 || s.Failing[0].Server != l.two.Host {
				t.Errorf("%+v, %v", s, err)
			}
		})
	}
}

// liar is a resolver to which nothing has CAA records.
type liar struct{ *lab }

func (r liar) Ask(ctx context.Context, name string, qtype uint16) (*dns.Msg, error) {
	if qtype == dns.TypeCAA {
		return new(dns.Msg), nil
	}
	return r.World.Ask(ctx, name, qtype)
}

// One resolver that lies does not hide the records of a public suffix; two that agree spare us its servers.
func TestPublicSuffix(t *testing.T) {
	const forbids = `com CAA 0 issue "other.example"`
	for name, tt := range map[string]struct {
		prepare func(*lab)
		hidden  bool
		asked   bool // its servers
	}{
		"both tell":               {asked: true},
		"one denies":              {prepare: func(l *lab) { l.r1.SetAnswer("com", dns.TypeCAA) }, asked: true},
		"one denies, one is dead": {prepare: func(l *lab) { l.r1.SetAnswer("com", dns.TypeCAA); l.r2.SetDead(true) }, asked: true},
		"one denies, no other":    {prepare: func(l *lab) { l.r1.SetAnswer("com", dns.TypeCAA); l.panel = panelOf(t, l.r1) }, asked: true},
		"both deny":               {prepare: func(l *lab) { l.r1.SetAnswer("com", dns.TypeCAA); l.r2.SetAnswer("com", dns.TypeCAA) }, hidden: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.add(forbids)
			l.client.Recursive = liar{l}
			if tt.prepare != nil {
				tt.prepare(l)
			}
			s, err := Lookup(t.Context(), l.client, l.panel, domain)
			if err != nil || (s.Owner == "com") == tt.hidden {
				t.Errorf("%+v, %v", s, err)
			}
			if asked := len(l.Matching("com", dns.TypeCAA)) > len(l.r1.Queries())+len(l.r2.Queries()); asked != tt.asked {
				t.Errorf("asked its servers: %v", asked)
			}
		})
	}
}

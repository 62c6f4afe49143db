package caa

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/resolver"
	"github.com/certhook/certhook/tests/dnstest"
)

func caaOf(owner, account string) string {
	return fmt.Sprintf(`%s. CAA 0 issue "letsencrypt.org;validationmethods=dns-01;accounturi=%s"`, owner, account)
}

// Where no authoritative server can be reached.
func TestPanel(t *testing.T) {
	own := caaOf(domain, acct)
	above := caaOf("example.com", acct)
	nothing := func(r *dnstest.Resolver) { r.SetAnswer(domain, dns.TypeCAA) }
	says := func(r *dnstest.Resolver, rr string) { r.SetAnswer(domain, dns.TypeCAA, rr) }
	dead := func(r *dnstest.Resolver) { r.Close() }
	servfail := func(r *dnstest.Resolver) { r.SetRcode(dns.RcodeServerFailure) }
	tests := []struct {
		name    string
		records []string
		prepare func(*lab)
		set     []string // texts of the records; nil for none
		owner   string
		cname   string
		unknown bool
		refused bool
		lock    Lock
	}{
		{name: "both know", records: []string{own}, set: []string{own}, owner: domain, lock: Locked},
		{name: "neither has any", lock: Absent},
		{name: "both know of those above", records: []string{above}, set: []string{above}, owner: "example.com", lock: Locked},
		{name: "one has heard too early", records: []string{own}, prepare: func(l *lab) { nothing(l.r1) }, set: []string{own}, owner: domain, lock: Locked},
		{name: "one has a denial of the name", records: []string{own}, prepare: func(l *lab) { l.r2.SetRcodeFor(domain, dns.RcodeNameError) }, set: []string{own}, owner: domain, lock: Locked},
		{
			name: "one has heard too early, and those above do not count", records: []string{own, `example.com CAA 0 issue ";"`},
			prepare: func(l *lab) { nothing(l.r1) }, set: []string{own}, owner: domain, lock: Locked,
		},
		{
			name: "two different sets", records: []string{own}, prepare: func(l *lab) { says(l.r2, domain+`. CAA 0 issue "other.example"`) },
			set: []string{own, domain + `. CAA 0 issue "other.example"`}, owner: domain, lock: Open,
		},
		{
			name: "one lies of an old account", records: []string{own}, prepare: func(l *lab) { says(l.r1, caaOf(domain, other)) },
			set: []string{own, caaOf(domain, other)}, owner: domain, lock: Open,
		},
		{name: "one truncates", records: []string{own}, prepare: func(l *lab) { l.r1.SetTruncate(true) }, set: []string{own}, owner: domain, lock: Locked},
		{name: "one is slow", records: []string{own}, prepare: func(l *lab) { l.r2.SetDelay(300 * time.Millisecond) }, set: []string{own}, owner: domain, lock: Locked},
		{
			name: "a CNAME", records: []string{"svc.example.com CNAME t.cdn.example.net", caaOf("t.cdn.example.net", acct)},
			set: []string{caaOf("t.cdn.example.net", acct)}, owner: domain, cname: "t.cdn.example.net", lock: Locked,
		},
		{
			name: "a CNAME of which one has not heard", records: []string{"svc.example.com CNAME t.cdn.example.net", caaOf("t.cdn.example.net", acct)},
			prepare: func(l *lab) { nothing(l.r1) },
			set:     []string{caaOf("t.cdn.example.net", acct)}, owner: domain, cname: "t.cdn.example.net", lock: Locked,
		},
		{
			name: "a CNAME of which one has, and records now", records: []string{own, caaOf("t.cdn.example.net", acct)},
			prepare: func(l *lab) {
				l.r1.SetAnswer(domain, dns.TypeCAA, "svc.example.com. CNAME t.cdn.example.net.", caaOf("t.cdn.example.net", other))
			},
			set: []string{own, caaOf(domain, other)}, owner: domain, lock: Open,
		},
		{
			name: "one of three dead, and two agree", records: []string{above},
			prepare: func(l *lab) { l.panel = panelOf(t, l.r1, l.r2, l.AddResolver()); dead(l.r1) },
			set:     []string{above}, owner: "example.com", lock: Locked,
		},

		{name: "one dead", records: []string{own}, prepare: func(l *lab) { dead(l.r1) }, unknown: true},
		{name: "one has heard too early, one dead", records: []string{own}, prepare: func(l *lab) { nothing(l.r1); dead(l.r2) }, unknown: true},
		{name: "both dead", records: []string{own}, prepare: func(l *lab) { dead(l.r1); dead(l.r2) }, unknown: true},
		{name: "one truncates in vain", records: []string{own}, prepare: func(l *lab) { l.r1.SetTruncate(true); l.r1.SetUDPOnly(true) }, unknown: true},
		{name: "both fail", records: []string{own}, prepare: func(l *lab) { servfail(l.r1); servfail(l.r2) }, unknown: true, refused: true},
		{name: "one fails, one dead", records: []string{own}, prepare: func(l *lab) { servfail(l.r1); dead(l.r2) }, unknown: true},
		{name: "one fails, one knows", records: []string{own}, prepare: func(l *lab) { servfail(l.r1) }, unknown: true},
		{name: "one alone knows", records: []string{own}, prepare: func(l *lab) { l.panel = panelOf(t, l.r1) }, unknown: true},
		{name: "one alone fails", records: []string{own}, prepare: func(l *lab) { l.panel = panelOf(t, l.r1); servfail(l.r1) }, unknown: true},
		{name: "nobody to ask", records: []string{own}, prepare: func(l *lab) { l.panel = resolver.Panel{} }, unknown: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.add(tt.records...)
			l.client.Port = 9 // where no authoritative server answers
			if tt.prepare != nil {
				tt.prepare(l)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second) // for those that are waited for in vain
			defer cancel()
			s, err := Lookup(ctx, l.client, l.panel, domain)
			e, failed := errors.AsType[*Error](err)
			if failed != tt.unknown || failed && (e.Refused != tt.refused || fault.KindOf(err) != fault.Unknown) {
				t.Fatalf("got %+v, %v", s, err)
			}
			if tt.name == "nobody to ask" && len(l.r1.Queries())+len(l.r2.Queries()) > 0 {
				t.Error("a resolver was asked that is not on the panel")
			}
			if failed {
				if told := fmt.Sprintf("of %d resolvers", l.panel.Size()); strings.Contains(err.Error(), told) != (l.panel.Size() > 0) {
					t.Errorf("error %v", err)
				}
				return
			}
			if s.Owner != tt.owner || s.CNAME != tt.cname || s.Target != tt.cname || s.Proven || !s.Resolvers || !s.Plain {
				t.Errorf("got %+v", s)
			}
			var got []string
			for _, rr := range s.Records {
				got = append(got, s.finding(rr, "").Record)
			}
			slices.Sort(tt.set)
			if !slices.Equal(got, tt.set) {
				t.Errorf("records %q, want %q", got, tt.set)
			}
			for _, st := range l.panel.Ask(t.Context(), domain, dns.TypeCAA) {
				if st.Err == nil && !slices.Contains(s.Sources, st.Server) {
					t.Errorf("the sources %q lack %s", s.Sources, st.Server)
				}
			}
			r := Evaluate(Question{Domain: domain, Issuer: us, Method: "dns-01", Account: acct}, s)
			if !r.Allowed || r.Lock != tt.lock {
				t.Errorf("got %+v", r)
			}
		})
	}
}

// One that answers nothing costs no more than the time there is.
func TestPanelOfTheSilent(t *testing.T) {
	l := newLab(t)
	l.add(caaOf(domain, acct))
	l.client.Port = 9
	l.r1.SetDead(true)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	s, err := Lookup(ctx, l.client, l.panel, domain)
	if e, ok := errors.AsType[*Error](err); !ok || e.Refused || !strings.Contains(err.Error(), "1 of 2") {
		t.Errorf("got %+v, %v", s, err)
	}
}

// What two resolvers agree on is not lost to a third that is silent: there is time for the names above.
func TestPanelWithASilentOne(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.client.Port = 9
	l.panel = panelOf(t, l.r1, l.r2, l.AddResolver())
	l.r1.SetDead(true)
	ctx, cancel := context.WithTimeout(t.Context(), panelTimeout+2*time.Second) // as after some for the authoritative servers
	defer cancel()
	s, err := Lookup(ctx, l.client, l.panel, domain)
	if err != nil || len(s.Records) > 0 || !s.Resolvers || slices.Contains(s.Sources, l.r1.URL()) {
		t.Errorf("got %+v, %v", s, err)
	}
}

// As long as an authoritative server answers, no resolver of the panel hears of the name, nor of any but a public suffix.
func TestPanelIsNotAsked(t *testing.T) {
	for name, records := range map[string][]string{"none": nil, "own": {caaOf(domain, acct)}, "CNAME": {"svc.example.com CNAME t.cdn.example.net"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.add(records...)
			l.one.SetDead(true)
			if _, err := Lookup(t.Context(), l.client, l.panel, domain); err != nil {
				t.Fatal(err)
			}
			for _, q := range slices.Concat(l.r1.Queries(), l.r2.Queries()) {
				if q.Name != "com" {
					t.Errorf("asked %v", q)
				}
			}
			for _, q := range l.Matching(domain, dns.TypeNS) {
				t.Errorf("asked %v", q)
			}
		})
	}
}

func TestHeard(t *testing.T) {
	own, above := caaOf(domain, acct), caaOf("example.com", acct)
	second := domain + `. CAA 0 iodef "mailto:a@b"`
	tests := []struct {
		name    string
		records []string
		prepare func(*lab)
		says    string // r1; r2 has what holds
	}{
		{name: "all agree", records: []string{own, second}},
		{name: "none", records: []string{own}, prepare: func(l *lab) { l.r1.SetAnswer(domain, dns.TypeCAA) }, says: "has no CAA at svc.example.com"},
		{name: "denied", records: []string{own}, prepare: func(l *lab) { l.r1.SetRcodeFor(domain, dns.RcodeNameError) }, says: "has no CAA at svc.example.com"},
		{name: "an older one", records: []string{own}, prepare: func(l *lab) { l.r1.SetAnswer(domain, dns.TypeCAA, caaOf(domain, other)) }, says: "has " + caaOf(domain, other) + ", and not " + own},
		{name: "more than there is", records: []string{own}, prepare: func(l *lab) { l.r1.SetAnswer(domain, dns.TypeCAA, own, caaOf(domain, other)) }, says: "has also " + caaOf(domain, other)},
		{name: "not all", records: []string{own, second}, prepare: func(l *lab) { l.r1.SetAnswer(domain, dns.TypeCAA, own) }, says: "does not have " + second},
		{name: "another order", records: []string{own, second}, prepare: func(l *lab) { l.r1.SetAnswer(domain, dns.TypeCAA, second, own) }},
		{name: "above", records: []string{above}, prepare: func(l *lab) { l.r1.SetAnswer("example.com", dns.TypeCAA) }, says: "has no CAA at example.com"},
		{
			name: "behind a CNAME", records: []string{"svc.example.com CNAME t.cdn.example.net", caaOf("t.cdn.example.net", acct)},
			prepare: func(l *lab) { l.r1.SetAnswer(domain, dns.TypeCAA, "svc.example.com. CNAME t.cdn.example.net.") }, says: "has no CAA at svc.example.com",
		},
		{name: "fails", records: []string{own}, prepare: func(l *lab) { l.r1.SetRcode(dns.RcodeServerFailure) }},
		{name: "is dead", records: []string{own}, prepare: func(l *lab) { l.r1.Close() }},
		{name: "no records", prepare: func(l *lab) { l.r1.SetAnswer(domain, dns.TypeCAA, own) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.add(tt.records...)
			if tt.prepare != nil {
				tt.prepare(l)
			}
			s, err := Lookup(t.Context(), l.client, l.panel, domain)
			if err != nil {
				t.Fatal(err)
			}
			var want []resolver.Laggard
			if tt.says != "" {
				want = []resolver.Laggard{{Server: l.r1.URL(), Says: tt.says}}
			}
			got := Heard(t.Context(), l.panel, s)
			if !slices.Equal(got.Lagging, want) {
				t.Errorf("got %+v, want %q", got, want)
			}
			if (len(got.Failing) > 0) != (tt.name == "fails") || (len(got.Silent) > 0) != (tt.name == "is dead") {
				t.Errorf("got %+v", got)
			}
			for _, q := range slices.Concat(l.r1.Queries(), l.r2.Queries()) {
				if q.Name != s.Owner && q.Name != "com" || q.Type != dns.TypeCAA {
					t.Errorf("asked %v", q)
				}
			}
		})
	}
}

// What encrypted resolvers say by themselves does not get weaker by a plain one that agrees.
func TestPlain(t *testing.T) {
	says := func(plain bool, records ...string) resolver.Statement {
		m := new(dns.Msg)
		for _, text := range records {
			m.Answer = append(m.Answer, record(t, text))
		}
		return resolver.Statement{Server: "x", Plain: plain, Msg: m}
	}
	const plain, encrypted = true, false
	own := caaOf(domain, acct)
	for name, tt := range map[string]struct {
		said []resolver.Statement
		want bool
	}{
		"encrypted":                        {[]resolver.Statement{says(encrypted, own), says(encrypted, own)}, false},
		"plain":                            {[]resolver.Statement{says(plain, own), says(plain, own)}, true},
		"one of each":                      {[]resolver.Statement{says(encrypted, own), says(plain, own)}, true},
		"a plain one that agrees":          {[]resolver.Statement{says(encrypted, own), says(encrypted), says(plain, own)}, false},
		"a plain one that has none":        {[]resolver.Statement{says(encrypted, own), says(encrypted, own), says(plain)}, false},
		"a plain one that has more":        {[]resolver.Statement{says(encrypted, own), says(encrypted, own), says(plain, own, caaOf(domain, other))}, true},
		"a plain one, others have nothing": {[]resolver.Statement{says(encrypted), says(encrypted), says(plain, own)}, true},
	} {
		if a := together(domain, tt.said); a.err != nil || a.plain != tt.want {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

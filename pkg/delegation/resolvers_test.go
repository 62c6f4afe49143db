package delegation

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/resolver"
	"github.com/certhook/certhook/tests/dnstest"
)

// cutOff is a lab with two resolvers besides, that know of the served zone while we cannot even find its
// servers.
func cutOff(t *testing.T) (*lab, *dnstest.Resolver, *dnstest.Resolver) {
	t.Helper()
	l := newLab(t)
	l.resolvers = []*dnstest.Resolver{l.AddResolver(), l.AddResolver()}
	l.FailAsk("example.com", dnstest.ServFail)
	return l, l.resolvers[0], l.resolvers[1]
}

// block puts a firewall between us and servers; resolvers have their own way.
func (l *lab) block(hosts ...string) {
	for _, host := range hosts {
		l.ns[host].SetBlocked(netip.MustParseAddr("127.0.0.1"))
	}
}

func delegated(t *testing.T) Target {
	t.Helper()
	target, err := Settings{Aliases: []string{"deleg.example.net"}}.Target("svc.example.com")
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// TestCheckByResolvers has no authoritative server of the served zone that would tell.
func TestCheckByResolvers(t *testing.T) {
	none := func(rs ...*dnstest.Resolver) {
		for _, r := range rs {
			r.SetAnswer(challenge, dns.TypeCNAME)
		}
	}
	right := challenge + " CNAME " + record
	tests := []struct {
		name    string
		prepare func(l *lab, a, b *dnstest.Resolver)
		want    Status
		missing bool
		chain   []string
		lagging map[string]int // how many say what
		says    []string
	}{
		{name: "both show it", prepare: func(l *lab, _, _ *dnstest.Resolver) { l.add(right) }, want: OK, chain: []string{record}},
		{name: "both show it, and the value stands", prepare: func(l *lab, _, _ *dnstest.Resolver) {
			l.add(right, record+" TXT value")
		}, want: OK, chain: []string{record}},
		{name: "both show it, the alias zone is out of reach as well", prepare: func(l *lab, _, _ *dnstest.Resolver) {
			l.add(right)
			l.block("ns.example.net", "ns.deleg.example.net")
		}, want: OK, chain: []string{record}, says: []string{"cannot be told"}},
		{name: "the servers are out of reach", prepare: func(l *lab, _, _ *dnstest.Resolver) {
			l.add(right)
			l.FailAsk("example.com", dnstest.NoFailure)
			l.block("ns1.example.com", "ns2.example.com")
		}, want: OK, chain: []string{record}},
		{name: "the servers fail at the name", prepare: func(l *lab, a, b *dnstest.Resolver) {
			l.FailAsk("example.com", dnstest.NoFailure)
			l.ns["ns1.example.com"].SetRcodeFor(challenge, dns.RcodeServerFailure)
			l.ns["ns2.example.com"].SetRcodeFor(challenge, dns.RcodeServerFailure)
			a.SetAnswer(challenge, dns.TypeCNAME, right)
			b.SetAnswer(challenge, dns.TypeCNAME, right)
		}, want: OK, chain: []string{record}},
		{name: "one shows it, one has a negative answer", prepare: func(l *lab, _, b *dnstest.Resolver) {
			l.add(right)
			none(b)
		}, want: OK, chain: []string{record}, lagging: map[string]int{"has no CNAME at " + challenge: 1}},
		{name: "one shows it, one has heard of the name too early", prepare: func(l *lab, a, _ *dnstest.Resolver) {
			l.add(right)
			a.SetRcodeFor(challenge, dns.RcodeNameError)
		}, want: OK, chain: []string{record}, lagging: map[string]int{"has no CNAME at " + challenge: 1}},
		{name: "one shows it, one an older target", prepare: func(l *lab, a, _ *dnstest.Resolver) {
			l.add(right)
			a.SetAnswer(challenge, dns.TypeCNAME, challenge+" CNAME old.other.org")
		}, want: OK, chain: []string{record}, lagging: map[string]int{"has the CNAME old.other.org. at " + challenge: 1}},
		{name: "in two steps, one lagging at the second", prepare: func(l *lab, a, _ *dnstest.Resolver) {
			l.add(challenge+" CNAME hop.example.com.", "hop.example.com CNAME "+record)
			a.SetAnswer("hop.example.com", dns.TypeCNAME)
		}, want: OK, chain: []string{"hop.example.com", record}, lagging: map[string]int{"has no CNAME at hop.example.com": 1}},
		{name: "three resolvers, one dead", prepare: func(l *lab, a, _ *dnstest.Resolver) {
			l.add(right)
			l.resolvers = append(l.resolvers, l.AddResolver())
			a.Close()
		}, want: OK, chain: []string{record}},

		{name: "one shows it, one is dead", prepare: func(l *lab, _, b *dnstest.Resolver) {
			l.add(right)
			b.Close()
		}, want: Unknown, says: []string{record}},
		{name: "one has nothing, one gives no answer in time", prepare: func(_ *lab, a, b *dnstest.Resolver) {
			none(a)
			b.SetDead(true)
		}, want: Unknown},
		{name: "both dead", prepare: func(l *lab, a, b *dnstest.Resolver) {
			l.add(right)
			a.Close()
			b.Close()
		}, want: Unknown},
		{name: "both SERVFAIL", prepare: func(l *lab, a, b *dnstest.Resolver) {
			l.add(right)
			a.SetRcode(dns.RcodeServerFailure)
			b.SetRcode(dns.RcodeServerFailure)
		}, want: Unknown, says: []string{"SERVFAIL"}},
		{name: "one resolver alone", prepare: func(l *lab, _, _ *dnstest.Resolver) {
			l.add(right)
			l.resolvers = l.resolvers[:1]
		}, want: Unknown},
		{name: "none", prepare: func(l *lab, _, _ *dnstest.Resolver) {
			l.add(right)
			l.resolvers = nil
		}, want: Unknown},
		{name: "elsewhere, where one does not answer", prepare: func(l *lab, a, _ *dnstest.Resolver) {
			l.add(challenge + " CNAME x.other.org.")
			l.block("ns.other.org")
			a.SetRcodeFor("x.other.org", dns.RcodeServerFailure)
		}, want: Unknown, chain: []string{"x.other.org"}, says: []string{"x.other.org"}},
		{name: "to a name that the record lies below", prepare: func(l *lab, _, _ *dnstest.Resolver) {
			l.add(challenge + " CNAME svc.example.com.deleg.example.net.")
		}, want: Unknown, chain: []string{"svc.example.com.deleg.example.net"}},

		{name: "nothing", prepare: func(*lab, *dnstest.Resolver, *dnstest.Resolver) {}, want: Wrong, missing: true},
		{name: "three resolvers, one dead, two without", prepare: func(l *lab, a, _ *dnstest.Resolver) {
			l.resolvers = append(l.resolvers, l.AddResolver())
			a.Close()
		}, want: Wrong, missing: true},
		{name: "elsewhere", prepare: func(l *lab, _, _ *dnstest.Resolver) {
			l.add(challenge + " CNAME x.other.org.")
		}, want: Wrong, chain: []string{"x.other.org"}, says: []string{"x.other.org."}},
		{name: "one elsewhere, one nothing", prepare: func(l *lab, _, b *dnstest.Resolver) {
			l.add(challenge + " CNAME x.other.org.")
			none(b)
		}, want: Wrong, chain: []string{"x.other.org"}},
		{name: "to the root", prepare: func(l *lab, _, _ *dnstest.Resolver) { l.add(challenge + " CNAME .") }, want: Wrong, chain: []string{""}},
		{name: "a circle", prepare: func(l *lab, _, _ *dnstest.Resolver) {
			l.add(challenge+" CNAME hop.example.com.", "hop.example.com CNAME "+challenge+".")
		}, want: Wrong, chain: []string{"hop.example.com", challenge}, says: []string{"circle"}},
	}
	target := delegated(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l, a, b := cutOff(t)
			tt.prepare(l, a, b)
			v := Check(t.Context(), l.client, l.panel(t), target)
			if v.Status != tt.want || v.Missing != tt.missing || !slices.Equal(v.Chain, tt.chain) {
				t.Fatalf("verdict %+v, want %s, missing %v, chain %q", v, tt.want, tt.missing, tt.chain)
			}
			if err := v.Err(); err != nil {
				t.Errorf("error %v on the word of resolvers", err)
			}
			if told := tt.want != Unknown; (v.Source == Resolvers) != told || v.Plain != told {
				t.Errorf("source %q, plain %v", v.Source, v.Plain)
			}
			if tt.want == Wrong && (v.Record != line || !strings.Contains(v.Reason, line)) {
				t.Errorf("record %q, reason %q, want %q in both", v.Record, v.Reason, line)
			}
			for _, word := range tt.says {
				if !strings.Contains(v.Reason, word) {
					t.Errorf("reason %q does not say %q", v.Reason, word)
				}
			}
			if len(l.resolvers) < resolver.Quorum && slices.ContainsFunc(l.Queries(), func(q dnstest.Query) bool { return q.Recursive && q.Server != "" }) {
				t.Error("a resolver was asked in vain")
			}
			late := map[string]int{}
			for _, lag := range v.Lagging {
				late[lag.Says]++
			}
			if len(late) != len(tt.lagging) || slices.ContainsFunc(v.Lagging, func(lag resolver.Laggard) bool { return late[lag.Says] != tt.lagging[lag.Says] }) {
				t.Errorf("lagging %v, want %v", v.Lagging, tt.lagging)
			}
		})
	}
}

// TestCheckByResolversAlong starts where authoritative servers lead, and needs resolvers from there.
func TestCheckByResolversAlong(t *testing.T) {
	l := newLab(t)
	l.resolvers = []*dnstest.Resolver{l.AddResolver(), l.AddResolver()}
	l.add(challenge+" CNAME x.other.org.", "x.other.org CNAME "+record)
	l.block("ns.other.org")
	v := Check(t.Context(), l.client, l.panel(t), delegated(t))
	if v.Status != OK || v.Source != Resolvers || !slices.Equal(v.Chain, []string{"x.other.org", record}) {
		t.Errorf("verdict %+v", v)
	}
	for _, r := range l.resolvers {
		for _, q := range r.Queries() {
			if q.Name != "x.other.org" {
				t.Errorf("a resolver was asked: %v", q)
			}
		}
	}
}

// TestPlain has the same said over plain DNS and over a protected way.
func TestPlain(t *testing.T) {
	right, wrong := fact{cname, record}, fact{}
	k := &check{t: delegated(t)}
	for _, tt := range []struct {
		name        string
		says        []saying
		led, denied bool
	}{
		{"all plain", []saying{{"a", true, right}, {"b", true, wrong}}, true, true},
		{"the one that shows it is protected", []saying{{"a", false, right}, {"b", true, wrong}}, false, true},
		{"the one that does not is", []saying{{"a", true, right}, {"b", false, wrong}}, true, true},
		{"two protected", []saying{{"a", true, right}, {"b", false, wrong}, {"c", false, right}}, false, false},
	} {
		heard := map[string][]saying{challenge: tt.says}
		if v := k.led([]string{challenge, record}, heard); v.Plain != tt.led {
			t.Errorf("%s: plain %v for what stands", tt.name, v.Plain)
		}
		if v := k.denied([]string{challenge}, nil, heard); v.Plain != tt.denied {
			t.Errorf("%s: plain %v for what does not", tt.name, v.Plain)
		}
	}
}

// TestCheckIgnoresResolvers has resolvers that say something else than the authoritative servers.
func TestCheckIgnoresResolvers(t *testing.T) {
	none, right := []string{}, []string{challenge + " CNAME " + record}
	tests := []struct {
		name    string
		target  Target
		prepare func(*lab)
		say     []string // the resolvers, of the challenge
		want    Status
	}{
		{"right, and denied", delegated(t), func(l *lab) { l.add(right...) }, none, OK},
		{"right on the one server in reach, and denied", delegated(t), func(l *lab) {
			l.block("ns2.example.com")
			l.add(right...)
		}, none, OK},
		{"missing, and claimed", delegated(t), func(*lab) {}, right, Wrong},
		{"in doubt, and claimed", delegated(t), func(l *lab) {
			l.ns["ns2.example.com"].SetLag(time.Hour)
			l.add(right...)
		}, right, Unknown},
		{"no delegation", Target{Domain: "svc.example.com", Challenge: challenge, Record: challenge}, func(l *lab) {
			l.block("ns1.example.com", "ns2.example.com")
		}, right, Unknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.resolvers = []*dnstest.Resolver{l.AddResolver(), l.AddResolver()}
			for _, r := range l.resolvers {
				r.SetAnswer(challenge, dns.TypeCNAME, tt.say...)
			}
			tt.prepare(l)
			v := Check(t.Context(), l.client, l.panel(t), tt.target)
			if v.Status != tt.want || v.Source == Resolvers || (v.Err() != nil) != (tt.want == Wrong) {
				t.Errorf("verdict %+v with error %v, want %s", v, v.Err(), tt.want)
			}
			for _, r := range l.resolvers {
				if len(r.Queries()) > 0 {
					t.Errorf("a resolver was asked: %v", r.Queries())
				}
			}
		})
	}
}

func TestHeard(t *testing.T) {
	l := newLab(t)
	l.add(challenge+" CNAME hop.example.com.", "hop.example.com CNAME "+record)
	for range 5 {
		l.resolvers = append(l.resolvers, l.AddResolver())
	}
	l.resolvers[0].SetRcodeFor(challenge, dns.RcodeNameError)
	l.resolvers[1].SetAnswer(challenge, dns.TypeCNAME, challenge+" CNAME old.other.org")
	l.resolvers[2].Close()
	l.resolvers[3].SetRcode(dns.RcodeServerFailure)
	target := delegated(t)
	v := Check(t.Context(), l.client, l.panel(t), target)
	if v.Status != OK || v.Source != Authoritative {
		t.Fatalf("verdict %+v", v)
	}
	want := []resolver.Laggard{
		{Server: l.resolvers[0].URL(), Says: "has no CNAME at " + challenge},
		{Server: l.resolvers[1].URL(), Says: "has the CNAME old.other.org. at " + challenge},
	}
	heard := Heard(t.Context(), l.panel(t), target, v)
	if !slices.Equal(heard.Lagging, want) {
		t.Errorf("lagging %v, want %v", heard.Lagging, want)
	}
	if len(heard.Silent) != 1 || heard.Silent[0].Server != l.resolvers[2].URL() || len(heard.Failing) != 1 || heard.Failing[0].Server != l.resolvers[3].URL() {
		t.Errorf("heard %+v", heard)
	}
	// Where the record may be missing nobody is asked.
	before := len(l.Queries())
	for _, v := range []Verdict{{Status: Wrong, Source: Authoritative}, {Status: Unknown}, {Status: OK, Source: Resolvers, Chain: []string{record}}, {Status: OK, Source: Authoritative}} {
		if heard := Heard(t.Context(), l.panel(t), target, v); len(heard.Lagging)+len(heard.Silent)+len(heard.Failing) > 0 {
			t.Errorf("heard %+v for %+v", heard, v)
		}
	}
	if asked := l.Queries()[before:]; len(asked) > 0 {
		t.Errorf("asked %v", asked)
	}
}

// TestStructure tells apart what a report has to, by the word of authoritative servers.
func TestStructure(t *testing.T) {
	for name, tt := range map[string]struct {
		prepare func(*lab)
		missing bool
		chain   []string
		lagging []string
	}{
		"nothing":           {prepare: func(*lab) {}, missing: true},
		"a TXT":             {prepare: func(l *lab) { l.add(challenge + " TXT old") }},
		"a wildcard's TXT":  {prepare: func(l *lab) { l.add("*.example.com TXT old") }, missing: true},
		"elsewhere":         {prepare: func(l *lab) { l.add(challenge+" CNAME a.other.org.", "a.other.org CNAME b.other.org.") }, chain: []string{"a.other.org", "b.other.org"}},
		"a wildcard's":      {prepare: func(l *lab) { l.add("*.example.com CNAME a.other.org.") }, missing: true, chain: []string{"a.other.org"}},
		"a circle":          {prepare: func(l *lab) { l.add(challenge + " CNAME " + challenge) }, chain: []string{challenge}},
		"right":             {prepare: func(l *lab) { l.add(challenge + " CNAME " + record) }, chain: []string{record}},
		"right in a detour": {prepare: func(l *lab) { l.add(challenge+" CNAME a.other.org.", "a.other.org CNAME "+record) }, chain: []string{"a.other.org", record}},
		"one server lags": {prepare: func(l *lab) {
			l.ns["ns2.example.com"].SetLag(time.Hour)
			l.add(challenge + " CNAME " + record)
		}},
		"one server leads there by a detour": {prepare: func(l *lab) {
			l.add(challenge+" CNAME a.other.org.", "a.other.org CNAME "+record)
			l.ns["ns2.example.com"].SetLag(time.Hour)
			l.Remove("example.com", challenge+" CNAME a.other.org.")
			l.add(challenge + " CNAME " + record)
		}, chain: []string{record}, lagging: []string{"ns2.example.com"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			tt.prepare(l)
			v := Check(t.Context(), l.client, l.panel(t), delegated(t))
			var late []string
			for _, lag := range v.Lagging {
				late = append(late, lag.Server)
			}
			if v.Missing != tt.missing || !slices.Equal(v.Chain, tt.chain) || !slices.Equal(late, tt.lagging) {
				t.Errorf("verdict %+v, want missing %v, chain %q, lagging %q", v, tt.missing, tt.chain, tt.lagging)
			}
			if err := v.Err(); err != nil && fault.KindOf(err) != fault.Verdict {
				t.Errorf("error %v", err)
			}
		})
	}
}

// TestCheckAsksOnce counts: no server hears a question twice in one check.
func TestCheckAsksOnce(t *testing.T) {
	l := newLab(t)
	l.add(challenge + " CNAME " + record)
	if v := Check(t.Context(), l.client, l.panel(t), delegated(t)); v.Status != OK {
		t.Fatalf("verdict %+v", v)
	}
	asked := map[string]int{}
	for _, q := range l.Queries() {
		what := strings.Join([]string{q.Server, q.Transport, q.Name, dns.Type(q.Type).String()}, " ")
		if asked[what]++; asked[what] == 2 {
			t.Errorf("asked twice: %s", what)
		}
	}
}

package caa

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/authority"
	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/resolver"
	"github.com/certhook/certhook/tests/dnstest"
)

// lab is a world with the served zone example.com on two servers, a third party's zone cdn.example.net, and
// what is above them.
type lab struct {
	*dnstest.World
	client   *authority.Client
	panel    resolver.Panel
	r1, r2   *dnstest.Resolver // the panel
	one, two *dnstest.Server   // of example.com
	tld, cdn *dnstest.Server
}

const domain = "svc.example.com"

// newLab makes a lab. At the end the client's resolver may have been asked about registered names and name
// servers only, and the panel about the domain and what is above it.
func newLab(t *testing.T) *lab {
	t.Helper()
	w := dnstest.New(t)
	l := &lab{World: w, tld: w.AddServer("tld.test"), one: w.AddServer("one.example.com"), two: w.AddServer("two.example.com"), cdn: w.AddServer("ns.cdn.example.net")}
	w.AddZone("", w.AddServer("root.test"))
	for _, zone := range []string{"test", "com", "net"} {
		w.AddZone(zone, l.tld)
	}
	w.AddZone("example.com", l.one, l.two)
	w.AddZone("example.net", l.cdn)
	w.AddZone("cdn.example.net", l.cdn)
	l.client = &authority.Client{Recursive: w, Port: w.Port, Timeout: 400 * time.Millisecond}
	l.r1, l.r2 = w.AddResolver(), w.AddResolver()
	l.panel = panelOf(t, l.r1, l.r2)
	t.Cleanup(func() {
		for _, q := range w.Queries() {
			panel := q.Server != "" && q.Type == dns.TypeCAA && dnsname.Within(domain, q.Name)
			client := q.Server == "" && (q.Type == dns.TypeA || q.Type == dns.TypeAAAA || strings.Count(q.Name, ".") <= 1)
			if q.Recursive && !panel && !client {
				t.Errorf("a resolver was asked: %v", q)
			}
		}
	})
	return l
}

func panelOf(t *testing.T, resolvers ...*dnstest.Resolver) resolver.Panel {
	t.Helper()
	var endpoints []resolver.Endpoint
	for _, r := range resolvers {
		e, err := resolver.ParseEndpoint(r.URL())
		if err != nil {
			t.Fatal(err)
		}
		endpoints = append(endpoints, e)
	}
	return resolver.NewPanel(endpoints)
}

// add adds records such as `svc.example.com CAA 0 issue "x"` to the zones that they lie in.
func (l *lab) add(records ...string) {
	for _, r := range records {
		zone := ""
		for _, z := range []string{"com", "example.com", "net", "cdn.example.net"} {
			if dnsname.Within(strings.TrimSuffix(strings.Fields(r)[0], "."), z) {
				zone = z
			}
		}
		l.Add(zone, r)
	}
}

func TestLookup(t *testing.T) {
	const us, other = `CAA 0 issue "letsencrypt.org"`, `CAA 0 issue "other.example"`
	tests := []struct {
		name    string
		records []string
		prepare func(*lab)
		owner   string
		target  string
		cname   string
		values  []string // of the records, sorted
		weak    bool     // not proven
		panel   bool     // had to be asked
		lagging []string // authoritative servers and what they say
	}{
		{name: "none", weak: true}, // the top-level name was asked of a resolver
		{name: "own", records: []string{"svc.example.com " + us, "example.com " + other}, owner: domain, values: []string{"letsencrypt.org"}},
		{name: "several", records: []string{"svc.example.com " + us, "svc.example.com " + other}, owner: domain, values: []string{"letsencrypt.org", "other.example"}},
		{name: "of the zone", records: []string{"example.com " + other, "www.example.com " + us}, owner: "example.com", values: []string{"other.example"}},
		{name: "of the top-level name", records: []string{"com " + other}, owner: "com", values: []string{"other.example"}},
		{name: "any tag hides those above", records: []string{`svc.example.com CAA 0 iodef "mailto:a@b"`, "example.com " + other}, owner: domain, values: []string{"mailto:a@b"}},
		{name: "a wildcard's is not its base's", records: []string{"*.svc.example.com " + other, "example.com " + us}, owner: "example.com", values: []string{"letsencrypt.org"}},
		{name: "made up by a wildcard", records: []string{"*.example.com " + other}, owner: domain, values: []string{"other.example"}},
		{
			name: "failures above do not matter", records: []string{"svc.example.com " + us},
			prepare: func(l *lab) {
				l.one.SetRcodeFor("example.com", dns.RcodeServerFailure)
				l.two.SetRcodeFor("example.com", dns.RcodeServerFailure)
			},
			owner: domain, values: []string{"letsencrypt.org"}, weak: true, panel: true, // the zone cannot be found
		},

		{
			name: "of a CNAME's target", records: []string{"svc.example.com CNAME t.cdn.example.net", "t.cdn.example.net " + other, "example.com " + us},
			owner: domain, target: "t.cdn.example.net", cname: "t.cdn.example.net", values: []string{"other.example"},
		},
		{
			name: "not of the names above the target", records: []string{"svc.example.com CNAME t.cdn.example.net", "t.cdn.example.net A 192.0.2.1", "cdn.example.net " + other, "example.com " + us},
			owner: "example.com", cname: "t.cdn.example.net", values: []string{"letsencrypt.org"},
		},
		{
			name: "of the end of several CNAMEs", records: []string{"svc.example.com CNAME a.example.com", "a.example.com CNAME b.cdn.example.net", "b.cdn.example.net CNAME c.example.com", "c.example.com " + us},
			owner: domain, target: "c.example.com", cname: "c.example.com", values: []string{"letsencrypt.org"},
		},
		{
			name: "of a target that the server tells of unasked", records: []string{"svc.example.com CNAME a.example.com", "a.example.com " + us},
			prepare: func(l *lab) { l.one.SetChase(true); l.two.SetChase(true) },
			owner:   domain, target: "a.example.com", cname: "a.example.com", values: []string{"letsencrypt.org"},
		},
		{
			name: "target that does not exist", records: []string{"svc.example.com CNAME gone.cdn.example.net", "example.com " + us},
			owner: "example.com", cname: "gone.cdn.example.net", values: []string{"letsencrypt.org"},
		},

		{
			name: "of a CNAME's target in the alias zone", records: []string{"example.com " + us},
			prepare: func(l *lab) {
				l.AddZone("deleg.example.net", l.cdn)
				l.add("svc.example.com CNAME svc.deleg.example.net")
				l.Add("deleg.example.net", "svc.deleg.example.net "+other)
			},
			owner: domain, target: "svc.deleg.example.net", cname: "svc.deleg.example.net", values: []string{"other.example"},
		},
		{
			name: "not of the alias zone, to which only the challenge leads", records: []string{"example.com " + us},
			prepare: func(l *lab) {
				l.AddZone("deleg.example.net", l.cdn)
				l.add("_acme-challenge.svc.example.com CNAME svc.deleg.example.net")
				l.Add("deleg.example.net", "svc.deleg.example.net "+other)
				l.Add("deleg.example.net", "deleg.example.net "+other)
			},
			owner: "example.com", values: []string{"letsencrypt.org"},
		},
		{name: "target is the root", records: []string{"svc.example.com CNAME .", "example.com " + us}, owner: "example.com", cname: ".", values: []string{"letsencrypt.org"}},

		{
			name: "in a zone of its own", records: []string{"example.com " + us},
			prepare: func(l *lab) { l.AddZone(domain, l.cdn); l.Add(domain, "svc.example.com "+other) },
			owner:   domain, values: []string{"other.example"},
		},
		{
			name: "in a zone of its own without any", records: []string{"example.com " + us},
			prepare: func(l *lab) { l.AddZone(domain, l.cdn) },
			owner:   "example.com", values: []string{"letsencrypt.org"},
		},
		{
			name: "in a zone of its own on the same servers", records: []string{"example.com " + us},
			prepare: func(l *lab) { l.AddZone(domain, l.one, l.two); l.Add(domain, "svc.example.com "+other) },
			owner:   domain, values: []string{"other.example"},
		},

		{
			name: "one server dead", records: []string{"svc.example.com " + us},
			prepare: func(l *lab) { l.one.SetDead(true) },
			owner:   domain, values: []string{"letsencrypt.org"},
		},
		{
			name: "one server lame", records: []string{"svc.example.com " + us},
			prepare: func(l *lab) { l.one.SetLame(true) },
			owner:   domain, values: []string{"letsencrypt.org"},
		},
		{
			name: "a server that lags has an older set", records: []string{"svc.example.com " + us},
			prepare: func(l *lab) { l.two.SetLag(time.Hour); l.add("svc.example.com " + other) },
			owner:   domain, values: []string{"letsencrypt.org", "other.example"}, weak: true,
			lagging: []string{`two.example.com does not have svc.example.com. CAA 0 issue "other.example"`},
		},
		{
			name: "a server that lags has none yet", records: []string{"example.com " + us},
			prepare: func(l *lab) { l.two.SetLag(time.Hour); l.add("svc.example.com " + other) },
			owner:   domain, values: []string{"other.example"}, weak: true,
			lagging: []string{"two.example.com has no CAA at svc.example.com"},
		},
		{
			name: "a server that lags has a CNAME", records: []string{"svc.example.com CNAME t.cdn.example.net", "t.cdn.example.net " + us},
			prepare: func(l *lab) {
				l.two.SetLag(time.Hour)
				l.Remove("example.com", "svc.example.com CNAME t.cdn.example.net")
				l.add("svc.example.com " + other)
			},
			owner: domain, values: []string{"other.example"}, weak: true,
			lagging: []string{"two.example.com has no CAA at svc.example.com"},
		},
		{
			name: "a server that lags has another CNAME", records: []string{"svc.example.com CNAME t.cdn.example.net", "t.cdn.example.net " + us, "u.cdn.example.net " + other},
			prepare: func(l *lab) {
				l.two.SetLag(time.Hour)
				l.Remove("example.com", "svc.example.com CNAME t.cdn.example.net")
				l.add("svc.example.com CNAME u.cdn.example.net")
			},
			owner: domain, target: "u.cdn.example.net", cname: "u.cdn.example.net", values: []string{"letsencrypt.org", "other.example"}, weak: true,
			lagging: []string{"one.example.com has the CNAME u.cdn.example.net. at svc.example.com", "two.example.com has the CNAME t.cdn.example.net. at svc.example.com"},
		},
		{
			name: "a server that lags has no CNAME yet", records: []string{"t.cdn.example.net " + us},
			prepare: func(l *lab) { l.two.SetLag(time.Hour); l.add("svc.example.com CNAME t.cdn.example.net") },
			owner:   domain, target: "t.cdn.example.net", cname: "t.cdn.example.net", values: []string{"letsencrypt.org"}, weak: true,
			lagging: []string{"one.example.com has the CNAME t.cdn.example.net. at svc.example.com", "two.example.com has no CNAME at svc.example.com"},
		},
		{
			name: "the target's servers disagree", records: []string{"svc.example.com CNAME t.example.com"},
			prepare: func(l *lab) { l.two.SetLag(time.Hour); l.add("t.example.com " + us) },
			owner:   domain, target: "t.example.com", cname: "t.example.com", values: []string{"letsencrypt.org"}, weak: true,
			lagging: []string{"two.example.com has no CAA at t.example.com"},
		},
		{
			name: "servers without authority, resolvers know", records: []string{"svc.example.com " + us},
			prepare: func(l *lab) { l.client.Port = 9 }, // where nobody answers
			owner:   domain, values: []string{"letsencrypt.org"}, weak: true, panel: true,
		},
		{
			name: "the target's servers do not answer, resolvers know", records: []string{"svc.example.com CNAME t.cdn.example.net", "t.cdn.example.net " + us},
			prepare: func(l *lab) { l.client.Port = 9 },
			owner:   domain, target: "t.cdn.example.net", cname: "t.cdn.example.net", values: []string{"letsencrypt.org"}, weak: true, panel: true,
		},
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
			var values []string
			for _, rr := range s.Records {
				values = append(values, rr.Value)
			}
			if s.Owner != tt.owner || s.Target != tt.target || s.CNAME != tt.cname || s.Proven == tt.weak || strings.Join(values, " ") != strings.Join(tt.values, " ") {
				t.Errorf("got %+v", s)
			}
			var lagging []string
			for _, laggard := range s.Lagging {
				lagging = append(lagging, laggard.Server+" "+laggard.Says)
			}
			if !slices.Equal(lagging, tt.lagging) {
				t.Errorf("lagging %q", lagging)
			}
			if s.Resolvers != tt.panel || s.Plain != tt.panel || slices.Contains(s.Sources, l.r1.URL()) != tt.panel {
				t.Errorf("resolvers: %v, plain: %v, sources %q", s.Resolvers, s.Plain, s.Sources)
			}
			if !tt.panel && !slices.Contains(s.Sources, l.one.Host) && !slices.Contains(s.Sources, l.two.Host) && !slices.Contains(s.Sources, l.cdn.Host) {
				t.Errorf("sources %q", s.Sources)
			}
		})
	}
}

// withoutCom is a resolver to which the top-level name does not exist, though what is below it does.
type withoutCom struct{ *lab }

func (r withoutCom) Ask(ctx context.Context, name string, qtype uint16) (*dns.Msg, error) {
	if name == "com" {
		return &dns.Msg{MsgHdr: dns.MsgHdr{Rcode: dns.RcodeNameError}}, nil
	}
	return r.World.Ask(ctx, name, qtype)
}

func TestLookupFailure(t *testing.T) {
	servfail := func(name string) func(*lab) {
		return func(l *lab) {
			l.one.SetRcodeFor(name, dns.RcodeServerFailure)
			l.two.SetRcodeFor(name, dns.RcodeRefused)
		}
	}
	deaf := func(l *lab) { l.r1.Close(); l.r2.Close() }
	tests := map[string]struct {
		prepare func(*lab)
		name    string // that nobody tells of
		refused bool
	}{
		"error codes at the domain":                    {servfail(domain), domain, true},
		"error codes above it":                         {servfail("example.com"), "example.com", true},
		"error codes, and no resolver":                 {func(l *lab) { servfail(domain)(l); deaf(l) }, domain, true},
		"error codes, and an empty panel":              {func(l *lab) { servfail(domain)(l); l.panel = resolver.Panel{} }, domain, true},
		"one error code, one dead, error codes of all": {func(l *lab) { servfail(domain)(l); l.two.SetDead(true) }, domain, true},
		"one error code, one dead, and no resolver":    {func(l *lab) { servfail(domain)(l); l.two.SetDead(true); deaf(l) }, domain, false},
		"one error code, one dead, and an empty panel": {func(l *lab) { servfail(domain)(l); l.two.SetDead(true); l.panel = resolver.Panel{} }, domain, false},
		"nobody answers":                               {func(l *lab) { l.client.Port = 9; deaf(l) }, domain, false},
		"nobody knows the zone":                        {func(l *lab) { l.FailAsk("example.com", dnstest.ServFail); deaf(l) }, domain, false},
		"nobody knows the zone, and an empty panel":    {func(l *lab) { l.FailAsk("example.com", dnstest.ServFail); l.panel = resolver.Panel{} }, domain, false},
		"no such top-level name, as all resolvers have": {func(l *lab) {
			l.client.Recursive = withoutCom{l}
			l.r1.SetRcodeFor("com", dns.RcodeNameError)
			l.r2.SetRcodeFor("com", dns.RcodeNameError)
		}, "com", true},
		"a circle": {func(l *lab) {
			l.add("svc.example.com CNAME a.example.com", "a.example.com CNAME svc.example.com")
		}, domain, true},
		"a target whose servers fail": {func(l *lab) {
			l.add("svc.example.com CNAME t.cdn.example.net")
			l.cdn.SetRcodeFor("t.cdn.example.net", dns.RcodeServerFailure)
		}, domain, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			tt.prepare(l)
			s, err := Lookup(t.Context(), l.client, l.panel, domain)
			e, ok := errors.AsType[*Error](err)
			if !ok || fault.KindOf(err) != fault.Unknown || e.Name != tt.name || e.Refused != tt.refused {
				t.Errorf("got %+v, %v (%+v)", s, err, e)
			}
		})
	}
}

// The usual case costs few questions: those about the zone, which the caller may have found already, and
// one to each of its servers for the domain and each name above it. Whether there is a zone below is one more.
func TestLookupAsksLittle(t *testing.T) {
	l := newLab(t)
	l.add(`svc.example.com CAA 0 issue "letsencrypt.org"`)
	zone, err := l.client.Zone(t.Context(), "example.com")
	if err != nil {
		t.Fatal(err)
	}
	before := len(l.Queries())
	if _, err := Lookup(t.Context(), l.client, l.panel, domain, zone); err != nil {
		t.Fatal(err)
	}
	for _, q := range l.Queries()[before:] {
		if q.Type != dns.TypeCAA && q.Type != dns.TypeSOA || q.Recursive || q.Name == "com" {
			t.Errorf("asked %v", q)
		}
	}
	if n := len(l.Queries()) - before; n != 5 {
		t.Errorf("%d questions", n)
	}
}

func TestLookupEndsWithContext(t *testing.T) {
	l := newLab(t)
	l.FailAsk("example.com", dnstest.Timeout)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if s, err := Lookup(ctx, l.client, l.panel, domain); fault.KindOf(err) != fault.Unknown {
		t.Errorf("got %+v, %v", s, err)
	}
}

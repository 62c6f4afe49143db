package rfc2136_test

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/provider"
	"github.com/certhook/certhook/pkg/provider/rfc2136"
	"github.com/certhook/certhook/tests/bindtest"
)

const served = "svc.example.com"

// productionZones are what an operator may have made of the zone of the served domain.
var productionZones = map[string]struct {
	zone   *bindtest.Zone
	reach  string // zones within reach
	absent string
	unsaid bool // the server leaves it open
}{
	"elsewhere":         {nil, "", "example.com svc.example.com", false},
	"no grant":          {&bindtest.Zone{}, "", "example.com svc.example.com", false},
	"other names":       {&bindtest.Zone{Policy: []string{"grant certhook-key. name www.example.com. A"}}, "", "example.com svc.example.com", false},
	"another key":       {&bindtest.Zone{Policy: []string{"grant other-key. zonesub ANY"}}, "", "example.com svc.example.com", false},
	"the challenge":     {&bindtest.Zone{Policy: []string{"grant certhook-key. name _acme-challenge.svc.example.com. TXT"}}, "example.com", "svc.example.com", false},
	"the lock":          {&bindtest.Zone{Policy: []string{"grant certhook-key. name svc.example.com. CAA"}}, "example.com", "svc.example.com", false},
	"everything":        {&bindtest.Zone{Policy: []string{"grant certhook-key. zonesub ANY"}}, "example.com", "svc.example.com", false},
	"open to everybody": {&bindtest.Zone{Open: true}, "", "svc.example.com", true},
}

func TestReach(t *testing.T) {
	for name, tc := range productionZones {
		t.Run(name, func(t *testing.T) {
			var more []bindtest.Zone
			if tc.zone != nil {
				tc.zone.Name = "example.com"
				more = append(more, *tc.zone)
			}
			l := newLab(t, more...)
			before := l.serials(more)
			r, err := l.provider(nil).Reach(t.Context(), []string{zone}, []string{served})
			if err != nil {
				t.Fatal(err)
			}
			var list []string
			for _, z := range r.Zones {
				list = append(list, z.Name)
			}
			if got := strings.Join(list, " "); got != tc.reach {
				t.Errorf("reach %q, want %q", got, tc.reach)
			}
			if got := strings.Join(r.Absent, " "); got != tc.absent {
				t.Errorf("absent %q, want %q", got, tc.absent)
			}
			if got := strings.Contains(r.Partial, `"example.com"`); r.Partial == "" || got != tc.unsaid {
				t.Errorf("partial %q", r.Partial)
			}
			want := provider.Unclear
			if tc.reach != "" {
				want = provider.TooWide
			}
			if s := r.Judge([]string{zone}, []string{served}); s.Extent != want {
				t.Errorf("extent %q, want %q", s.Extent, want)
			}
			if policy := "grant certhook-key. subdomain " + zone + ". TXT;"; !strings.Contains(r.Advice, policy) || strings.Contains(r.Advice, l.key.Secret[:12]) {
				t.Errorf("advice %q, want %q in it", r.Advice, policy)
			}
			if after := l.serials(more); !slices.Equal(before, after) {
				t.Errorf("a zone was changed: %q, before %q", after, before)
			}
		})
	}
}

// serials is every zone's SOA and all else, which a change would show in.
func (l *lab) serials(more []bindtest.Zone) []string {
	l.t.Helper()
	var all []string
	for _, name := range append([]string{zone, parent}, zoneNames(more)...) {
		r, err := dns.Exchange(new(dns.Msg).SetQuestion(dns.Fqdn(name), dns.TypeSOA), l.Addr.String())
		if err != nil {
			l.t.Fatal(err)
		}
		all = append(append(all, r.Answer[0].String()), l.Transfer(name)...)
	}
	return all
}

func zoneNames(zones []bindtest.Zone) []string {
	var names []string
	for _, z := range zones {
		names = append(names, z.Name)
	}
	return names
}

// Without a key nothing tells a server that trusts our address from one that looks at its policy last.
func TestReachNoKey(t *testing.T) {
	l := newLab(t, bindtest.Zone{Name: "example.com", Open: true})
	p := l.provider(func(c *rfc2136.Config) { c.KeyName, c.KeySecret = "", "" })
	r, err := p.Reach(t.Context(), []string{zone}, []string{served})
	if err != nil || len(r.Zones) > 0 || !strings.Contains(r.Partial, `"example.com"`) || !strings.Contains(r.Advice, "RFC2136_TSIG_NAME") {
		t.Errorf("%+v, %v", r, err)
	}
}

// A server that does not care for the condition says nothing by taking the update.
func TestReachConditionIgnored(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	accept := func(dns.Header) dns.MsgAcceptAction { return dns.MsgAccept }
	server := &dns.Server{Listener: listener, MsgAcceptFunc: accept, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, m *dns.Msg) {
		_ = w.WriteMsg(new(dns.Msg).SetReply(m))
	})}
	go func() { _ = server.ActivateAndServe() }()
	t.Cleanup(func() { _ = server.Shutdown() })
	p, err := rfc2136.New(rfc2136.Config{Server: listener.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Reach(t.Context(), []string{zone}, []string{served})
	if err != nil || len(r.Zones)+len(r.Absent) > 0 || !strings.Contains(r.Partial, `"example.com", "svc.example.com"`) {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestReachFails(t *testing.T) {
	l := newLab(t, bindtest.Zone{Name: "example.com"})
	try := func(change func(*rfc2136.Config), text, hint string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err := l.provider(change).Reach(ctx, []string{zone}, []string{served})
		refused(t, l.key.Secret, err, text, hint)
	}
	try(func(c *rfc2136.Config) { c.KeyName = "another-key" }, "BADKEY", "RFC2136_TSIG_NAME")
	try(func(c *rfc2136.Config) { c.KeySecret = bindtest.NewKey("x").Secret }, "another secret", "RFC2136_TSIG_SECRET")
	try(func(c *rfc2136.Config) { c.Now = func() time.Time { return time.Now().Add(time.Hour) } }, "clocks", "clock")
	for fault, text := range map[bindtest.Fault]string{bindtest.Unsign: "unsigned", bindtest.Forge: "unsigned", bindtest.ServFail: "SERVFAIL", bindtest.LoseReply: "EOF"} {
		l.relay.Break(fault, bindtest.IsUpdate, -1)
		try(nil, text, "")
		l.relay.Mend()
	}
	l.relay.Break(bindtest.Stall, bindtest.Always, -1)
	try(nil, "deadline", "does not answer")
}

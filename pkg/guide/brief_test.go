package guide

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/authority"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/resolver"
)

func TestBrief(t *testing.T) {
	t.Parallel()
	fail := func(server string, err error) error {
		return &resolver.Error{Server: server, Name: domain, Type: dns.TypeCAA, Err: err}
	}
	var many []error
	for i := range 7 {
		many = append(many, fail(fmt.Sprintf("192.0.2.%d", i), resolver.ErrTimeout))
	}
	tests := []struct {
		name string
		err  error
		want string
	}{
		{"one", fail("192.0.2.1", resolver.ErrTimeout), "192.0.2.1: no answer in time"},
		{"not a server's", errors.New("no name at or above it has NS records"), "no name at or above it has NS records"},
		{"of one reason", errors.Join(fail("192.0.2.1", resolver.ErrTimeout), fail("192.0.2.2", resolver.ErrTimeout)), "192.0.2.1, 192.0.2.2: no answer in time"},
		{
			"of two reasons, wrapped", fault.Errorf(fault.Unknown, "look: %w", errors.Join(
				fmt.Errorf("ns1.example.com: %w", fail("192.0.2.1", authority.ErrNotAuthoritative)),
				fmt.Errorf("of 2 resolvers 0 answer: %w", errors.Join(fail("https://dns.google@8.8.8.8/dns-query", resolver.ErrTimeout), fail("tls://dns.quad9.net", resolver.ErrTimeout))),
			)),
			"192.0.2.1: does not serve the zone; dns.google, dns.quad9.net: no answer in time",
		},
		{"a refusal", resolver.Refusal("udp://192.0.2.1:53", domain, dns.TypeCAA, &dns.Msg{MsgHdr: dns.MsgHdr{Rcode: dns.RcodeServerFailure}}), "192.0.2.1:53: SERVFAIL"},
		{"of many", errors.Join(many...), "192.0.2.0, 192.0.2.1, 192.0.2.2, 192.0.2.3 and 3 more: no answer in time"},
		{"twice the same", errors.Join(many[0], fmt.Errorf("again: %w", many[0])), "192.0.2.0: no answer in time"},
		{"a long text", fail("192.0.2.1", errors.New(strings.Repeat("x", 300))), "192.0.2.1: " + strings.Repeat("x", 80) + "…"},
	}
	for _, tt := range tests {
		if got := brief(tt.err); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// A row is short also where nobody can be reached. Everything that went wrong is there for who asks.
func TestRowsInTheDark(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.block()
	for _, r := range s.resolvers {
		r.Close()
	}
	p := plan(t, domain, func(p *Plan) { p.Gateway, p.TXTName, p.TXTValue = "gw.example.org", "_app."+domain, "id:443" })
	for _, r := range s.Check(t.Context(), []Plan{p}) {
		for _, f := range r.Findings {
			row := f.Line(r.Name)
			if f.Status != Unknown || len(row) > 350 || len(f.More(false)) > 0 {
				t.Errorf("%d octets: %s\n%s", len(row), row, strings.Join(f.More(false), "\n"))
			}
			if all := strings.Join(f.More(true), "\n"); !strings.Contains(all, "ask ") || !strings.Contains(all, s.resolvers[0].URL()) {
				t.Errorf("%s: the cause is not told: %s", f.Kind, all)
			}
		}
	}
}

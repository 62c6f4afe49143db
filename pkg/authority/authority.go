// Package authority finds the zone that a name lies in and asks that zone's own servers. A recursive
// resolver is only asked where its cache does no harm: for zones at and above registered domains or a name
// that the caller vouches for, and for the addresses of name servers. Anywhere else a question before the
// answer exists plants a negative one for up to a day. At and below an _acme-challenge label none is asked.
package authority

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/pkg/resolver"
)

// DefaultTimeout is how long one question to one address may take where [Client] says nothing else.
const DefaultTimeout = 2 * time.Second

// stagger is how long one address waits for the one before where the first answer suffices.
const stagger = 300 * time.Millisecond

// ErrNotAuthoritative means that a server answered and does not serve the zone, whatever it is that it
// said.
var ErrNotAuthoritative = errors.New("the server is not authoritative")

// Recursive is a recursive resolver. An answer is NOERROR or NXDOMAIN; anything else is an error.
type Recursive interface {
	Ask(ctx context.Context, name string, qtype uint16) (*dns.Msg, error)
}

// Client finds zones and asks their servers. It keeps nothing between calls; all methods are safe for
// concurrent use.
type Client struct {
	Recursive Recursive
	Port      uint16        // of every authoritative server; 0 for 53
	Timeout   time.Duration // for one question to one address, UDP and TCP together; 0 for [DefaultTimeout]
}

// Server is a name server of a zone.
type Server struct {
	Name  string       // canonical
	Addrs []netip.Addr // IPv4 first; empty where the name has none or they could not be found
}

// Zone is a zone and the servers it is delegated to.
type Zone struct {
	Name    string // canonical
	Servers []Server
}

// Referral is the answer of a server that has delegated the name, as an error: it is not what was asked.
type Referral struct {
	Zone  string   // the delegated zone, canonical
	Hosts []string // its servers, canonical
	Glue  map[string][]netip.Addr
}

func (r *Referral) Error() string {
	return fmt.Sprintf("the server refers to those of %q", r.Zone)
}

// Query puts one question to one authoritative server, without recursion, over UDP and where need be TCP.
// It returns NOERROR and NXDOMAIN answers that bear the AA flag. A delegation is a *[Referral]; everything
// else is a *[resolver.Error], whose cause is [ErrNotAuthoritative] for an answer without AA.
func (c *Client) Query(ctx context.Context, addr netip.Addr, name string, qtype uint16) (*dns.Msg, error) {
	e := resolver.Endpoint{Transport: resolver.UDP, Addr: addr, Port: c.port()}
	fail := resolver.Error{Server: addr.String(), Name: name, Type: qtype}
	m, err := resolver.ExchangeWithin(ctx, c.timeout(), e, resolver.NewQuestion(name, qtype, false))
	if err != nil {
		fail.Err = err
		if e, ok := errors.AsType[*resolver.Error](err); ok {
			fail.Err = e.Err
		}
		return nil, &fail
	}
	if m.Rcode != dns.RcodeSuccess && m.Rcode != dns.RcodeNameError {
		return nil, resolver.Refusal(addr.String(), name, qtype, m)
	}
	if r := referral(m); r != nil && dnsname.Within(name, r.Zone) {
		return nil, r
	}
	if !m.Authoritative {
		fail.Err = ErrNotAuthoritative
		return nil, &fail
	}
	return m, nil
}

func (c *Client) timeout() time.Duration {
	if c.Timeout > 0 {
		return c.Timeout
	}
	return DefaultTimeout
}

func (c *Client) port() uint16 {
	if c.Port != 0 {
		return c.Port
	}
	return 53
}

// referral returns the delegation that m is, or nil. AA does not matter: some servers set it here too.
func referral(m *dns.Msg) *Referral {
	if m.Rcode != dns.RcodeSuccess || len(m.Answer) > 0 {
		return nil
	}
	r := &Referral{Glue: glue(m.Extra)}
	for _, rr := range m.Ns {
		switch rr := rr.(type) {
		case *dns.SOA:
			return nil // NODATA
		case *dns.NS:
			r.Zone = resolver.Canonical(rr.Hdr.Name)
			r.Hosts = append(r.Hosts, resolver.Canonical(rr.Ns))
		}
	}
	if len(r.Hosts) == 0 {
		return nil
	}
	return r
}

// glue returns the addresses in an additional section by host.
func glue(extra []dns.RR) map[string][]netip.Addr {
	found := map[string][]netip.Addr{}
	for _, rr := range extra {
		if addr, ok := address(rr); ok {
			host := resolver.Canonical(rr.Header().Name)
			found[host] = append(found[host], addr)
		}
	}
	return found
}

func address(rr dns.RR) (netip.Addr, bool) {
	var addr netip.Addr
	switch rr := rr.(type) {
	case *dns.A:
		addr, _ = netip.AddrFromSlice(rr.A)
	case *dns.AAAA:
		addr, _ = netip.AddrFromSlice(rr.AAAA)
	}
	return addr.Unmap(), addr.IsValid()
}

// Answer is what one server of a zone says to a question.
type Answer struct {
	Server string
	Addr   netip.Addr // the one that answered; zero with Err
	Msg    *dns.Msg   // nil with Err
	Err    error      // as Query returns it; joined where several addresses were tried
}

// QueryAll puts one question to every server of zone at once and returns their answers in the zone's
// order. A server's addresses are tried one after the other until one answers.
func (c *Client) QueryAll(ctx context.Context, zone Zone, name string, qtype uint16) []Answer {
	answers := make([]Answer, len(zone.Servers))
	var wg sync.WaitGroup
	for i, s := range zone.Servers {
		wg.Go(func() {
			a, err := first(ctx, s.Addrs, func(ctx context.Context, addr netip.Addr) (Answer, error) {
				m, err := c.Query(ctx, addr, name, qtype)
				return Answer{Addr: addr, Msg: m}, err
			})
			if len(s.Addrs) == 0 {
				err = fmt.Errorf("the name server %q has no address", s.Name)
			}
			a.Server, a.Err = s.Name, err
			answers[i] = a
		})
	}
	wg.Wait()
	return answers
}

// first asks addresses, IPv4 before IPv6, until one succeeds.
func first[T any](ctx context.Context, addrs []netip.Addr, ask func(context.Context, netip.Addr) (T, error)) (T, error) {
	sorted := slices.SortedStableFunc(slices.Values(addrs), ipv4First)
	calls := make([]func(context.Context) (T, error), len(sorted))
	for i, addr := range sorted {
		calls[i] = func(ctx context.Context) (T, error) { return ask(ctx, addr) }
	}
	return resolver.First(ctx, stagger, calls)
}

func ipv4First(a, b netip.Addr) int { return a.BitLen() - b.BitLen() }

// recurse asks the recursive resolver, unless the question could plant a negative answer where a CA will
// look.
func (c *Client) recurse(ctx context.Context, name string, qtype uint16) (*dns.Msg, error) {
	if slices.Contains(strings.Split(name, "."), dnsname.ChallengeLabel) {
		return nil, fmt.Errorf("%q must not be asked of a recursive resolver", name)
	}
	m, err := c.Recursive.Ask(ctx, name, qtype)
	if err != nil {
		return nil, err
	}
	if m.Rcode != dns.RcodeSuccess && m.Rcode != dns.RcodeNameError {
		return nil, resolver.Refusal("the resolver", name, qtype, m)
	}
	return m, nil
}

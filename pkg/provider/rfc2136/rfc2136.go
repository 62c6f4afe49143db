// Package rfc2136 writes challenge records with DNS updates (RFC 2136), signed with a TSIG key (RFC 8945), at
// the zone's primary server: BIND, Knot DNS, PowerDNS and the like. All goes over TCP.
//
// Adding is one update and one question. Servers say NOERROR, too, where they write nothing (beside a CNAME)
// or a record that nobody can see (below a zone cut), so the update carries prerequisites against both, which
// the server checks in the same step, and what counts is that the server shows the value afterwards; what it
// does not show is taken back. Removing is a question, an update and a question. With a key, a reply without
// the server's signature proves nothing.
//
// Updates add and remove one record and leave its siblings, with one exception that lies in DNS itself: all
// TXT of a name share one TTL (RFC 2181, section 5.2), and the last one added sets it.
package rfc2136

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/provider"
)

// Config says which server takes the updates. Only Server is needed: without a key the server has to know us
// by our address.
type Config struct {
	Server string // host:port of the primary

	KeyName      string // of the TSIG key; "" = nothing is signed
	KeySecret    string // base64
	KeyAlgorithm string // "hmac-sha256" and the like; "" = hmac-sha256

	Zone string // the only zone to write to; "" = any that the server has

	RetryWait time.Duration    // pause before a lost connection is tried again, then doubled; 0 = 500 ms
	Now       func() time.Time // the clock that signatures go by; nil = time.Now
}

// Provider implements [provider.Provider].
type Provider struct {
	server *server
	only   string // canonical name of the only zone, or ""

	mu    sync.Mutex
	zones map[string]bool // those that the server has said to be zones
}

var _ provider.Provider = (*Provider)(nil)

// callTime bounds a call whose context has no deadline.
const callTime = time.Minute

// New checks the settings; it asks nothing. Errors are of kind fault.Usage.
func New(cfg Config) (*Provider, error) {
	if host, port, err := net.SplitHostPort(cfg.Server); err != nil || host == "" || port == "" {
		return nil, fault.Errorf(fault.Usage, "the server for DNS updates, %q, is not host:port", cfg.Server).
			WithHint("set RFC2136_SERVER to the zone's primary server")
	}
	s, err := newServer(cfg)
	if err != nil {
		return nil, err
	}
	p := &Provider{server: s, zones: make(map[string]bool)}
	if cfg.Zone != "" {
		if p.only, err = dnsname.Parse(cfg.Zone); err != nil {
			return nil, fault.Errorf(fault.Usage, "the zone for DNS updates: %w", err).
				WithHint("set RFC2136_ZONE to the name of a zone, or leave it out")
		}
	}
	return p, nil
}

// Zone asks the server for the SOA record at exactly that name unless the zone is known. The ID is empty.
func (p *Provider) Zone(ctx context.Context, name string) (provider.Zone, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	err := p.find(ctx, name)
	switch {
	case err == nil:
		return provider.Zone{Name: name}, nil
	case errors.Is(err, provider.ErrNoZone):
		return provider.Zone{}, err
	}
	return provider.Zone{}, fault.Errorf(fault.Provider, "look up zone %q at the DNS server %s: %w", name, p.server.addr, err).
		WithHint("%s", hint(err))
}

func (p *Provider) find(ctx context.Context, name string) error {
	if p.only != "" && name != p.only {
		return fmt.Errorf("zone %q is not the one that RFC2136_ZONE names, %q: %w", name, p.only, provider.ErrNoZone)
	}
	p.mu.Lock()
	known := p.zones[name]
	p.mu.Unlock()
	if known {
		return nil
	}
	if err := p.server.findZone(ctx, name); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.zones[name] = true
	return nil
}

// Add inserts the record; see [change.add].
func (p *Provider) Add(ctx context.Context, zone provider.Zone, rec provider.TXT) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	c, err := p.begin(ctx, zone, rec)
	if err == nil {
		err = c.add(ctx)
	}
	if err != nil {
		return fault.Errorf(fault.Provider, "add the TXT at %q to zone %q at the DNS server %s: %w", rec.Name, zone.Name, p.server.addr, err).
			WithHint("%s", hint(err))
	}
	return nil
}

// Remove deletes the record; see [change.remove].
func (p *Provider) Remove(ctx context.Context, zone provider.Zone, rec provider.TXT) (removed bool, err error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	c, err := p.begin(ctx, zone, rec)
	if err == nil {
		removed, err = c.remove(ctx)
	}
	if err != nil {
		return false, fault.Errorf(fault.Provider, "remove the TXT at %q from zone %q at the DNS server %s: %w", rec.Name, zone.Name, p.server.addr, err).
			WithHint("%s", hint(err))
	}
	return removed, nil
}

// begin checks the arguments of an Add or Remove. A zone that is not known, such as one from a journal, is
// looked up first.
func (p *Provider) begin(ctx context.Context, zone provider.Zone, rec provider.TXT) (*change, error) {
	if err := rec.Check(zone); err != nil {
		return nil, err
	}
	if err := p.find(ctx, zone.Name); err != nil {
		return nil, err
	}
	return &change{server: p.server, zone: zone.Name, rec: rec}, nil
}

func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, callTime)
}

// findZone asks for the SOA record at a name. A zone begins there if the answer is authoritative and has it.
// The error is ErrNoZone if the server shows that it is otherwise: an authoritative answer without the
// record, a delegation to other servers, or a refusal, which is what servers say about zones that are not
// theirs; a key that they do not take leads to other replies. With a key the refusal has to be signed as well,
// which BIND does; from Knot DNS it is a failure like any other.
func (s *server) findZone(ctx context.Context, name string) error {
	r, err := s.ask(ctx, name, dns.TypeSOA)
	if f, ok := errors.AsType[*failure](err); ok && f.kind == denied && f.rcode == dns.RcodeRefused && f.proven {
		return fmt.Errorf("the DNS server %s refuses questions about %q: %w", s.addr, name, provider.ErrNoZone)
	}
	if err != nil {
		return err
	}
	for _, rr := range r.Answer {
		if soa, ok := rr.(*dns.SOA); ok && r.Authoritative && r.Rcode == dns.RcodeSuccess && owned(soa, name) {
			return nil
		}
	}
	if cut := referral(r, name); !r.Authoritative && cut == nil {
		return s.fail(question(name, dns.TypeSOA), notAuthoritative, nil)
	}
	return fmt.Errorf("the DNS server %s has no zone %q: %w", s.addr, name, provider.ErrNoZone)
}

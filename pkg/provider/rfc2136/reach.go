package rfc2136

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/provider"
)

var _ provider.Surveyor = (*Provider)(nil)

// answered is how the server takes an update of a zone.
type answered int

const (
	takes   answered = iota // it would carry it out
	refuses                 // it does not let us change that record
	lacks                   // it holds no such zone
	silent                  // it does not say
)

// Reach finds out whether the key may change the zones of the served domains at this server. A server cannot be
// asked for its policy, nor for its zones; so there is an answer about the zones of the domains alone, and
// whether there are others stays unknown.
//
// The question is an update that cannot come true, see [server.wouldTake]. Nothing is changed, but the server's
// log has it.
func (p *Provider) Reach(ctx context.Context, aliases, domains []string) (provider.Reach, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	r := provider.Reach{
		Partial: "a DNS server does not tell which zones a key may change, and was asked about those of the served domains alone",
		Advice:  p.advice(aliases),
	}
	if err := p.server.known(ctx, slices.Concat(aliases, domains)); err != nil {
		return provider.Reach{}, p.unanswered(err)
	}
	var unsaid []string
	for _, name := range provider.ZoneNames(domains) {
		switch how, err := p.server.asksToChange(ctx, name, domains); {
		case err != nil:
			return provider.Reach{}, p.unanswered(err)
		case how == takes:
			r.Zones = append(r.Zones, provider.Reached{Name: name, Access: provider.AccessEdit})
		case how == refuses || how == lacks:
			r.Absent = append(r.Absent, name)
		default:
			unsaid = append(unsaid, fmt.Sprintf("%q", name))
		}
	}
	if len(unsaid) > 0 {
		r.Partial = fmt.Sprintf("the server does not refuse to change the zone %s even of somebody without a key: either anybody may, or it looks at its policy last", strings.Join(unsaid, ", "))
	}
	return r, nil
}

func (p *Provider) unanswered(err error) error {
	return fault.Errorf(fault.Provider, "ask the DNS server %s what may be changed: %w", p.server.addr, err).WithHint("%s", hint(err))
}

// advice is the policy that the key should have.
func (p *Provider) advice(aliases []string) string {
	if p.server.key == nil {
		return "set RFC2136_TSIG_NAME and RFC2136_TSIG_SECRET: without a key the server goes by addresses, which others may use too"
	}
	if len(aliases) == 0 {
		return fmt.Sprintf("look up in the server's configuration what the key %q may change; it should be the TXT records of the challenges only (BIND: grant %s name _acme-challenge.<domain>. TXT;)",
			p.server.key, p.server.key.name)
	}
	var rules []string
	for _, alias := range aliases {
		rules = append(rules, fmt.Sprintf("grant %s subdomain %s TXT;", p.server.key.name, dns.Fqdn(alias)))
	}
	return fmt.Sprintf("look up in the server's configuration what the key %q may change; in BIND it should be in no allow-update, and in no update-policy but the alias zone's: %s",
		p.server.key, strings.Join(rules, " "))
}

// known makes sure that the server takes the key, for some servers refuse an update as if they did not know it.
func (s *server) known(ctx context.Context, names []string) error {
	if len(names) == 0 {
		return nil
	}
	_, err := s.ask(ctx, names[0], dns.TypeSOA)
	if f, ok := errors.AsType[*failure](err); ok && f.kind == denied && f.rcode == dns.RcodeRefused && f.proven {
		return nil // another server's zone
	}
	return err
}

// asksToChange finds out whether the server would let us change, in a zone of that name, what matters for the
// domains in it: the TXT of a challenge, and the CAA that locks issuance.
func (s *server) asksToChange(ctx context.Context, zone string, domains []string) (answered, error) {
	result := refuses
	for _, domain := range domains {
		if !dnsname.Within(domain, zone) {
			continue
		}
		hdr := func(name string, rrtype uint16) dns.RR_Header {
			return dns.RR_Header{Name: dns.Fqdn(name), Rrtype: rrtype, Class: dns.ClassINET}
		}
		for _, rr := range []dns.RR{
			&dns.TXT{Hdr: hdr(dnsname.Challenge(domain), dns.TypeTXT), Txt: []string{"certhook asks whether it may change this"}},
			&dns.CAA{Hdr: hdr(domain, dns.TypeCAA), Tag: "issue", Value: "certhook-asks-whether-it-may-change-this.invalid"},
		} {
			how, err := s.wouldTake(ctx, zone, rr)
			if err != nil || how == takes || how == lacks {
				return how, err
			}
			if how == silent {
				result = silent
			}
		}
	}
	return result, nil
}

// wouldTake asks for the deletion of a record that is not there, on the condition that the zone has no SOA, which
// every zone has. RFC 2136 has the condition checked before anything is done (section 3.2), and BIND the policy
// before the condition, so that YXRRSET comes from a server that would have gone on, and REFUSED from one that
// would not. One that checks the policy last gives itself away by treating an unsigned request alike.
func (s *server) wouldTake(ctx context.Context, zone string, rr dns.RR) (answered, error) {
	how, err := s.tryUpdate(ctx, zone, rr)
	if err != nil || how != takes {
		return how, err
	}
	nobody := *s // without a key this is the same once more, and the answer open
	nobody.key = nil
	if how, err = nobody.tryUpdate(ctx, zone, rr); err != nil || how != refuses {
		return silent, err
	}
	return takes, nil
}

func (s *server) tryUpdate(ctx context.Context, zone string, rr dns.RR) (answered, error) {
	m := new(dns.Msg).SetUpdate(dns.Fqdn(zone))
	m.RRsetNotUsed([]dns.RR{&dns.SOA{Hdr: dns.RR_Header{Name: dns.Fqdn(zone), Rrtype: dns.TypeSOA}}})
	m.Remove([]dns.RR{dns.Copy(rr)})
	_, err := s.exchange(ctx, fmt.Sprintf("an update of %q that cannot come true", zone), m, dns.RcodeYXRrset)
	f, ok := errors.AsType[*failure](err)
	switch {
	case err == nil:
		return takes, nil
	case !ok:
		return silent, err
	case f.kind == badKey: // Knot DNS, whose acl does not allow it; that it knows the key was seen before
		return refuses, nil
	case f.kind != denied:
		return silent, err
	case f.rcode == dns.RcodeNotAuth: // whose signature miekg/dns does not check
		return lacks, nil
	case (f.rcode == dns.RcodeRefused || f.rcode == dns.RcodeNotImplemented) && f.proven:
		return refuses, nil
	case f.rcode == dns.RcodeSuccess: // it does not care for the condition
		return silent, nil
	}
	return silent, err
}

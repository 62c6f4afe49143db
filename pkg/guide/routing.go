package guide

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/resolver"
)

// gatewayRecord is the CNAME that leads clients to the gateway.
func (p Plan) gatewayRecord() Record {
	return Record{
		Kind: CNAME, Name: p.Name, Type: "CNAME", Value: p.Gateway + ".",
		Note: "leads clients to the gateway; address records of the gateway, or your provider's ALIAS or flattening, will do as well",
	}
}

// checkCNAME looks whether clients reach the gateway: by a CNAME, or by addresses that are the gateway's.
// Under tls-alpn-01 the CA is a client, too.
func (g *Guide) checkCNAME(ctx context.Context, p Plan, gr *ground) Finding {
	f := Finding{Kind: CNAME}
	add, replace := gr.flatNote(p), gr.flatNote(p)
	if add == "" {
		f.Records = []Record{p.gatewayRecord()}
		add, replace = "add "+f.Records[0].Line(), "replace that by "+f.Records[0].Line()
	}
	var own, gateway both
	var wg sync.WaitGroup
	wg.Go(func() { own = g.addresses(ctx, p.Name) })
	wg.Go(func() { gateway = g.addresses(ctx, p.Gateway) })
	wg.Wait()

	f.Source = own.source
	switch {
	case own.led(p.Gateway):
		f.Status, f.Detail = OK, fmt.Sprintf("%s is a CNAME to %s", p.Name, p.Gateway)
		if len(gateway.addrs) == 0 {
			f.Detail = fmt.Sprintf("ok (CNAME, target does not resolve): %s is a CNAME to %s", p.Name, p.Gateway)
			f.Notes = append(f.Notes, fmt.Sprintf("%s has no address: %s", p.Gateway, gateway.why()))
			if p.Method == TLSALPN01 {
				f.Status = Wrong
				f.Detail = fmt.Sprintf("%s is a CNAME to %s, which has no address, and under %s the CA has to connect there", p.Name, p.Gateway, p.Method)
				f.Advice = fmt.Sprintf("have %s resolve, or correct --alias-target", p.Gateway)
				if gateway.err != nil && !errors.Is(gateway.err, errCircle) {
					f.Status = Unknown
				}
			}
		}
	case errors.Is(own.err, errCircle):
		f.Status, f.Detail, f.Advice = Wrong, own.err.Error(), replace
		return f
	case own.err != nil:
		f.Status, f.Detail = Unknown, fmt.Sprintf("cannot tell what stands at %s: %v", p.Name, own.err)
		return f
	case own.empty():
		f.Status, f.Detail = Missing, fmt.Sprintf("there is neither a CNAME nor an address at %s", p.Name)
		f.Advice = add
		return f
	case gateway.err != nil:
		f.Status = Unknown
		f.Detail = fmt.Sprintf("%s has the addresses %s, and those of %s cannot be told: %v", p.Name, strings.Join(own.addrs, ", "), p.Gateway, gateway.err)
		return f
	case len(own.addrs) > 0 && within(own.addrs, gateway.addrs):
		f.Status, f.Detail = OK, fmt.Sprintf("%s has addresses of %s", p.Name, p.Gateway)
	default:
		f.Status, f.Detail = Wrong, fmt.Sprintf("%s leads to %s, not to %s", p.Name, own.where(), p.Gateway)
		f.Advice = replace
		return f
	}
	f.Lagging = own.lacking
	if own.source == Authoritative && f.Status == OK {
		qtype := own.qtype
		if len(own.chain) > 0 {
			qtype = dns.TypeCNAME // the target may not exist yet, and must not be heard of
		}
		f.Lagging = append(f.Lagging, g.late(ctx, p.Name, qtype, own.sight)...)
	}
	return f
}

// both is what stands at a name for IPv4 and IPv6 together.
type both struct {
	sight
	qtype uint16 // of the question that sight is about
	addrs []string
	err   error
}

func (g *Guide) addresses(ctx context.Context, name string) both {
	types := []uint16{dns.TypeA, dns.TypeAAAA}
	sights := make([]sight, len(types))
	errs := make([]error, len(types))
	var wg sync.WaitGroup
	for i, qtype := range types {
		wg.Go(func() { sights[i], errs[i] = g.look(ctx, name, qtype) })
	}
	wg.Wait()
	b := both{sight: sights[0], qtype: types[0]}
	if sights[0].empty() && !sights[1].empty() {
		b.sight, b.qtype = sights[1], types[1]
	}
	for i := range types {
		for _, rr := range sights[i].records {
			switch rr := rr.(type) {
			case *dns.A:
				b.addrs = append(b.addrs, rr.A.String())
			case *dns.AAAA:
				b.addrs = append(b.addrs, rr.AAAA.String())
			}
		}
		if errs[i] != nil {
			b.err = errs[i]
		}
	}
	slices.Sort(b.addrs)
	if len(b.addrs) > 0 {
		b.err = nil // what one question yields stands whatever becomes of the other
	}
	return b
}

// led reports whether CNAMEs lead to a name.
func (b both) led(to string) bool { return slices.Contains(b.chain, to) }

func (b both) why() string {
	if b.err != nil {
		return b.err.Error()
	}
	return "there is neither an A nor an AAAA record"
}

func (b both) where() string {
	var parts []string
	for _, name := range b.chain {
		parts = append(parts, name+".")
	}
	return strings.Join(append(parts, b.addrs...), ", ")
}

// within reports whether all of some are among others.
func within(some, others []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(others, s) })
}

// txtRecord tells the gateway where to lead clients.
func (p Plan) txtRecord() Record {
	return Record{
		Kind: TXT, Name: p.TXTName, Type: "TXT", Value: quoted(p.TXTValue), Exact: true,
		Note: "tells the gateway where to lead clients",
	}
}

// quoted writes a TXT value as a zone file has it.
func quoted(value string) string {
	return `"` + strings.Join(resolver.CharacterStrings(value), `" "`) + `"`
}

// checkTXT looks whether the gateway sees the value: without an authoritative answer every resolver that
// answers has to.
func (g *Guide) checkTXT(ctx context.Context, p Plan, gr *ground) Finding {
	f := Finding{Kind: TXT}
	add, replace := gr.noTXT(p), gr.noTXT(p)
	if add == "" {
		f.Records = []Record{p.txtRecord()}
		add, replace = "add "+f.Records[0].Line(), "replace that by "+f.Records[0].Line()
	}
	s, err := g.look(ctx, p.TXTName, dns.TypeTXT)
	f.Source = s.source
	var others []string
	found := false
	for _, rr := range s.records {
		if value := resolver.TXT(rr.(*dns.TXT)); value == p.TXTValue {
			found = true
		} else {
			others = append(others, quoted(value))
		}
	}
	lacking := s.lacking
	switch {
	case err != nil:
		f.Status, f.Detail = Unknown, fmt.Sprintf("cannot tell what stands at %s: %v", p.TXTName, err)
		return f
	case found && len(lacking) > 0:
		// A gateway takes the first answer that it gets.
		f.Status, f.Lagging = Missing, lacking
		f.Detail = fmt.Sprintf("not everybody sees the TXT at %s yet", p.TXTName)
		f.Advice = "wait; if it stays so, compare the zone on its servers"
		return f
	case found:
		f.Status, f.Detail = OK, fmt.Sprintf("%s says %s", p.TXTName, quoted(p.TXTValue))
		if s.source == Authoritative {
			f.Lagging = g.late(ctx, p.TXTName, dns.TypeTXT, s)
		}
	case len(others) > 0:
		f.Status, f.Detail = Wrong, fmt.Sprintf("%s says %s", p.TXTName, strings.Join(others, ", "))
		f.Advice = replace
		return f
	default:
		f.Status, f.Detail = Missing, fmt.Sprintf("there is no TXT at %s", p.TXTName)
		f.Advice = add
		return f
	}
	if len(others) > 0 {
		f.Notes = append(f.Notes, fmt.Sprintf("%s also says %s; a gateway may take that instead", p.TXTName, strings.Join(others, ", ")))
	}
	return f
}

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
	var own, gateway places
	var wg sync.WaitGroup
	wg.Go(func() { own = g.places(ctx, p.Name) })
	wg.Go(func() { gateway = g.places(ctx, p.Gateway) })
	wg.Wait()

	var views []view
	for _, b := range own.views {
		views = append(views, view{b.servers, p.route(b, gateway.all(), add, replace)})
	}
	f = f.with(worst("where "+p.Name+" leads", views))
	f.Source = own.views[0].source
	f.Lagging = own.views[0].lacking
	f.failing(own.failing)
	if f.Status == OK && f.Source == Authoritative {
		qtype := own.views[0].qtype
		if len(own.views[0].chain) > 0 {
			qtype = dns.TypeCNAME // the target may not exist yet, and must not be heard of
		}
		f.hears(g.heard(ctx, p.Name, qtype, own.sights(qtype)), p.Name, dns.Type(qtype).String())
	}
	return f
}

// route is what comes of what stands at the name of a plan.
func (p Plan) route(own, gateway both, add, replace string) Finding {
	f := Finding{Status: OK}
	switch {
	case own.led(p.Gateway):
		f.Detail = fmt.Sprintf("%s is a CNAME to %s", p.Name, p.Gateway)
		if len(gateway.addrs) > 0 {
			break
		}
		f.Detail += " (target does not resolve)"
		f.Notes = append(f.Notes, fmt.Sprintf("%s has no address: %s", p.Gateway, gateway.why()))
		if p.Method == TLSALPN01 {
			f.Status = Wrong
			f.Detail = fmt.Sprintf("%s is a CNAME to %s, which has no address, and under %s the CA has to connect there", p.Name, p.Gateway, p.Method)
			f.Advice = fmt.Sprintf("have %s resolve, or correct --alias-target", p.Gateway)
			if gateway.err != nil && !errors.Is(gateway.err, errCircle) {
				f.Status = Unknown
			}
		}
	case errors.Is(own.err, errCircle):
		f.Status, f.Detail, f.Advice = Wrong, own.err.Error(), replace
	case own.err != nil && len(own.addrs) == 0:
		return f.undecided("cannot tell what stands at "+p.Name, own.err)
	case own.empty():
		f.Status, f.Detail = Missing, fmt.Sprintf("there is neither a CNAME nor an address at %s", p.Name)
		f.Advice = add
	case len(own.addrs) > 0 && within(own.addrs, gateway.addrs):
		f.Detail = fmt.Sprintf("%s has addresses of %s", p.Name, p.Gateway)
		if own.err != nil { // of the other family, which clients and CAs may prefer
			return f.undecided(f.Detail+", and whether it has others cannot be told", own.err)
		}
	case gateway.err != nil:
		return f.undecided(fmt.Sprintf("%s has the addresses %s, and those of %s cannot be told", p.Name, strings.Join(own.addrs, ", "), p.Gateway), gateway.err)
	default:
		f.Status, f.Detail = Wrong, fmt.Sprintf("%s leads to %s, not to %s", p.Name, own.where(), p.Gateway)
		f.Advice = replace
	}
	return f
}

// both is what stands at a name for IPv4 and IPv6 together.
type both struct {
	sight        // of one question; err is either's, and the other one's addresses stand all the same
	qtype uint16 // of that question
	addrs []string
}

// join takes together what some servers say for IPv4 and for IPv6.
func join(v4, v6 sight) both {
	b := both{sight: v4, qtype: dns.TypeA}
	if v4.empty() && !v6.empty() {
		b.sight, b.qtype = v6, dns.TypeAAAA
	}
	for _, s := range []sight{v4, v6} {
		for _, rr := range s.records {
			switch rr := rr.(type) {
			case *dns.A:
				b.addrs = append(b.addrs, rr.A.String())
			case *dns.AAAA:
				b.addrs = append(b.addrs, rr.AAAA.String())
			}
		}
		if s.err != nil {
			b.err = s.err
		}
	}
	slices.Sort(b.addrs)
	b.addrs = slices.Compact(b.addrs)
	return b
}

// places is what the servers of a name say of its addresses.
type places struct {
	views   []both // one at least
	found   map[uint16][]sight
	failing []resolver.Laggard
}

func (g *Guide) places(ctx context.Context, name string) places {
	var v4, v6 seen
	var wg sync.WaitGroup
	wg.Go(func() { v4 = g.look(ctx, name, dns.TypeA) })
	wg.Go(func() { v6 = g.look(ctx, name, dns.TypeAAAA) })
	wg.Wait()
	p := places{found: map[uint16][]sight{dns.TypeA: v4.sights, dns.TypeAAAA: v6.sights}, failing: append(v4.failing, v6.failing...)}
	for _, a := range v4.sights {
		for _, b := range v6.sights {
			if len(v4.sights) == 1 || len(v6.sights) == 1 || slices.ContainsFunc(a.servers, func(s string) bool { return slices.Contains(b.servers, s) }) {
				p.views = append(p.views, join(a, b))
				if len(v4.sights) == 1 {
					p.views[len(p.views)-1].servers = b.servers
				}
			}
		}
	}
	if len(p.views) == 0 {
		p.views = []both{p.all()}
	}
	return p
}

// sights are those of a type; for CNAME, of any.
func (p places) sights(qtype uint16) []sight {
	if qtype == dns.TypeCNAME {
		return slices.Concat(p.found[dns.TypeA], p.found[dns.TypeAAAA])
	}
	return p.found[qtype]
}

// all is everything that any server says, taken together.
func (p places) all() both {
	var v4, v6 sight
	for i, into := range []*sight{&v4, &v6} {
		for _, s := range p.found[[]uint16{dns.TypeA, dns.TypeAAAA}[i]] {
			records := append(into.records, s.records...)
			if into.empty() {
				*into = s
			}
			into.records = records
			if s.err != nil {
				into.err = s.err
			}
		}
	}
	return join(v4, v6)
}

// addresses is what any server says.
func (g *Guide) addresses(ctx context.Context, name string) both { return g.places(ctx, name).all() }

// led reports whether CNAMEs lead to a name.
func (b both) led(to string) bool { return slices.Contains(b.chain, to) }

func (b both) why() string {
	if b.err != nil {
		return brief(b.err)
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
	seen := g.look(ctx, p.TXTName, dns.TypeTXT)
	var views []view
	for _, s := range seen.sights {
		views = append(views, view{s.servers, p.says(s, add, replace)})
	}
	f = f.with(worst("the TXT at "+p.TXTName, views))
	f.Source = seen.sights[0].source
	f.Lagging = seen.sights[0].lacking
	f.failing(seen.failing)
	if f.Status == OK && f.Source == Authoritative {
		f.hears(g.heard(ctx, p.TXTName, dns.TypeTXT, seen.sights), p.TXTName, "TXT")
	}
	return f
}

// says is what comes of what stands at the TXT's name of a plan.
func (p Plan) says(s sight, add, replace string) Finding {
	var f Finding
	var others []string
	found := false
	for _, rr := range s.records {
		if value := resolver.TXT(rr.(*dns.TXT)); value == p.TXTValue {
			found = true
		} else {
			others = append(others, quoted(value))
		}
	}
	switch {
	case s.err != nil:
		return f.undecided("cannot tell what stands at "+p.TXTName, s.err)
	case found && len(s.lacking) > 0:
		// A gateway takes the first answer that it gets.
		f.Status, f.Detail = Missing, fmt.Sprintf("not every resolver shows the TXT at %s", p.TXTName)
		f.Advice = "wait; if it stays so, compare the zone on its servers"
	case found:
		f.Status, f.Detail = OK, fmt.Sprintf("%s says %s", p.TXTName, quoted(p.TXTValue))
		if len(others) > 0 {
			f.Notes = append(f.Notes, fmt.Sprintf("%s also says %s; a gateway may take that instead", p.TXTName, strings.Join(others, ", ")))
		}
	case len(others) > 0:
		f.Status, f.Detail = Wrong, fmt.Sprintf("%s says %s", p.TXTName, strings.Join(others, ", "))
		f.Advice = replace
	default:
		f.Status, f.Detail = Missing, fmt.Sprintf("there is no TXT at %s", p.TXTName)
		f.Advice = add
	}
	return f
}

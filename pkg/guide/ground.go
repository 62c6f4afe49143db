package guide

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/caa"
	"github.com/certhook/certhook/pkg/dnsname"
)

// ground is what stands, or is to stand, at the names of all plans together, as far as it decides what can be put
// beside it: a CNAME is alone at its name (RFC 1034, section 3.6.2).
type ground struct {
	mu      sync.Mutex
	cnames  map[string]string // names that are to be CNAMEs, or are and hold no domain of a plan: to what
	flat    map[string]string // names that lead clients to the gateway without a CNAME: why
	wild    map[string]string // domains that exist only by a wildcard: that wildcard
	starred map[string]bool   // wildcards that a CAA stands at
	beside  string            // a label that nobody has made, with its dot
}

// survey looks at the names of all plans. What cannot be told is left out.
func (g *Guide) survey(ctx context.Context, plans []Plan) *ground {
	gr := &ground{
		cnames: map[string]string{}, flat: map[string]string{}, wild: map[string]string{}, starred: map[string]bool{},
		beside: "certhook-" + strings.ToLower(rand.Text()) + ".",
	}
	var wg sync.WaitGroup
	for _, p := range plans {
		wg.Go(func() {
			var here, lock, txt place
			flat := ""
			if p.wantsGateway() {
				here = g.standing(ctx, gr, p.Name, dns.TypeTXT, dns.TypeMX, dns.TypeCAA, dns.TypeNS)
				flat = g.flatness(ctx, p, here)
			}
			if p.Include[CAA] && p.CAAOwner != p.Domain {
				lock = g.standing(ctx, gr, p.CAAOwner, dns.TypeCAA)
			}
			if p.wantsTXT() {
				txt = g.standing(ctx, gr, p.TXTName, dns.TypeTXT)
			}
			starred := p.Include[CAA] && p.Wildcard && len(g.standing(ctx, gr, p.Name, dns.TypeCAA).types) > 0
			wild := g.wildcard(ctx, gr, p.Domain)

			gr.mu.Lock()
			defer gr.mu.Unlock()
			if p.wantsGateway() && flat == "" {
				gr.cnames[p.Name] = p.Gateway
			}
			if lock.cname != "" {
				gr.cnames[p.CAAOwner] = lock.cname
			}
			if txt.cname != "" && gr.cnames[p.TXTName] == "" {
				gr.cnames[p.TXTName] = txt.cname
			}
			if flat != "" {
				gr.flat[p.Name] = flat
			}
			if wild != "" {
				gr.wild[p.Domain] = wild
			}
			gr.starred[p.Name] = starred
		})
	}
	wg.Wait()
	return gr
}

// place is what stands at a name by itself, no wildcard making it up.
type place struct {
	cname string   // what it leads to
	types []string // of the other records, in the order asked for
}

// standing asks the authoritative servers for records of some types at a name. What they do not tell is left out.
func (g *Guide) standing(ctx context.Context, gr *ground, name string, types ...uint16) place {
	steps := make([]step, len(types))
	var wg sync.WaitGroup
	for i, qtype := range types {
		wg.Go(func() {
			if s, err := g.step(ctx, name, qtype); err == nil && !s.empty() && !g.madeUp(ctx, gr, name, qtype, s) {
				steps[i] = s
			}
		})
	}
	wg.Wait()
	var p place
	for i, s := range steps {
		if len(s.targets) > 0 {
			p.cname = s.targets[0]
		}
		if len(s.records) > 0 {
			p.types = append(p.types, dns.Type(types[i]).String())
		}
	}
	return p
}

// madeUp reports whether a wildcard makes up what was found at a name: a name beside it has the same.
func (g *Guide) madeUp(ctx context.Context, gr *ground, name string, qtype uint16, own step) bool {
	zone, err := g.DNS.Find(ctx, name)
	if err != nil || zone.Name == name {
		return false
	}
	parent := dnsname.Parent(name)
	if strings.HasPrefix(name, "*.") {
		parent = dnsname.Parent(parent) // beside a wildcard is what it makes up itself
	}
	if !dnsname.Within(parent, zone.Name) {
		return false
	}
	other, err := g.step(ctx, gr.beside+parent, qtype)
	return err == nil && slices.Equal(own.targets, other.targets) && slices.Equal(sorted(own.records), sorted(other.records))
}

// flatness tells why clients are led to the gateway without a CNAME, if they are: because the name is a zone's apex,
// because records stand there that no CNAME can stand beside, or because it has addresses already, its own or what a
// provider made of an ALIAS.
func (g *Guide) flatness(ctx context.Context, p Plan, here place) string {
	if zone, err := g.DNS.Find(ctx, p.Name); err == nil && zone.Name == p.Name {
		return p.Name + " is the apex of a zone"
	}
	if len(here.types) > 0 {
		return stand(here.types) + " at " + p.Name
	}
	if own := g.addresses(ctx, p.Name); len(own.chain) == 0 && len(own.addrs) > 0 {
		return p.Name + " has addresses"
	}
	return ""
}

// stand says that records of these types stand somewhere.
func stand(types []string) string {
	if len(types) == 1 {
		return types[0] + " stands"
	}
	last := len(types) - 1
	return strings.Join(types[:last], ", ") + " and " + types[last] + " stand"
}

// flatNote says why no CNAME leads a name to the gateway, and what does in its place; "" where one can.
func (gr *ground) flatNote(p Plan) string {
	why := gr.flat[p.Name]
	if why == "" {
		return ""
	}
	return fmt.Sprintf("%s, and nothing can stand beside a CNAME (RFC 1034, section 3.6.2): give %s what your DNS provider calls ALIAS, ANAME or flattening with the target %s, or the addresses of that",
		why, p.Name, p.Gateway)
}

// noTXT says why the routing TXT cannot stand where it is to, and what to do; "" where it can.
func (gr *ground) noTXT(p Plan) string {
	to := gr.cnames[p.TXTName]
	if to == "" {
		return ""
	}
	return fmt.Sprintf("%s is a CNAME to %s, and nothing can stand beside one (RFC 1034, section 3.6.2): have the TXT stand at %s if that is yours, take the CNAME away, or choose another name with --txt-name or TXT_PREFIX",
		p.TXTName, to, to)
}

// wildcard returns the wildcard that makes up what stands at a domain, or "".
func (g *Guide) wildcard(ctx context.Context, gr *ground, domain string) string {
	own, err := g.step(ctx, domain, dns.TypeA)
	if err != nil || own.empty() || !g.madeUp(ctx, gr, domain, dns.TypeA, own) {
		return ""
	}
	return "*." + dnsname.Parent(domain)
}

// wildNote warns of what happens to a domain that only a wildcard answers for.
func (gr *ground) wildNote(p Plan) string {
	w := gr.wild[p.Domain]
	if w == "" {
		return ""
	}
	return fmt.Sprintf("only the wildcard %s answers for %s today, and it stops as soon as any record stands at that name or below it, the challenge's too (RFC 4592): give %s the addresses that clients need there first",
		w, p.Domain, p.Domain)
}

// lockNotes tells what else to know about the CAA records that a plan asks for.
func (gr *ground) lockNotes(p Plan) []string {
	if !p.Include[CAA] {
		return nil
	}
	var notes []string
	if p.CAA.Doubt != "" {
		notes = append(notes, p.CAA.Doubt)
	}
	if gr.starred[p.Name] {
		notes = append(notes, fmt.Sprintf("the CAA at %s does not count for the certificate: for a wildcard a CA looks at %s and above (RFC 8659, section 3); move it to %s", p.Name, p.Domain, p.CAAOwner))
	}
	return notes
}

// around is the set as it counts for what is to be created: with the CNAMEs that are to be, without those that only a
// wildcard makes up.
func (gr *ground) around(p Plan, s caa.Set) caa.Set {
	if gr.wild[p.Domain] != "" || p.CAAOwner != p.Domain {
		s.CNAME = ""
	}
	if to := gr.cnames[p.CAAOwner]; to != "" && s.CNAME == "" {
		s.CNAME = to
	}
	return s
}

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
	mu     sync.Mutex
	cnames map[string]string // names that are to be CNAMEs, or are and hold no domain of a plan: to what
	flat   map[string]bool   // names that lead clients to the gateway without a CNAME
	wild   map[string]string // domains that exist only by a wildcard: that wildcard
}

// survey looks at the names of all plans. What cannot be told is left out.
func (g *Guide) survey(ctx context.Context, plans []Plan) *ground {
	gr := &ground{cnames: map[string]string{}, flat: map[string]bool{}, wild: map[string]string{}}
	beside := "certhook-" + strings.ToLower(rand.Text()) + "." // nobody has made that
	var wg sync.WaitGroup
	for _, p := range plans {
		wg.Go(func() {
			flat := p.wantsGateway() && g.isFlat(ctx, p)
			target := ""
			if p.Include[CAA] && p.CAAOwner != p.Domain {
				if s, err := g.step(ctx, p.CAAOwner, dns.TypeCNAME); err == nil && len(s.targets) > 0 {
					target = s.targets[0]
				}
			}
			wild := g.wildcard(ctx, p.Domain, beside)
			gr.mu.Lock()
			defer gr.mu.Unlock()
			if p.wantsGateway() && !flat {
				gr.cnames[p.Name] = p.Gateway
			}
			if target != "" {
				gr.cnames[p.CAAOwner] = target
			}
			gr.flat[p.Name] = flat
			if wild != "" {
				gr.wild[p.Domain] = wild
			}
		})
	}
	wg.Wait()
	return gr
}

// isFlat reports whether clients are led to the gateway without a CNAME: because the name is a zone's apex, which
// cannot be one, or because it has addresses already, its own or what a provider made of an ALIAS.
func (g *Guide) isFlat(ctx context.Context, p Plan) bool {
	if zone, err := g.DNS.Find(ctx, p.Name); err == nil && zone.Name == p.Name {
		return true
	}
	own := g.addresses(ctx, p.Name)
	return len(own.chain) == 0 && len(own.addrs) > 0
}

// wildcard returns the wildcard that makes up what stands at a domain, or "": the name beside it has the same.
func (g *Guide) wildcard(ctx context.Context, domain, beside string) string {
	zone, err := g.DNS.Find(ctx, domain)
	parent := dnsname.Parent(domain)
	if err != nil || zone.Name == domain || parent == "" {
		return ""
	}
	other, err := g.step(ctx, beside+parent, dns.TypeA)
	if err != nil || len(other.targets)+len(other.records) == 0 {
		return ""
	}
	own, err := g.step(ctx, domain, dns.TypeA)
	if err != nil || !slices.Equal(own.targets, other.targets) || !slices.Equal(sorted(own.records), sorted(other.records)) {
		return ""
	}
	return "*." + parent
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

package delegation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/pkg/resolver"
)

// byResolvers goes on from the last of names with the panel, since cause keeps us from asking authoritative
// servers. One resolver that shows a CNAME is enough for it to exist, others may still hold an older answer.
// That there is none, or none that leads to the record, takes the agreement of all that answer.
//
// The type asked for is CNAME at each name: no resolver follows that to the next one (RFC 1034, section
// 3.6.2), so none can learn that the record does not exist yet.
func (k *check) byResolvers(ctx context.Context, names []string, cause error) Verdict {
	var (
		heard  = map[string][]saying{}
		ways   = [][]string{names} // each to a name to be asked about
		seen   = slices.Clone(names)
		end    []string // a way that ends elsewhere
		circle []string // one that leads back
		failed = []error{cause}
	)
	for i := 0; i < len(ways) && len(seen) <= maxChain; i++ {
		names, name := ways[i], ways[i][len(ways[i])-1]
		says, err := k.hear(ctx, name)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		heard[name] = says
		ends := true
		for _, s := range says {
			if s.kind != cname {
				continue
			}
			ends = false
			next := append(slices.Clip(names), s.target)
			switch {
			case s.target == k.t.Record:
				return k.led(next, heard)
			case s.target == "": // the root holds no TXT
				end = next
			case slices.Contains(names, s.target):
				circle = next
			case !slices.Contains(seen, s.target):
				seen = append(seen, s.target)
				ways = append(ways, next)
			}
		}
		if ends {
			end = names
		}
	}
	farthest := ways[len(ways)-1]
	switch {
	case len(seen) > maxChain:
		return unknown("cannot tell where %s leads: more than %d CNAMEs", k.t.Challenge, maxChain).via(farthest)
	case len(failed) > 1 && len(farthest) > 1:
		return unknown("cannot tell where %s leads: it is a CNAME to %s: %v", k.t.Challenge, way(farthest), errors.Join(failed...)).via(farthest)
	case len(failed) > 1:
		return unknown("cannot tell where %s leads: %v", k.t.Challenge, errors.Join(failed...))
	}
	return k.denied(end, circle, heard)
}

// hear asks the resolvers of the panel whether a CNAME stands at name. It is an error if too few answer.
func (k *check) hear(ctx context.Context, name string) ([]saying, error) {
	if dnsname.Within(k.t.Record, name) {
		return nil, fmt.Errorf("no resolver may be asked about %q, since the record %q lies there", name, k.t.Record)
	}
	if k.panel.Size() < resolver.Quorum {
		return nil, fmt.Errorf("%d independent resolvers would have to confirm it, there are %d", resolver.Quorum, k.panel.Size())
	}
	var says []saying
	var failed []error
	for _, s := range k.panel.Ask(ctx, name, dns.TypeCNAME) {
		if s.Err != nil {
			failed = append(failed, s.Err)
			continue
		}
		says = append(says, saying{s.Server, s.Plain, read(s.Msg, name)})
	}
	if len(says) >= resolver.Quorum {
		return says, nil
	}
	err := fmt.Errorf("of %d resolvers %d answer about %s and %d have to: %w", k.panel.Size(), len(says), name, resolver.Quorum, errors.Join(failed...))
	if len(says) > 0 {
		err = fmt.Errorf("%w (%s)", err, list(says))
	}
	return nil, err
}

// led is the verdict on names that lead to the record.
func (k *check) led(names []string, heard map[string][]saying) Verdict {
	v := ok("%s leads to %s, though only resolvers say so, as no authoritative server answers", k.t.Challenge, k.t.Record).via(names)
	v.Source = Resolvers
	for i, name := range names[:len(names)-1] {
		says, asked := heard[name]
		if !asked {
			continue // an authoritative server said it
		}
		v.Lagging = append(v.Lagging, lagging(says, name, names[i+1])...)
		v.Plain = v.Plain || !slices.ContainsFunc(says, func(s saying) bool { return !s.plain && s.leads(names[i+1]) })
	}
	return v
}

// denied is the verdict when what all resolvers say leads nowhere or, at least, not to the record.
func (k *check) denied(end, circle []string, heard map[string][]saying) Verdict {
	var servers []string
	plain := false
	for _, says := range heard {
		guarded := 0
		for _, s := range says {
			if !s.plain {
				guarded++
			}
			servers = append(servers, s.server)
		}
		plain = plain || guarded < resolver.Quorum
	}
	slices.Sort(servers)
	who := fmt.Sprintf("(%s say so, no authoritative server answers)", strings.Join(slices.Compact(servers), " and "))
	zone := "the zone of " + k.t.Domain
	if k.servedErr == nil {
		zone = "the zone " + k.served.Name
	}
	var v Verdict
	switch {
	case len(end) == 1:
		v = wrong("there is no CNAME at %s %s", k.t.Challenge, who).needs(k.t, "add to "+zone).missing()
	case end != nil:
		v = wrong("%s is a CNAME to %s instead of %s. %s", k.t.Challenge, way(end), k.t.Record, who).needs(k.t, "replace it by").via(end)
	default:
		v = wrong("the CNAME at %s leads in a circle, to %s %s", k.t.Challenge, way(circle), who).needs(k.t, "replace it by").via(circle)
	}
	v.Source, v.Plain = Resolvers, plain
	return v
}

// Heard asks every resolver of the panel about the challenge whose CNAME authoritative servers show, and tells
// which of them do not show it or fail: those who use them, maybe a CA among them, are not led to the record. A
// verdict that rests on resolvers tells of its own laggards, and one that is not OK has none: where the record may be
// missing, a question would make a resolver remember that.
func Heard(ctx context.Context, panel resolver.Panel, t Target, v Verdict) resolver.Echo {
	if v.Status != OK || v.Source != Authoritative || len(v.Chain) == 0 {
		return resolver.Echo{}
	}
	return resolver.Compare(panel.Ask(ctx, t.Challenge, dns.TypeCNAME), func(m *dns.Msg) string {
		return read(m, t.Challenge).differs(t.Challenge, v.Chain[0])
	})
}

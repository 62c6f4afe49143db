package guide

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/authority"
	"github.com/certhook/certhook/pkg/resolver"
)

// maxChain is how many CNAMEs are followed; resolvers follow about as many.
const maxChain = 12

// sight is what stands at a name.
type sight struct {
	chain   []string           // names that CNAMEs lead to, one after the other
	records []dns.RR           // at the last of them, of the type asked for
	lacking []resolver.Laggard // servers that answer and do not have the first step or all records
	source  Source
}

// empty reports whether nothing stands at the name.
func (s sight) empty() bool { return len(s.chain) == 0 && len(s.records) == 0 }

// look asks what stands at a name and where its CNAMEs lead. The error means that nobody could tell.
func (g *Guide) look(ctx context.Context, name string, qtype uint16) (sight, error) {
	s := sight{source: Authoritative}
	at := name
	for len(s.chain) <= maxChain {
		step, err := g.step(ctx, at, qtype)
		if err != nil {
			if at != name {
				return s, fmt.Errorf("look at %q, where a CNAME leads: %w", at, err)
			}
			if errors.Is(err, errDiffer) {
				return s, err
			}
			return g.byResolvers(ctx, name, qtype, err)
		}
		if at == name {
			s.lacking = step.lacking
		}
		if len(step.targets) == 0 {
			s.records = step.records
			return s, nil
		}
		at = step.targets[0]
		if at == name || slices.Contains(s.chain, at) {
			return s, fmt.Errorf("%w: from %s by %s", errCircle, name, strings.Join(append(s.chain, at), " and "))
		}
		s.chain = append(s.chain, at)
	}
	return s, fmt.Errorf("more than %d CNAMEs follow each other from %q", maxChain, name)
}

var (
	errCircle = errors.New("the CNAMEs lead in a circle")
	errDiffer = errors.New("the servers lead to different names")
)

// step is what the authoritative servers of one name have there, taken together.
type step struct {
	targets []string // of the CNAME; one, unless there is none
	records []dns.RR
	lacking []resolver.Laggard
}

// empty reports whether nothing stands at the name.
func (s step) empty() bool { return len(s.targets)+len(s.records) == 0 }

// step asks every authoritative server of the name.
func (g *Guide) step(ctx context.Context, name string, qtype uint16) (step, error) {
	zone, err := g.DNS.Find(ctx, name)
	if err != nil {
		return step{}, err
	}
	type said struct {
		server string
		texts  []string
	}
	var (
		all    step
		texts  []string
		says   []said
		failed []error
	)
	for _, a := range g.DNS.QueryAll(ctx, zone, name, qtype) {
		if a.Err != nil {
			if _, referral := errors.AsType[*authority.Referral](a.Err); !referral {
				failed = append(failed, fmt.Errorf("%s: %w", a.Server, a.Err))
			}
			continue
		}
		this := said{server: a.Server}
		for _, rr := range a.Msg.Answer {
			if resolver.Canonical(rr.Header().Name) != name {
				continue // what a server tells of a CNAME's target is that zone's business
			}
			cname, isCNAME := rr.(*dns.CNAME)
			if !isCNAME && rr.Header().Rrtype != qtype {
				continue
			}
			text := data(rr)
			this.texts = append(this.texts, text)
			if slices.Contains(texts, text) {
				continue
			}
			texts = append(texts, text)
			if isCNAME {
				all.targets = append(all.targets, resolver.Canonical(cname.Target))
			} else {
				all.records = append(all.records, rr)
			}
		}
		says = append(says, this)
	}
	if len(says) == 0 {
		return step{}, fmt.Errorf("no server of the zone %q answers: %w", zone.Name, errors.Join(failed...))
	}
	if len(all.targets) > 1 {
		return step{}, fmt.Errorf("%w: those of the zone %q say that %s is a CNAME to %s", errDiffer, zone.Name, name, strings.Join(all.targets, ", and to "))
	}
	for _, s := range says {
		for _, text := range texts {
			if !slices.Contains(s.texts, text) {
				all.lacking = append(all.lacking, resolver.Laggard{Server: s.server, Says: "does not have it all"})
				break
			}
		}
	}
	return all, nil
}

// data is what a record says, so that two can be compared.
func data(rr dns.RR) string {
	switch rr := rr.(type) {
	case *dns.CNAME:
		return "CNAME " + resolver.Canonical(rr.Target)
	case *dns.TXT:
		return "TXT " + resolver.TXT(rr)
	}
	return dns.Type(rr.Header().Rrtype).String() + " " + strings.TrimPrefix(rr.String(), rr.Header().String())
}

// byResolvers takes together what the resolvers see, since cause keeps us from asking the authoritative
// servers.
func (g *Guide) byResolvers(ctx context.Context, name string, qtype uint16, cause error) (sight, error) {
	s := sight{source: Resolvers}
	failed := []error{cause}
	answers := 0
	var texts []string
	statements := g.Panel.Ask(ctx, name, qtype)
	for _, st := range statements {
		if st.Err != nil {
			failed = append(failed, st.Err)
			continue
		}
		answers++
		if st.Plain {
			s.source = PlainDNS
		}
		chain, records := follow(st.Msg, name, qtype)
		if len(chain) > len(s.chain) {
			s.chain = chain
		}
		for _, rr := range records {
			if text := data(rr); !slices.Contains(texts, text) {
				texts = append(texts, text)
				s.records = append(s.records, rr)
			}
		}
	}
	if answers < resolver.Quorum {
		return s, fmt.Errorf("%d of %d resolvers answer, %d have to: %w", answers, g.Panel.Size(), resolver.Quorum, errors.Join(failed...))
	}
	if !s.empty() {
		s.lacking = lagging(statements, name, qtype, s)
	}
	return s, nil
}

// late names the resolvers that do not show what the authoritative servers have. Only what does stand
// may be asked about.
func (g *Guide) late(ctx context.Context, name string, qtype uint16, s sight) []resolver.Laggard {
	return lagging(g.Panel.Ask(ctx, name, qtype), name, qtype, s)
}

// lagging compares statements with what stands.
func lagging(statements []resolver.Statement, name string, qtype uint16, s sight) []resolver.Laggard {
	var late []resolver.Laggard
	for _, st := range statements {
		if st.Err != nil {
			continue
		}
		chain, records := follow(st.Msg, name, qtype)
		switch {
		case len(chain) == 0 && len(records) == 0 && len(s.chain) == 0:
			late = append(late, resolver.Laggard{Server: st.Server, Says: fmt.Sprintf("has no %s at %s", dns.Type(qtype), name)})
		case len(chain) == 0 && len(s.chain) > 0:
			late = append(late, resolver.Laggard{Server: st.Server, Says: "has no CNAME at " + name})
		case len(s.chain) > 0 && chain[0] != s.chain[0]:
			late = append(late, resolver.Laggard{Server: st.Server, Says: fmt.Sprintf("has the CNAME %s. at %s", chain[0], name)})
		case len(s.chain) == 0 && !slices.Equal(sorted(records), sorted(s.records)):
			late = append(late, resolver.Laggard{Server: st.Server, Says: fmt.Sprintf("has other %s records at %s", dns.Type(qtype), name)})
		}
	}
	return late
}

func sorted(rrs []dns.RR) []string {
	var texts []string
	for _, rr := range rrs {
		texts = append(texts, data(rr))
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}

// follow reads from a resolver's answer where the CNAMEs lead and what stands at their end.
func follow(m *dns.Msg, name string, qtype uint16) (chain []string, records []dns.RR) {
	at := name
	for len(chain) <= maxChain {
		next := ""
		for _, rr := range m.Answer {
			if cname, ok := rr.(*dns.CNAME); ok && resolver.Canonical(rr.Header().Name) == at {
				next = resolver.Canonical(cname.Target)
			}
		}
		if next == "" || next == name || slices.Contains(chain, next) {
			break
		}
		chain = append(chain, next)
		at = next
	}
	for _, rr := range m.Answer {
		if rr.Header().Rrtype == qtype && resolver.Canonical(rr.Header().Name) == at {
			records = append(records, rr)
		}
	}
	return chain, records
}

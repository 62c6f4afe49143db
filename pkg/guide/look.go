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

// sight is what stands at a name for who asks some of its servers.
type sight struct {
	servers []string           // of the name's zone; none where resolvers tell
	chain   []string           // names that CNAMEs lead to, one after the other
	records []dns.RR           // at the last of them, of the type asked for
	lacking []resolver.Laggard // resolvers that answer and do not have the first step or all records
	source  Source
	err     error // nobody can tell, or the CNAMEs have no end
}

// empty reports whether nothing stands at the name.
func (s sight) empty() bool { return len(s.chain) == 0 && len(s.records) == 0 }

// seen is what all servers of a name say.
type seen struct {
	sights  []sight            // each different one; one at least
	failing []resolver.Laggard // servers that do not answer while others do
}

// look asks what stands at a name and where its CNAMEs lead.
func (g *Guide) look(ctx context.Context, name string, qtype uint16) seen {
	l := &looking{g: g, name: name, qtype: qtype}
	sights, err := l.from(ctx, name, nil)
	if err != nil {
		sights = []sight{g.byResolvers(ctx, name, qtype, err)}
	}
	return seen{sights, l.failing}
}

// looking is a look on its way.
type looking struct {
	g       *Guide
	name    string
	qtype   uint16
	steps   int
	failing []resolver.Laggard
}

// from goes on at the end of a chain, on each way that the servers there lead to. It is an error if none of them
// tells.
func (l *looking) from(ctx context.Context, at string, chain []string) ([]sight, error) {
	steps, failing, err := l.g.ask(ctx, at, l.qtype)
	if err != nil {
		return nil, err
	}
	l.failing = append(l.failing, failing...)
	var sights []sight
	for _, s := range steps {
		this := sight{servers: s.servers, chain: chain, records: s.records, source: Authoritative, err: s.err}
		if s.target == "" {
			sights = append(sights, this)
			continue
		}
		back := s.target == l.name || slices.Contains(chain, s.target)
		this.chain = append(slices.Clip(chain), s.target)
		l.steps++
		switch {
		case back:
			this.chain, this.err = chain, fmt.Errorf("%w: from %s by %s", errCircle, l.name, strings.Join(this.chain, " and "))
		case len(this.chain) > maxChain || l.steps > 4*maxChain:
			this.err = fmt.Errorf("more than %d CNAMEs follow each other from %q", maxChain, l.name)
		default:
			on, err := l.from(ctx, s.target, this.chain)
			if err != nil {
				this.err = fmt.Errorf("look at %q, where a CNAME leads: %w", s.target, err)
				on = []sight{this}
			}
			for _, o := range on {
				if len(steps) > 1 || len(on) == 1 {
					o.servers = s.servers
				}
				sights = append(sights, o)
			}
			continue
		}
		sights = append(sights, this)
	}
	return sights, nil
}

var errCircle = errors.New("the CNAMEs lead in a circle")

// said is what some authoritative servers of a name have there.
type said struct {
	servers []string
	target  string // of the CNAME; "" for none
	records []dns.RR
	err     error // they cannot be asked, though others refer to them
}

func (s said) same(o said) bool {
	return s.err == nil && o.err == nil && s.target == o.target && slices.Equal(sorted(s.records), sorted(o.records))
}

// ask asks every authoritative server of the name, and returns each different answer. failing are those that do not
// answer while others do.
func (g *Guide) ask(ctx context.Context, name string, qtype uint16) (all []said, failing []resolver.Laggard, err error) {
	zone, err := g.DNS.Zone(ctx, authority.Registered(name))
	if err != nil {
		return nil, nil, err
	}
	var dead []error
	for _, zone := range g.DNS.QueryEveryone(ctx, zone, name, qtype) {
		if err := zone.Dead(); err != nil {
			dead = append(dead, fmt.Errorf("no server of the zone %q answers: %w", zone.Zone.Name, err))
			continue
		}
		for _, a := range zone.Answers {
			if a.Err != nil {
				failing = append(failing, resolver.Silent(a.Server, name, a.Err))
				continue
			}
			this := read(a, name, qtype)
			if i := slices.IndexFunc(all, this.same); i < 0 {
				all = append(all, this)
			} else if !slices.Contains(all[i].servers, a.Server) {
				all[i].servers = append(all[i].servers, a.Server)
			}
		}
	}
	if len(all) == 0 {
		return nil, nil, errors.Join(dead...)
	}
	for _, err := range dead { // though servers refer to them
		all = append(all, said{servers: []string{"others"}, err: err})
	}
	return all, failing, nil
}

// read takes from an answer what it says of name; what a server tells of a CNAME's target is that zone's business.
func read(a authority.Answer, name string, qtype uint16) said {
	s := said{servers: []string{a.Server}}
	for _, rr := range a.Msg.Answer {
		if resolver.Canonical(rr.Header().Name) != name {
			continue
		}
		if cname, ok := rr.(*dns.CNAME); ok {
			s.target = resolver.Canonical(cname.Target)
		} else if rr.Header().Rrtype == qtype {
			s.records = append(s.records, rr)
		}
	}
	return s
}

// step is what the authoritative servers of one name have there, taken together.
type step struct {
	targets []string // of CNAMEs
	records []dns.RR
}

// empty reports whether nothing stands at the name.
func (s step) empty() bool { return len(s.targets)+len(s.records) == 0 }

func (g *Guide) step(ctx context.Context, name string, qtype uint16) (all step, err error) {
	says, _, err := g.ask(ctx, name, qtype)
	for _, s := range says {
		all.records = append(all.records, s.records...)
		if s.target != "" && !slices.Contains(all.targets, s.target) {
			all.targets = append(all.targets, s.target)
		}
	}
	return all, err
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
func (g *Guide) byResolvers(ctx context.Context, name string, qtype uint16, cause error) sight {
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
		s.err = fmt.Errorf("%d of %d resolvers answer, %d have to: %w", answers, g.Panel.Size(), resolver.Quorum, errors.Join(failed...))
	} else if !s.empty() {
		s.lacking = resolver.Compare(statements, func(m *dns.Msg) string { return s.differs(m, name, qtype) }).Lagging
	}
	return s
}

// heard tells what the resolvers make of what the authoritative servers have. Only what does stand may be asked about.
func (g *Guide) heard(ctx context.Context, name string, qtype uint16, sights []sight) resolver.Echo {
	return resolver.Compare(g.Panel.Ask(ctx, name, qtype), func(m *dns.Msg) string {
		says := ""
		for _, s := range sights {
			if says = s.differs(m, name, qtype); says == "" {
				break
			}
		}
		return says
	})
}

// differs says what a resolver has in place of what stands, "" if that. It goes on where the resolver's name stops.
func (s sight) differs(m *dns.Msg, name string, qtype uint16) string {
	chain, records := follow(m, name, qtype)
	switch {
	case len(chain) == 0 && len(records) == 0 && len(s.chain) == 0:
		return fmt.Sprintf("has no %s at %s", dns.Type(qtype), name)
	case len(chain) == 0 && len(s.chain) > 0:
		return "has no CNAME at " + name
	case len(s.chain) > 0 && chain[0] != s.chain[0]:
		return fmt.Sprintf("has the CNAME %s. at %s", chain[0], name)
	case len(s.chain) == 0 && !slices.Equal(sorted(records), sorted(s.records)):
		return fmt.Sprintf("has other %s records at %s", dns.Type(qtype), name)
	}
	return ""
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

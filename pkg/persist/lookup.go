package persist

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/authority"
	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/resolver"
)

// Bounds of one look-up.
const (
	lookupTimeout = 7 * time.Second
	panelTimeout  = 3 * time.Second
	maxChain      = 12 // CNAMEs; resolvers follow about as many
)

// Lookup asks what stands at [Owner] of a domain and where CNAMEs lead from there. The authoritative servers are asked
// first, all that a resolver may ask, and what they have is all that is asked for: a resolver that hears of a record
// before it is there denies it for an hour. Only where none of them can be asked is the panel, and fewer answers than
// [resolver.Quorum] prove nothing. It takes ten seconds at most.
//
// The error is of kind Unknown where nobody can tell, and of kind Verdict where the CNAMEs lead in a circle, so that
// no CA can see anything.
func Lookup(ctx context.Context, c *authority.Client, panel resolver.Panel, domain string) (Seen, error) {
	domain = strings.TrimPrefix(domain, "*.")
	seen := Seen{Owner: Owner(domain)}
	if len(seen.Owner) > dnsname.MaxName {
		return seen, fault.Errorf(fault.Usage, "the name of the record %q has %d octets, at most %d are allowed", seen.Owner, len(seen.Owner), dnsname.MaxName)
	}
	asking, cancel := resolver.Limit(ctx, lookupTimeout)
	defer cancel()
	l := &lookup{c: c}
	// The record's name may not exist, the domain's registered one does.
	views, err := l.follow(resolver.Remember(asking), seen.Owner, authority.Registered(domain), nil)
	if err == nil {
		err = none(views)
	}
	switch {
	case err == nil:
		seen.Views, seen.Failing = byWeight(views), l.failing
	case errors.Is(err, errCircle):
		return seen, fault.Errorf(fault.Verdict, "look up the record at %q: %w", seen.Owner, err)
	default:
		if err := seen.hear(ctx, panel, err); err != nil {
			return seen, fault.Errorf(fault.Unknown, "look up the record at %q: %w", seen.Owner, err)
		}
	}
	return seen, nil
}

var errCircle = errors.New("the CNAMEs lead in a circle")

// none returns nil if a view shows anything, and else why none does.
func none(views []View) error {
	var errs []error
	for _, v := range views {
		if v.Err == nil {
			return nil
		}
		errs = append(errs, v.Err)
	}
	return errors.Join(errs...)
}

type lookup struct {
	c       *authority.Client
	steps   int // CNAMEs followed
	failing []resolver.Laggard
}

// follow returns what the authoritative servers of a name show there, and at the ends of the CNAMEs there. registered is
// the registered name above it, passed are the CNAMEs that led to it. It is an error if no server tells anything.
func (l *lookup) follow(ctx context.Context, name, registered string, passed []string) ([]View, error) {
	switch l.steps++; {
	case slices.Contains(passed, name):
		return nil, fmt.Errorf("%w: %s", errCircle, strings.Join(append(passed, name), " to "))
	case len(passed) > maxChain, l.steps > 4*maxChain:
		return nil, fmt.Errorf("more than %d CNAMEs follow each other", maxChain)
	case name == ".": // which holds no TXT
		return []View{{Target: name, TXT: []string{}}}, nil
	}
	zone, err := l.c.Zone(ctx, registered)
	if err != nil {
		return nil, err
	}
	var views []View
	var dead []error
	led := map[string][]string{} // servers, by the target that they lead to
	for _, said := range l.c.QueryEveryone(ctx, zone, name, dns.TypeTXT) {
		if err := said.Dead(); err != nil {
			dead = append(dead, fmt.Errorf("no server of the zone %q answers: %w", said.Zone.Name, err))
			continue
		}
		for _, a := range said.Answers {
			if a.Err != nil {
				l.failing = append(l.failing, resolver.Silent(a.Server, name, a.Err))
				continue
			}
			target, rrs := at(a.Msg, name)
			if target != "" {
				led[target] = append(led[target], a.Server)
				continue
			}
			v := View{TXT: texts(rrs), Servers: []string{a.Server}}
			if len(passed) > 0 {
				v.Target = name
			}
			views = viewed(views, v)
		}
	}
	if len(views) == 0 && len(led) == 0 {
		return nil, errors.Join(dead...)
	}
	differ := len(views)+len(led)+len(dead) > 1
	for _, target := range slices.Sorted(maps.Keys(led)) {
		below, err := l.follow(ctx, target, authority.Registered(target), append(slices.Clip(passed), name))
		if err != nil {
			below = []View{{Target: target, Err: fmt.Errorf("look at %q, where a CNAME leads: %w", target, err)}}
		}
		for _, v := range below {
			if differ || len(v.Servers) == 0 {
				v.Servers = led[target]
			}
			views = viewed(views, v)
		}
	}
	for _, err := range dead { // though servers refer to them
		views = append(views, View{Servers: []string{"others"}, Err: err})
	}
	return views, nil
}

// at returns what a server has at a name itself: what it tells of a CNAME's target is that zone's business.
func at(m *dns.Msg, name string) (target string, rrs []dns.RR) {
	for _, rr := range m.Answer {
		if resolver.Canonical(rr.Header().Name) != name {
			continue
		}
		if cname, ok := rr.(*dns.CNAME); ok {
			return cmp.Or(resolver.Canonical(cname.Target), "."), nil
		}
		rrs = append(rrs, rr)
	}
	return "", rrs
}

// hear asks the panel, since cause keeps us from asking authoritative servers.
func (s *Seen) hear(ctx context.Context, panel resolver.Panel, cause error) error {
	ctx, cancel := resolver.Limit(ctx, panelTimeout)
	defer cancel()
	failed := []error{cause}
	answers, encrypted := 0, 0
	for _, said := range panel.Ask(ctx, s.Owner, dns.TypeTXT) {
		if said.Err != nil {
			failed = append(failed, said.Err)
			continue
		}
		answers++
		if !said.Plain {
			encrypted++
		}
		s.Views = viewed(s.Views, s.heard(said.Msg, said.Server))
	}
	if answers < resolver.Quorum {
		s.Views = nil
		return fmt.Errorf("%d of %d resolvers answer, %d have to: %w", answers, panel.Size(), resolver.Quorum, errors.Join(failed...))
	}
	s.Views, s.Resolvers, s.Plain = byWeight(s.Views), true, encrypted < resolver.Quorum
	return nil
}

// heard is what a resolver shows.
func (s Seen) heard(m *dns.Msg, server string) View {
	end, rrs := resolver.Follow(m, s.Owner, dns.TypeTXT)
	v := View{TXT: texts(rrs), Servers: []string{server}}
	if end != s.Owner {
		v.Target = cmp.Or(end, ".")
	}
	return v
}

// Heard tells which resolvers of the panel show other records than the authoritative servers do, or fail. It asks
// nothing unless all of those have some: a question about what is not there plants a denial.
func Heard(ctx context.Context, panel resolver.Panel, s Seen) resolver.Echo {
	if s.Resolvers || slices.ContainsFunc(s.Views, func(v View) bool { return v.Err != nil || len(v.TXT) == 0 }) {
		return resolver.Echo{}
	}
	ctx, cancel := resolver.Limit(ctx, panelTimeout)
	defer cancel()
	return resolver.Compare(panel.Ask(ctx, s.Owner, dns.TypeTXT), func(m *dns.Msg) string {
		v := s.heard(m, "")
		if slices.ContainsFunc(s.Views, func(o View) bool { return slices.Equal(o.TXT, v.TXT) }) {
			return ""
		}
		return v.says(s.Owner)
	})
}

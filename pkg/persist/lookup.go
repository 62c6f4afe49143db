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
// first, and what they have is all that is asked for: a resolver that hears of a record before it is there denies it
// for an hour. Only where none of them can be asked is the panel, and fewer answers than [resolver.Quorum] prove
// nothing. It takes ten seconds at most.
//
// The error is of kind Unknown where nobody can tell, and of kind Verdict where the CNAMEs lead in a circle, so that
// no CA can see anything.
func Lookup(ctx context.Context, c *authority.Client, panel resolver.Panel, domain string) (Seen, error) {
	domain = strings.TrimPrefix(domain, "*.")
	seen := Seen{Owner: Owner(domain)}
	if len(seen.Owner) > dnsname.MaxName {
		return seen, fault.Errorf(fault.Usage, "the name of the record %q has %d octets, at most %d are allowed", seen.Owner, len(seen.Owner), dnsname.MaxName)
	}
	asking, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	asking = resolver.Remember(asking)
	l := &lookup{c: c}
	// The record's name may not exist, the domain's zone does.
	zone, err := c.Find(asking, domain)
	if err == nil {
		l.domain = zone
		seen.Views, err = l.follow(asking, seen.Owner, nil)
	}
	if errors.Is(err, errCircle) {
		return seen, fault.Errorf(fault.Verdict, "look up the record at %q: %w", seen.Owner, err)
	}
	if err != nil {
		if err := seen.hear(ctx, panel, err); err != nil {
			return seen, fault.Errorf(fault.Unknown, "look up the record at %q: %w", seen.Owner, err)
		}
	}
	seen.Views = byWeight(seen.Views)
	return seen, nil
}

var errCircle = errors.New("the CNAMEs lead in a circle")

type lookup struct {
	c      *authority.Client
	domain authority.Zone // the domain's
}

// follow returns what the authoritative servers of a name show there, and at the ends of the CNAMEs there. passed are
// the CNAMEs that led to the name.
func (l *lookup) follow(ctx context.Context, name string, passed []string) ([]View, error) {
	switch {
	case slices.Contains(passed, name):
		return nil, fmt.Errorf("%w: %s", errCircle, strings.Join(append(passed, name), " to "))
	case len(passed) > maxChain:
		return nil, fmt.Errorf("more than %d CNAMEs follow each other", maxChain)
	case name == ".": // which holds no TXT
		return []View{{Target: name, TXT: []string{}}}, nil
	}
	zone, err := l.c.Enclosing(ctx, name, l.domain)
	if err != nil {
		return nil, err
	}
	var views []View
	var failed []error
	led := map[string][]string{} // servers, by the target that they lead to
	for _, a := range l.c.QueryAll(ctx, zone, name, dns.TypeTXT) {
		if a.Err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", a.Server, a.Err))
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
	if len(views) == 0 && len(led) == 0 {
		return nil, fmt.Errorf("no server of the zone %q answers: %w", zone.Name, errors.Join(failed...))
	}
	for _, target := range slices.Sorted(maps.Keys(led)) {
		below, err := l.follow(ctx, target, append(slices.Clip(passed), name))
		if err != nil {
			return nil, err
		}
		for _, v := range below {
			if len(v.Servers) == 0 {
				v.Servers = led[target]
			}
			views = viewed(views, v)
		}
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
	ctx, cancel := context.WithTimeout(ctx, panelTimeout)
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
		end, rrs := resolver.Follow(said.Msg, s.Owner, dns.TypeTXT)
		v := View{TXT: texts(rrs), Servers: []string{said.Server}}
		if end != s.Owner {
			v.Target = cmp.Or(end, ".")
		}
		s.Views = viewed(s.Views, v)
	}
	if answers < resolver.Quorum {
		s.Views = nil
		return fmt.Errorf("%d of %d resolvers answer, %d have to: %w", answers, panel.Size(), resolver.Quorum, errors.Join(failed...))
	}
	s.Resolvers, s.Plain = true, encrypted < resolver.Quorum
	return nil
}

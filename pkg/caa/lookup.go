package caa

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/net/publicsuffix"

	"github.com/certhook/certhook/pkg/authority"
	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/resolver"
)

// Bounds of one look-up.
const (
	lookupTimeout = 7 * time.Second
	panelTimeout  = 3 * time.Second // so that a silent resolver leaves time for the names above
	maxChain      = 12              // CNAMEs; resolvers follow about as many
)

// Error is a name whose CAA records could not be learnt. They may forbid or allow anything.
type Error struct {
	Name string
	Err  error
	// Refused is set where it is not the way to the servers that fails, but they that do: a CA, which has to
	// know, will not issue either.
	Refused bool
}

func (e *Error) Error() string { return fmt.Sprintf("look up CAA of %s: %v", e.Name, e.Err) }
func (e *Error) Unwrap() error { return e.Err }

// Lookup finds the set that governs a domain: it climbs from there to the top-level name and stops at the
// first name with CAA records, those of a CNAME's target included (RFC 8659, section 3). The authoritative
// servers of each zone are asked, and what they disagree about is taken together. Only where none of them
// answers is the panel asked, and what its resolvers say is taken together as well, name by name; fewer
// answers than [resolver.Quorum] prove nothing. It takes a few seconds at most. known are zones that need
// not be found any more.
//
// The client's resolver hears of registered names and what is above them, of the top of a CNAME's target
// and of name servers; the panel of names below them, too.
//
// The error, of kind Unknown, is an *[Error] for the first name on the way up that nobody tells of: a CA
// stops there as well.
func Lookup(ctx context.Context, c *authority.Client, panel resolver.Panel, domain string, known ...authority.Zone) (Set, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	l := &lookup{c: c, panel: panel, domain: domain, known: slices.Clip(known)}
	set := Set{Proven: true}
	for name := domain; name != ""; {
		names, answers := l.zoneful(ctx, name)
		for i, a := range answers {
			if a.err != nil {
				// What is known is that there is a CNAME, even where its target's servers are dead.
				if names[i] == domain {
					set.CNAME = a.end
				}
				return Set{CNAME: set.CNAME}, fault.Errorf(fault.Unknown, "%w", &Error{Name: names[i], Err: a.err, Refused: a.refused})
			}
			if names[i] == domain {
				set.CNAME = a.end
			}
			set.rest(a)
			if len(a.records) > 0 {
				set.Owner, set.Target, set.Records = names[i], a.end, a.records
				return set, nil
			}
		}
		name = dnsname.Parent(names[len(names)-1])
	}
	return set, nil
}

// rest lets the set rest on one more answer.
func (s *Set) rest(a answer) {
	s.Proven = s.Proven && a.proven
	s.Resolvers = s.Resolvers || a.resolvers
	s.Plain = s.Plain || a.plain
	s.Lagging = append(s.Lagging, a.lagging...)
	for _, server := range a.sources {
		if !slices.Contains(s.Sources, server) {
			s.Sources = append(s.Sources, server)
		}
	}
}

type lookup struct {
	c      *authority.Client
	panel  resolver.Panel
	domain string
	known  []authority.Zone
}

// answer is what is known of the CAA records at one name.
type answer struct {
	records []*dns.CAA
	end     string // of the CNAMEs that begin there; "" where there is none

	proven, resolvers, plain bool // see [Set]

	sources []string
	lagging []resolver.Laggard
	err     error
	refused bool // see [Error]
}

// zoneful learns of a name and of those above it in the same zone at once. Most domains have their records
// in the first zone, so that the zones above need not be found.
func (l *lookup) zoneful(ctx context.Context, name string) ([]string, []answer) {
	if name != l.domain && publicSuffix(name) {
		// Records are rare there and never new, so that a resolver's word is good enough for none.
		if m, err := l.c.Recursive.Ask(ctx, name, dns.TypeCAA); err == nil && noTopLevel(m, "", name) == nil && len(m.Answer) == 0 {
			return []string{name}, []answer{{}}
		}
	}
	zone, err := l.zone(ctx, name)
	if err != nil {
		return []string{name}, []answer{l.fallback(ctx, name, err)}
	}
	l.known = append(l.known, zone)
	var names []string
	for n := range dnsname.Ancestors(name) {
		names = append(names, n)
		if n == zone.Name {
			break
		}
	}
	answers := make([]answer, len(names))
	var wg sync.WaitGroup
	for i, n := range names {
		wg.Go(func() {
			a := l.authorities(ctx, zone, n, nil)
			if a.err != nil {
				end := a.end
				if a = l.fallback(ctx, n, a.err); a.err != nil {
					a.end = end
				}
			}
			answers[i] = a
		})
	}
	wg.Wait()
	return names, answers
}

// zone finds the zone of the domain or of a name above it, or one above that: a zone cut in between shows
// in a referral. Resolvers are asked about the registered name only, since those below may not exist yet,
// and a question about one that does not plants a denial.
func (l *lookup) zone(ctx context.Context, name string) (authority.Zone, error) {
	var found authority.Zone
	for _, z := range l.known {
		if dnsname.Within(name, z.Name) && len(z.Name) > len(found.Name) {
			found = z
		}
	}
	if found.Name != "" {
		return found, nil
	}
	registered := name
	for n := range dnsname.Ancestors(name) {
		if publicSuffix(n) {
			break
		}
		registered = n
	}
	return l.c.Zone(ctx, registered)
}

// publicSuffix reports whether names are registered below a name.
func publicSuffix(name string) bool {
	suffix, icann := publicsuffix.PublicSuffix(name)
	return suffix == name && (icann || !strings.Contains(name, "."))
}

// fact is what one server says of a name.
type fact struct {
	server  string
	records []*dns.CAA
	target  string // of the CNAME; "." for the root, "" for none
}

// authorities asks every server of the zone. passed are the CNAMEs that led to the name.
func (l *lookup) authorities(ctx context.Context, zone authority.Zone, name string, passed []string) answer {
	var facts []fact
	var failed []error
	union := records{}
	for _, a := range l.c.QueryAll(ctx, zone, name, dns.TypeCAA) {
		if _, referral := errors.AsType[*authority.Referral](a.Err); referral {
			below, err := l.c.Within(ctx, zone, name)
			if err == nil && below.Name != zone.Name {
				return l.authorities(ctx, below, name, passed)
			}
		}
		err := a.Err
		if err == nil {
			err = noTopLevel(a.Msg, a.Server, name)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", a.Server, err))
			continue
		}
		f := fact{server: a.Server}
		for _, rr := range a.Msg.Answer {
			if resolver.Canonical(rr.Header().Name) != name {
				continue // what a server tells of a CNAME's target is another zone's business
			}
			switch rr := rr.(type) {
			case *dns.CAA:
				f.records = append(f.records, rr)
			case *dns.CNAME:
				f.target = cmp.Or(resolver.Canonical(rr.Target), ".")
			}
		}
		union.add(f.records)
		facts = append(facts, f)
	}
	if len(facts) == 0 {
		return answer{err: fmt.Errorf("no server of the zone %s answers: %w", zone.Name, errors.Join(failed...))}
	}
	found := answer{proven: true, lagging: disagree(name, union, facts)}
	found.proven = len(found.lagging) == 0
	var targets []string
	for _, f := range facts {
		found.sources = append(found.sources, f.server)
		if f.target != "" && len(union) == 0 {
			targets = append(targets, f.target)
		}
	}
	slices.Sort(targets)
	for _, target := range slices.Compact(targets) {
		at := l.target(ctx, name, target, passed)
		if at.err != nil {
			at.end = cmp.Or(at.end, target)
			return at
		}
		union.add(at.records)
		found.end = at.end
		found.proven = found.proven && at.proven
		found.sources = append(found.sources, at.sources...)
		found.lagging = append(found.lagging, at.lagging...)
	}
	found.records = union.sorted()
	return found
}

// disagree names the servers of a zone that do not have all that the zone is taken to have, or that have
// another CNAME than others.
func disagree(name string, union records, facts []fact) []resolver.Laggard {
	var lagging []resolver.Laggard
	for _, f := range facts {
		says := ""
		switch {
		case len(union) > 0:
			says = union.differs(name, name, f.records)
		case f.target != "" && slices.ContainsFunc(facts, func(o fact) bool { return o.target != f.target }):
			says = fmt.Sprintf("has the CNAME %s. at %s", strings.TrimSuffix(f.target, "."), name)
		case f.target == "" && slices.ContainsFunc(facts, func(o fact) bool { return o.target != "" }):
			says = "has no CNAME at " + name
		}
		if says != "" {
			lagging = append(lagging, resolver.Laggard{Server: f.server, Says: says})
		}
	}
	return lagging
}

// target learns of what a CNAME at name leads to. Names above it do not count.
func (l *lookup) target(ctx context.Context, name, target string, passed []string) answer {
	passed = append(passed, name)
	if slices.Contains(passed, target) || len(passed) > maxChain {
		return answer{err: fmt.Errorf("%w: %s", errEndless, strings.Join(append(passed, target), " to "))}
	}
	if target == "." {
		return answer{proven: true, end: target}
	}
	zone, err := l.c.Enclosing(ctx, target, l.known...)
	if err != nil {
		return answer{err: err}
	}
	a := l.authorities(ctx, zone, target, passed)
	if a.end == "" {
		a.end = target
	}
	return a
}

var errEndless = errors.New("the CNAMEs lead nowhere")

// noTopLevel is an error for a top-level name that does not exist. Elsewhere NXDOMAIN is the same as no
// records; for a removed one Boulder does not take it for that.
func noTopLevel(m *dns.Msg, server, name string) error {
	if m.Rcode == dns.RcodeNameError && !strings.Contains(name, ".") {
		return resolver.Refusal(server, name, dns.TypeCAA, m)
	}
	return nil
}

// refused reports whether it was the servers themselves that failed.
func refused(err error) bool {
	if errors.Is(err, errEndless) {
		return true
	}
	var all func(error) bool
	all = func(err error) bool {
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			return !slices.ContainsFunc(joined.Unwrap(), func(e error) bool { return !all(e) })
		}
		if e, ok := err.(*resolver.Error); ok {
			return e.Rcode != 0
		}
		next := errors.Unwrap(err)
		return next != nil && all(next)
	}
	return all(err)
}

package caa

import (
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
	suffixTimeout = time.Second     // so that it leaves time for the servers of a public suffix
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
// answers than [resolver.Quorum] prove nothing. What a CA finds with one server and not with another is in
// [Set.Views]. It takes a few seconds at most. known are zones that need
// not be found any more.
//
// The client's resolver hears of registered names and what is above them, of the top of a CNAME's target
// and of name servers; the panel of public suffixes and, where it has to be asked, of names below them, too.
//
// The error, of kind Unknown, is an *[Error] for the first name on the way up that nobody tells of: a CA
// stops there as well.
func Lookup(ctx context.Context, c *authority.Client, panel resolver.Panel, domain string, known ...authority.Zone) (Set, error) {
	ctx, cancel := resolver.Limit(ctx, lookupTimeout)
	defer cancel()
	l := &lookup{c: c, panel: panel, domain: domain, known: slices.Clip(known)}
	return l.climb(ctx, domain)
}

// climb goes from a name, the domain or one above it, up to the first with records.
func (l *lookup) climb(ctx context.Context, name string) (Set, error) {
	set := Set{Proven: true}
	for name != "" {
		names, answers := l.zoneful(ctx, name)
		for i, a := range answers {
			if names[i] == l.domain {
				set.CNAME = a.end
			}
			if a.err != nil {
				// What is known is that there is a CNAME, even where its target's servers are dead.
				return Set{CNAME: set.CNAME}, fault.Errorf(fault.Unknown, "%w", &Error{Name: names[i], Err: a.err, Refused: a.refused})
			}
			set.rest(a)
			if len(a.records) > 0 {
				set.Owner, set.Target, set.Records = names[i], a.end, a.records
				set.Views = l.views(ctx, names[i], a.faces)
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
	s.Failing = append(s.Failing, a.failing...)
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

	faces   []face // those of the zone's servers; none where resolvers tell
	sources []string
	lagging []resolver.Laggard
	failing []resolver.Laggard
	err     error
	refused bool // see [Error]
}

// zoneful learns of a name and of those above it in the same zone at once. Most domains have their records
// in the first zone, so that the zones above need not be found.
func (l *lookup) zoneful(ctx context.Context, name string) ([]string, []answer) {
	if name != l.domain && publicSuffix(name) && l.bare(ctx, name) {
		return []string{name}, []answer{{}}
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

// bare reports whether the panel's resolvers agree that a public suffix has no records. They are rare there and never
// new, so that its servers need only be found where that is in doubt.
func (l *lookup) bare(ctx context.Context, suffix string) bool {
	ctx, cancel := resolver.Limit(ctx, suffixTimeout)
	defer cancel()
	none := 0
	for _, s := range l.panel.Ask(ctx, suffix, dns.TypeCAA) {
		switch {
		case s.Err != nil:
		case noTopLevel(s.Msg, s.Server, suffix) != nil || len(s.Msg.Answer) > 0:
			return false
		default:
			none++
		}
	}
	return none >= resolver.Quorum
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

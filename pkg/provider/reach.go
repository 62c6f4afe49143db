package provider

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/publicsuffix"

	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/pkg/fault"
)

// Surveyor is a provider that can be asked how far its credentials reach.
type Surveyor interface {
	// Reach asks which zones the credentials reach and changes nothing. The alias zones and the served
	// domains, all canonical, are what it asks about one by one where the provider does not list
	// everything. A provider that answers but does not tell is no error: see Reach.Partial.
	Reach(ctx context.Context, aliases, domains []string) (Reach, error)
}

// Reach is how far credentials reach, as far as their provider tells.
type Reach struct {
	Zones   []Reached // sorted by name, one each
	Absent  []string  // names asked about one by one at which they reach no zone, sorted
	Partial string    // why there may be more zones, as a sentence without its full stop; "" = these are all that the provider lists
	Advice  string    // one line: where to see what they reach, and what they should reach
	Expires time.Time // when they end; zero = never, or not known
}

// Reached is a zone that credentials reach.
type Reached struct {
	Name   string `json:"name"` // canonical
	Access Access `json:"access"`
}

// Access is what credentials may do to a zone.
type Access string

const (
	AccessUnknown Access = "unknown" // they see it; the provider does not say what else
	AccessRead    Access = "read"    // they see it and can change nothing
	AccessEdit    Access = "edit"    // they may change its records or settings
)

// Extent is the verdict on a Reach.
type Extent string

const (
	Confined Extent = "confined" // nothing but the alias zones
	TooWide  Extent = "too-wide" // other zones as well, for certain
	Unclear  Extent = "unclear"  // none is known of, but there may be some
)

// Scope is a Reach, measured against the zones at which it should end.
type Scope struct {
	Extent Extent
	Own    []Reached // as intended
	Excess []Excess  // zones beyond, unless it is certain that they cannot be changed: those that hold a served domain first
	Seen   []Reached // zones beyond that can be seen but not changed
	Why    string    // with Unclear: why it cannot be told
	Absent []string  // as in the Reach

	aliases []string
	advice  string
}

// Excess is a zone that the credentials should not reach.
type Excess struct {
	Reached
	Serves []string `json:"serves,omitempty"` // the served domains, and without delegation the others, that lie in it
}

// Judge measures the reach against the alias zones, for served domains that are delegated to them. Without
// alias zones, what it should end at is each domain's own zone: the longest that holds it. A zone above an
// alias zone is one too many, since more than challenges lies in it.
func (r Reach) Judge(aliases, domains []string) Scope {
	s := Scope{Absent: r.Absent, aliases: aliases, advice: r.Advice}
	for _, z := range r.Zones {
		serves := within(domains, z.Name)
		switch {
		case len(aliases) == 0 && r.isOwn(z.Name, serves),
			len(serves) == 0 && slices.ContainsFunc(aliases, func(alias string) bool { return dnsname.Within(z.Name, alias) }):
			s.Own = append(s.Own, z)
		case z.Access == AccessRead:
			s.Seen = append(s.Seen, z)
		default:
			s.Excess = append(s.Excess, Excess{z, serves})
		}
	}
	slices.SortStableFunc(s.Excess, func(a, b Excess) int {
		return cmp.Or(cmp.Compare(min(1, len(b.Serves)), min(1, len(a.Serves))), cmp.Compare(a.Name, b.Name))
	})
	s.Why = r.doubt(aliases, domains)
	switch {
	case len(s.Excess) > 0:
		s.Extent, s.Why = TooWide, ""
	case s.Why != "":
		s.Extent = Unclear
	default:
		s.Extent = Confined
	}
	return s
}

// isOwn reports whether zone is the longest that holds one of the domains.
func (r Reach) isOwn(zone string, serves []string) bool {
	return slices.ContainsFunc(serves, func(domain string) bool {
		return !slices.ContainsFunc(r.Zones, func(z Reached) bool {
			return dnsname.Below(z.Name, zone) && dnsname.Within(domain, z.Name)
		})
	})
}

// doubt says why there may be zones that are not listed, "" if nothing hints at it. Credentials that are good
// for a zone which they do not list may be good for others as well.
func (r Reach) doubt(aliases, domains []string) string {
	if r.Partial != "" {
		return r.Partial
	}
	for _, alias := range aliases {
		if !slices.ContainsFunc(r.Zones, func(z Reached) bool { return z.Name == alias }) {
			return fmt.Sprintf("the alias zone %q is not among the zones listed, so either the credentials are no good for it or they reach zones that are not listed", alias)
		}
	}
	if len(aliases) > 0 {
		return ""
	}
	for _, domain := range domains {
		if !slices.ContainsFunc(r.Zones, func(z Reached) bool { return dnsname.Within(domain, z.Name) }) {
			return fmt.Sprintf("no zone that holds %q is among those listed, so either the credentials are no good for it or they reach zones that are not listed", domain)
		}
	}
	return ""
}

// Err is nil for credentials that reach what they should. Otherwise it is of kind Verdict or Unknown and says
// what the matter is in one line, with the provider's advice as its hint.
func (s Scope) Err() error {
	var err *fault.Error
	switch s.Extent {
	case Confined:
		return nil
	case Unclear:
		err = fault.Errorf(fault.Unknown, "cannot tell how far the credentials reach: %s", s.Why)
	default:
		beyond := "the alias zones"
		if len(s.aliases) == 0 {
			beyond = "the domains' own zones"
		}
		err = fault.Errorf(fault.Verdict, "the credentials reach beyond %s: %s", beyond, s.worst())
	}
	return err.WithHint("%s", s.advice)
}

// worst names the zone that matters most and counts the others.
func (s Scope) worst() string {
	first := s.Excess[0]
	text := fmt.Sprintf("the zone %q", first.Name)
	if len(first.Serves) > 0 {
		text += ", which holds " + list(first.Serves)
	}
	switch n := len(s.Excess) - 1; n {
	case 0:
		return text
	case 1:
		return text + ", and one more zone"
	default:
		return fmt.Sprintf("%s, and %d more zones", text, n)
	}
}

// list names a few and counts the rest.
func list(names []string) string {
	if len(names) > 3 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:2], ", "), len(names)-2)
	}
	return strings.Join(names, ", ")
}

func within(names []string, zone string) []string {
	var found []string
	for _, name := range names {
		if dnsname.Within(name, zone) {
			found = append(found, name)
		}
	}
	return found
}

// ZoneNames returns the names, and those above them, at which a zone of somebody's may begin: public suffixes are
// left out. They are sorted.
func ZoneNames(names []string) []string {
	var all []string
	for _, name := range names {
		for at := range dnsname.Ancestors(name) {
			if suffix, icann := publicsuffix.PublicSuffix(at); suffix == at && (icann || dnsname.Parent(at) == "") {
				break
			}
			all = append(all, at)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

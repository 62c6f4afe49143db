package persist

import (
	"context"

	"github.com/certhook/certhook/pkg/authority"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/resolver"
)

// Seen is what stands at the name of a record.
type Seen struct {
	Owner string `json:"owner"` // the name asked about
	// Views are the sets of TXT records that servers show, at least one: several where they disagree. A set may be empty.
	Views []View `json:"views"`
	// Resolvers is set where no authoritative server could be asked and resolvers told; Plain, where anybody on the way
	// could have written what they said.
	Resolvers bool `json:"resolvers,omitempty"`
	Plain     bool `json:"plain,omitempty"`
}

// View is what some servers show.
type View struct {
	Target  string   `json:"target,omitempty"` // where the CNAMEs lead that begin at the name; "" where there is none
	TXT     []string `json:"txt"`              // as [Evaluate] takes them, sorted
	Servers []string `json:"servers"`
}

// Evaluate is [Evaluate] on what the servers show: where they disagree, on the view for which the verdict is worst,
// since a CA may hear of that one.
func (s Seen) Evaluate(q Question) Verdict {
	var worst Verdict
	for i, view := range s.Views {
		v := Evaluate(q, view.TXT)
		if i == 0 || worst.OK && (!v.OK || ends(v, worst)) {
			worst = v
		}
	}
	return worst
}

// ends reports whether what a verdict rests on ends before that of another.
func ends(v, other Verdict) bool {
	return !v.Until.IsZero() && (other.Until.IsZero() || v.Until.Before(other.Until))
}

// Lookup asks what stands at [Owner] of a domain and where CNAMEs lead from there. The authoritative servers are asked
// first, and what they have is all that is asked for: a resolver that hears of a record before it is there denies it
// for an hour. Only where none of them can be asked is the panel, and fewer answers than [resolver.Quorum] prove
// nothing. It takes a few seconds at most. The error, where nobody can tell, is of kind Unknown.
func Lookup(ctx context.Context, c *authority.Client, panel resolver.Panel, domain string) (Seen, error) {
	return Seen{}, fault.Errorf(fault.Unknown, "look up the record at %q: nobody is asked yet", Owner(domain))
}

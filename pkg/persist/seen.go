package persist

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/resolver"
)

// Seen is what stands at the name of a record.
type Seen struct {
	Owner string `json:"owner"` // the name asked about
	// Views are what servers show, at least one: several where they disagree, the most common first.
	Views []View `json:"views"`
	// Resolvers is set where no authoritative server could be asked and resolvers told; Plain, where anybody on the way
	// could have written what they said.
	Resolvers bool `json:"resolvers,omitempty"`
	Plain     bool `json:"plain,omitempty"`
	// Failing are authoritative servers that do not answer while others of their zone do.
	Failing []resolver.Laggard `json:"failing,omitempty"`
}

// View is what some servers show.
type View struct {
	Target  string   `json:"target,omitempty"` // where the CNAMEs lead that begin at the name; "" where there is none, "." for the root
	TXT     []string `json:"txt"`              // the records as [Evaluate] takes them, sorted; there may be none
	Servers []string `json:"servers"`
	Err     error    `json:"-"` // what keeps one who is led here from learning anything: there is no TXT then
}

// Evaluate is [Evaluate] on what the servers show: where they disagree, on the view for which the verdict is worst,
// since a CA may hear of that one.
func (s Seen) Evaluate(q Question) Verdict {
	var worst Verdict
	for i, view := range s.Views {
		v := view.Evaluate(q)
		if i == 0 || worst.OK && (!v.OK || v.endsBefore(worst)) {
			worst = v
		}
	}
	return worst
}

// Evaluate is [Evaluate] on what these servers show.
func (v View) Evaluate(q Question) Verdict {
	if v.Err != nil {
		return Verdict{Detail: v.Err.Error()}
	}
	return Evaluate(q, v.TXT)
}

// says goes on where the name of a server with that view stops.
func (v View) says(owner string) string {
	switch {
	case v.Err != nil:
		return "leads to failure: " + v.Err.Error()
	case len(v.TXT) == 0:
		return "has no TXT at " + owner
	}
	return "has other TXT records at " + owner
}

// Lagging names the servers whose view lets the account have nothing while that of others does.
func (s Seen) Lagging(q Question) []resolver.Laggard {
	var lagging []resolver.Laggard
	good := false
	for _, view := range s.Views {
		if view.Evaluate(q).OK {
			good = true
			continue
		}
		for _, server := range view.Servers {
			lagging = append(lagging, resolver.Laggard{Server: server, Says: view.says(s.Owner)})
		}
	}
	if !good {
		return nil
	}
	return lagging
}

// endsBefore reports whether what a verdict rests on ends before that of another.
func (v Verdict) endsBefore(other Verdict) bool {
	return !v.Until.IsZero() && (other.Until.IsZero() || v.Until.Before(other.Until))
}

// viewed adds a view, unless it is there but for its servers.
func viewed(views []View, v View) []View {
	for i, known := range views {
		if known.Err == nil && v.Err == nil && known.Target == v.Target && slices.Equal(known.TXT, v.TXT) {
			for _, server := range v.Servers {
				if !slices.Contains(known.Servers, server) {
					views[i].Servers = append(views[i].Servers, server)
				}
			}
			return views
		}
	}
	return append(views, v)
}

// byWeight puts the view of most servers first.
func byWeight(views []View) []View {
	slices.SortStableFunc(views, func(a, b View) int {
		return cmp.Or(cmp.Compare(len(b.Servers), len(a.Servers)), cmp.Compare(fmt.Sprint(a.Target, a.TXT), fmt.Sprint(b.Target, b.TXT)))
	})
	return views
}

// texts returns the values of TXT records as [Evaluate] takes them.
func texts(rrs []dns.RR) []string {
	list := []string{}
	for _, rr := range rrs {
		if rr, ok := rr.(*dns.TXT); ok {
			list = append(list, strings.Join(rr.Txt, ""))
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

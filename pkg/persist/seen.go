package persist

import (
	"cmp"
	"context"
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
}

// View is what some servers show.
type View struct {
	Target  string   `json:"target,omitempty"` // where the CNAMEs lead that begin at the name; "" where there is none, "." for the root
	TXT     []string `json:"txt"`              // the records as [Evaluate] takes them, sorted; there may be none
	Servers []string `json:"servers"`
}

// Evaluate is [Evaluate] on what the servers show: where they disagree, on the view for which the verdict is worst,
// since a CA may hear of that one.
func (s Seen) Evaluate(q Question) Verdict {
	var worst Verdict
	for i, view := range s.Views {
		v := Evaluate(q, view.TXT)
		if i == 0 || worst.OK && (!v.OK || v.endsBefore(worst)) {
			worst = v
		}
	}
	return worst
}

// Lagging names the servers whose view lets the account have nothing while that of others does.
func (s Seen) Lagging(q Question) []resolver.Laggard {
	var lagging []resolver.Laggard
	good := false
	for _, view := range s.Views {
		if Evaluate(q, view.TXT).OK {
			good = true
			continue
		}
		says := "has other TXT records at " + s.Owner
		if len(view.TXT) == 0 {
			says = "has no TXT at " + s.Owner
		}
		for _, server := range view.Servers {
			lagging = append(lagging, resolver.Laggard{Server: server, Says: says})
		}
	}
	if !good {
		return nil
	}
	return lagging
}

// Lagging names the resolvers of the panel that answer and do not show what lets the account have what the question asks
// for. It asks about nothing unless an authoritative server shows that: a question about what is not there yet plants a
// denial.
func Lagging(ctx context.Context, panel resolver.Panel, s Seen, q Question) []resolver.Laggard {
	if s.Resolvers || !slices.ContainsFunc(s.Views, func(v View) bool { return Evaluate(q, v.TXT).OK }) {
		return nil
	}
	told := Seen{Owner: s.Owner, Views: s.Views}
	ctx, cancel := context.WithTimeout(ctx, panelTimeout)
	defer cancel()
	for _, said := range panel.Ask(ctx, s.Owner, dns.TypeTXT) {
		if said.Err == nil {
			_, rrs := resolver.Follow(said.Msg, s.Owner, dns.TypeTXT)
			told.Views = append(told.Views, View{TXT: texts(rrs), Servers: []string{said.Server}})
		}
	}
	return told.Lagging(q)[len(s.Lagging(q)):]
}

// endsBefore reports whether what a verdict rests on ends before that of another.
func (v Verdict) endsBefore(other Verdict) bool {
	return !v.Until.IsZero() && (other.Until.IsZero() || v.Until.Before(other.Until))
}

// viewed adds a view, unless it is there but for its servers.
func viewed(views []View, v View) []View {
	for i, known := range views {
		if known.Target == v.Target && slices.Equal(known.TXT, v.TXT) {
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

// Package explain shows what stands at a name and who says so: the zone cuts on the way, each hop of the CNAME
// chain, what every authoritative server answers and, where it does no harm to ask them, what recursive
// resolvers make of it. It tells a failure of DNSSEC from absence.
package explain

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/authority"
	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/pkg/resolver"
)

// Bounds of one explanation.
const (
	explainTimeout = 30 * time.Second
	maxChain       = 12 // names; resolvers follow about as many
)

// Explanation is what was found out about a name.
type Explanation struct {
	Name    string  `json:"name"`
	Type    string  `json:"type"`
	Zones   []Zone  `json:"zones"` // on the way, from the top down for each hop
	Chain   []Hop   `json:"chain"` // the name, then where its CNAMEs lead
	Verdict Verdict `json:"verdict"`
	Reason  string  `json:"reason"` // for people

	hint string
}

// Zone is a zone on the way to a name.
type Zone struct {
	Name    string   `json:"name"`
	Servers []Server `json:"servers"`
	DS      DS       `json:"ds"`

	// Resolvers are what resolvers say about the SOA of a zone in which they could not be asked about the name
	// itself: whether they can validate the zone.
	Resolvers []Said `json:"resolvers,omitempty"`

	parent string // "" where the zone above is not known
}

// Server is a name server of a zone.
type Server struct {
	Name      string   `json:"name"`
	Addresses []string `json:"addresses"`
}

// DS tells whether the zone above has a DS record for a zone, so that resolvers insist on signatures in it.
type DS string

const (
	DSPresent DS = "present"
	DSAbsent  DS = "absent"
	DSUnknown DS = "unknown" // the zone above is not known, or none of its servers answers
)

// Hop is one name of the chain.
type Hop struct {
	Name      string `json:"name"`
	Zone      string `json:"zone"` // that encloses the name, as far as is known; "" if none was found
	State     State  `json:"state"`
	Servers   []Said `json:"servers"`
	Resolvers []Said `json:"resolvers"`
	NotAsked  string `json:"not_asked,omitempty"` // why no resolver was asked
	Error     string `json:"error,omitempty"`     // why no zone was found, or not the deeper one that servers refer to

	byResolvers bool // State is what resolvers say
	next        string
}

// State is what those who answer agree on about a hop.
type State string

const (
	Present     State = "present"     // records of the type asked for
	Alias       State = "alias"       // a CNAME to the next hop
	Absent      State = "absent"      // no such name, or none of the type
	Disagree    State = "disagree"    // they do not agree
	Unreachable State = "unreachable" // no authoritative server answers, and resolvers do not settle it
)

// challengeReason and absentReason are why resolvers are not asked.
const (
	challengeReason = "a resolver that hears of the name before the record exists would remember that it does not"
	absentReason    = "the record is not on all servers, and a resolver would remember that it is not there"
)

// Explain follows the CNAMEs from name, a canonical one or a wildcard's, and asks everybody on the way for qtype.
// It takes at most 30 seconds.
//
// Recursive resolvers are asked for what all authoritative servers that answer have, and for what no such server
// can be asked about unless the name lies at or below an _acme-challenge label: asking for what does not exist
// yet makes them remember that.
func Explain(ctx context.Context, c *authority.Client, panel resolver.Panel, name string, qtype uint16) Explanation {
	ctx, cancel := context.WithTimeout(resolver.Remember(ctx), explainTimeout)
	defer cancel()
	w := &walk{c: c, panel: panel, qtype: qtype, zones: []Zone{}}
	e := Explanation{Name: name, Type: dns.Type(qtype).String()}
	for at := name; ; {
		hop := w.hop(ctx, at)
		e.Chain = append(e.Chain, hop)
		if hop.State != Alias || hop.next == "" || len(e.Chain) > maxChain || e.has(hop.next) {
			break
		}
		at = hop.next
	}
	w.dnssec(ctx, e.Chain)
	e.Zones = w.zones
	e.decide()
	return e
}

func (e *Explanation) has(name string) bool {
	return slices.ContainsFunc(e.Chain, func(h Hop) bool { return h.Name == name })
}

type walk struct {
	c     *authority.Client
	panel resolver.Panel
	qtype uint16
	zones []Zone
	found []authority.Zone // the same, to go on from
}

// hop asks about one name.
func (w *walk) hop(ctx context.Context, name string) Hop {
	h := Hop{Name: name, State: Unreachable, Servers: []Said{}, Resolvers: []Said{}}
	zone, err := w.locate(ctx, name)
	if zone.Name != "" {
		h.Zone = zone.Name
		for _, a := range w.c.QueryAll(ctx, zone, name, w.qtype) {
			h.Servers = append(h.Servers, fromServer(a, name, w.qtype))
		}
		h.State, h.next = agree(h.Servers, w.qtype)
	}
	// That the servers of a zone do not answer is said of each of them.
	if referred := func(s Said) bool { return s.Answer == Referral }; err != nil && (zone.Name == "" || slices.ContainsFunc(h.Servers, referred)) {
		h.Error = err.Error()
	}
	switch h.State {
	case Present:
		h.Resolvers = w.ask(ctx, name, w.qtype)
	case Alias:
		h.Resolvers = w.ask(ctx, name, dns.TypeCNAME)
	case Absent, Disagree:
		h.NotAsked = absentReason
	case Unreachable:
		if challenge(name) {
			h.NotAsked = challengeReason
			break
		}
		w.unreachable(ctx, &h)
	}
	for i, s := range h.Resolvers {
		same := func(other Said) bool { return s.agrees(other, w.qtype) }
		h.Resolvers[i].Lags = !h.byResolvers && s.answers() && !slices.ContainsFunc(h.Servers, same)
	}
	return h
}

// unreachable lets the resolvers speak for authoritative servers. The question for CNAME comes first, for a
// resolver does not follow it to a name that it had better not hear of.
func (w *walk) unreachable(ctx context.Context, h *Hop) {
	types := []uint16{dns.TypeCNAME, w.qtype}
	if w.qtype == dns.TypeCNAME {
		types = types[1:]
	}
	for _, qtype := range types {
		said := w.ask(ctx, h.Name, qtype)
		state, next := agree(said, qtype)
		heard := 0
		for _, s := range said {
			if s.answers() {
				heard++
			}
		}
		if state == Absent && heard < resolver.Quorum {
			state = Unreachable
		}
		h.Resolvers, h.byResolvers = said, true
		h.State, h.next = state, next
		if state == Alias || state == Disagree || heard == 0 {
			return
		}
	}
}

// ask has the resolvers say what stands at a name.
func (w *walk) ask(ctx context.Context, name string, qtype uint16) []Said {
	said := []Said{}
	for _, p := range w.panel.Probe(ctx, name, qtype) {
		said = append(said, fromResolver(p, name, qtype))
	}
	return said
}

// challenge reports whether a name is one that a CA looks at, or lies below one.
func challenge(name string) bool {
	return slices.Contains(strings.Split(name, "."), dnsname.ChallengeLabel)
}

// dnssec finds out whether zones are signed and can be validated.
func (w *walk) dnssec(ctx context.Context, chain []Hop) {
	var wg sync.WaitGroup
	for i := range w.zones {
		z := &w.zones[i]
		zone, parent := z.Name, z.parent
		wg.Go(func() { z.DS = w.ds(ctx, zone, parent) })
		silent := func(h Hop) bool { return h.Zone == z.Name && len(h.Resolvers) == 0 }
		if slices.ContainsFunc(chain, silent) && !challenge(z.Name) {
			// A zone has a SOA whatever else it has, so that the question plants nothing.
			wg.Go(func() { z.Resolvers = w.ask(ctx, zone, dns.TypeSOA) })
		}
	}
	wg.Wait()
}

// ds asks the servers of the zone above, to which DS records belong (RFC 4035, section 3.1.4.1).
func (w *walk) ds(ctx context.Context, zone, parent string) DS {
	i := slices.IndexFunc(w.found, func(f authority.Zone) bool { return f.Name == parent })
	if i < 0 {
		return DSUnknown
	}
	ds := DSUnknown
	for _, a := range w.c.QueryAll(ctx, w.found[i], zone, dns.TypeDS) {
		switch fromServer(a, zone, dns.TypeDS).Answer {
		case Records:
			return DSPresent
		case NoData:
			ds = DSAbsent
		}
	}
	return ds
}

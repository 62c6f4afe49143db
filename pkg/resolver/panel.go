package resolver

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/miekg/dns"
)

// Quorum is how many resolvers of a [Panel] have to answer before their word proves anything.
const Quorum = 2

// Panel is several recursive resolvers that know nothing of each other's caches.
type Panel struct {
	seats []seat
}

// seat is one resolver and the ways to reach it.
type seat struct {
	name      string
	known     []string // see Endpoint.identities
	endpoints []Endpoint
}

// Statement is what one resolver of a panel says.
type Statement struct {
	Server string   // such as "dns.google" or "udp://192.0.2.1"
	Plain  bool     // said over plain DNS: anybody on the way could have written it
	Msg    *dns.Msg // NOERROR or NXDOMAIN; nil with Err
	Err    error
}

// Laggard is a server that answers and does not show what holds, or not all of it.
type Laggard struct {
	Server string `json:"server"`
	Says   string `json:"says"` // goes on after the server's name: "has no CAA at svc.example.com"
}

// NewPanel makes a panel. Endpoints of one host, of one address or of one well-known operator are the same
// resolver; they are tried in turn, as [Recursive] does.
func NewPanel(endpoints []Endpoint) Panel {
	var seats []seat
	for _, e := range endpoints {
		this := seat{name: cmp.Or(e.Host, e.String()), known: e.identities(), endpoints: []Endpoint{e}}
		at := -1
		for i := 0; i < len(seats); {
			if !slices.ContainsFunc(seats[i].known, func(id string) bool { return slices.Contains(this.known, id) }) {
				i++
				continue
			}
			if at < 0 {
				at = i
				seats[i].join(this)
				this = seats[i]
				i++
				continue
			}
			// e shows that two resolvers were the same all along.
			seats[at].join(seats[i])
			seats = slices.Delete(seats, i, i+1)
		}
		if at < 0 {
			seats = append(seats, this)
		}
	}
	return Panel{seats: seats}
}

func (s *seat) join(other seat) {
	s.known = append(s.known, other.known...)
	s.endpoints = append(s.endpoints, other.endpoints...)
}

// Size is the number of resolvers.
func (p Panel) Size() int { return len(p.seats) }

// Ask puts a question to every resolver at once and returns what they say, in the panel's order.
func (p Panel) Ask(ctx context.Context, name string, qtype uint16) []Statement {
	statements := make([]Statement, len(p.seats))
	var wg sync.WaitGroup
	for i, s := range p.seats {
		wg.Go(func() { statements[i] = s.ask(ctx, name, qtype) })
	}
	wg.Wait()
	return statements
}

func (s seat) ask(ctx context.Context, name string, qtype uint16) Statement {
	calls := make([]func(context.Context) (Statement, error), len(s.endpoints))
	for i, e := range s.endpoints {
		calls[i] = func(ctx context.Context) (Statement, error) {
			m, err := e.ask(ctx, name, qtype)
			return Statement{Plain: e.Transport == UDP || e.Transport == TCP, Msg: m}, err
		}
	}
	st, err := First(ctx, stagger, calls)
	st.Server = s.name
	if st.Err = err; err == nil && st.Msg == nil {
		st.Err = errors.New("there is no server to ask")
	}
	return st
}

// Follow returns what an answer has of a type at the end of the CNAMEs that begin at name, and where that end
// is: name itself without any.
func Follow(m *dns.Msg, name string, qtype uint16) (end string, rrs []dns.RR) {
	// Once over the answer, which may be long and made to take a while.
	targets := map[string]string{}
	for _, rr := range m.Answer {
		if c, ok := rr.(*dns.CNAME); ok && qtype != dns.TypeCNAME {
			targets[Canonical(c.Hdr.Name)] = Canonical(c.Target)
		}
	}
	end = Canonical(name)
	for range len(targets) {
		next, ok := targets[end]
		if !ok {
			break
		}
		end = next
	}
	for _, rr := range m.Answer {
		if rr.Header().Rrtype == qtype && Canonical(rr.Header().Name) == end {
			rrs = append(rrs, rr)
		}
	}
	return end, rrs
}

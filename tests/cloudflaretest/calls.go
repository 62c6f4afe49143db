package cloudflaretest

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/certhook/certhook/pkg/dnsname"
)

// Call is one call as it arrived. Tokens are not kept.
type Call struct {
	Method string
	Path   string // after Prefix, without the query
	Query  url.Values
	Zone   string    // name of the zone in the path, or the one asked for by name; "" where there is none
	Status int       // HTTP status answered; 0 = the connection was closed instead
	Start  time.Time // arrival
	End    time.Time // zero while the call is under way
}

// Calls returns all calls since the start or [Server.Forget], in order of arrival.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Call, len(s.calls))
	for i, c := range s.calls {
		all[i] = *c
	}
	return all
}

// Forget empties the call log.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = nil
}

// OutsideZone lists the calls about any other zone than the allowed ones: by default those that a token
// names. A look-up by name at or below an allowed zone is inside; a list of all zones is outside.
func (s *Server) OutsideZone(allowed ...string) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(allowed) == 0 {
		for _, t := range s.tokens {
			allowed = append(allowed, t.Zones...)
		}
	}
	var outside []Call
	for _, c := range s.calls {
		inside := func(zone string) bool {
			return c.Zone == zone || c.Path == Zones && dnsname.Below(c.Zone, zone)
		}
		if !slices.ContainsFunc(allowed, inside) {
			outside = append(outside, *c)
		}
	}
	return outside
}

// Overlap returns how many of the calls were under way at once, at most.
func Overlap(calls []Call) int {
	type edge struct {
		at   time.Time
		step int
	}
	var edges []edge
	for _, c := range calls {
		edges = append(edges, edge{c.Start, 1})
		if !c.End.IsZero() {
			edges = append(edges, edge{c.End, -1})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.step, b.step))
	})
	most, now := 0, 0
	for _, e := range edges {
		now += e.step
		most = max(most, now)
	}
	return most
}

// begin logs the arrival of a call; ok is false once the test is over.
func (s *Server) begin(r *http.Request, path string) (c *Call, ok bool) {
	c = &Call{Method: r.Method, Path: path, Query: r.URL.Query(), Start: time.Now()}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing.Err() != nil {
		return nil, false
	}
	s.running.Add(1)
	if part := strings.Split(path, "/"); len(part) > 2 && part[1] == "zones" {
		c.Zone = part[2] // an id that nobody has shows as it is
		if z := s.zoneByID(part[2]); z != nil {
			c.Zone = z.name
		}
	} else if name := c.Query.Get("name"); name != "" {
		c.Zone = strings.TrimSuffix(strings.ToLower(name), ".")
	}
	s.calls = append(s.calls, c)
	return c, true
}

// Observe has f told of every call from now on, when it has ended.
func (s *Server) Observe(f func(Call)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.observe = f
}

// Moment is a point in the life of a call.
type Moment string

const (
	Arrived Moment = "arrived" // nothing has happened yet
	Decided Moment = "decided" // it was carried out or refused; the answer is still here
)

// Intercept has f asked at both moments of every call from now on. The call waits for f and goes on if f returns
// true; otherwise its connection is closed. nil ends that.
func (s *Server) Intercept(f func(Call, Moment) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.intercept = f
}

// intercepted gives up a call that is not to go on.
func (s *Server) intercepted(c *Call, m Moment) {
	s.mu.Lock()
	intercept, now := s.intercept, *c
	s.mu.Unlock()
	if intercept != nil && !intercept(now, m) {
		panic(http.ErrAbortHandler)
	}
}

func (s *Server) end(c *Call, status int) {
	s.mu.Lock()
	c.Status, c.End = status, time.Now()
	observe, ended := s.observe, *c
	s.mu.Unlock()
	if observe != nil {
		observe(ended)
	}
	s.running.Done()
}

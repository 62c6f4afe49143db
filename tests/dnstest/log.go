package dnstest

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// Query is a question that reached the world, and what was said to it.
type Query struct {
	Time      time.Time // of arrival
	Server    string    // host name, or a resolver's URL; "" for World.Ask
	From      netip.Addr
	Name      string // lower case, no trailing dot
	Type      uint16
	Transport string // "udp" or "tcp"; "" for World.Ask
	RD        bool
	Recursive bool // asked through World.Ask or at a Resolver

	Rcode  int      // -1 while there is no answer
	AA     bool     // of the answer
	Answer []string // data of the answer section's records; a TXT's value without its quotes
}

func (q Query) String() string {
	at, rcode := q.Server+" "+q.Transport, "no answer"
	if q.Recursive {
		at = strings.TrimSpace("recursive " + at)
	}
	if q.Rcode >= 0 {
		rcode = dns.RcodeToString[q.Rcode]
	}
	return fmt.Sprintf("%s %s %s %s: %s %q", q.Time.Format("15:04:05.000"), at, q.Name, dns.TypeToString[q.Type], rcode, q.Answer)
}

// Queries returns every question so far in the order of arrival.
func (w *World) Queries() []Query {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]Query, len(w.queries))
	for i, q := range w.queries {
		all[i] = *q
	}
	return all
}

// Matching returns the questions so far about one name and type; dns.TypeANY is every type.
func (w *World) Matching(name string, qtype uint16) []Query {
	var found []Query
	for _, q := range w.Queries() {
		if q.Name == plain(name) && (qtype == dns.TypeANY || q.Type == qtype) {
			found = append(found, q)
		}
	}
	return found
}

// log starts the entry of a question; known says how it came.
func (w *World) log(known Query, req *dns.Msg) *Query {
	q := &known
	q.Time, q.RD, q.Rcode = time.Now(), req.RecursionDesired, -1
	if len(req.Question) > 0 {
		q.Name, q.Type = plain(req.Question[0].Name), req.Question[0].Qtype
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queries = append(w.queries, q)
	return q
}

// Observe has f told of every question from now on, after its answer is logged and before it is sent. Where
// there is no answer, f is told so. The answer waits for f.
func (w *World) Observe(f func(Query)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.observe = f
}

// logAnswer completes a question's entry; resp is nil where there is no answer.
func (w *World) logAnswer(q *Query, resp *dns.Msg) {
	w.mu.Lock()
	if resp != nil {
		q.Rcode, q.AA = resp.Rcode, resp.Authoritative
		for _, rr := range resp.Answer {
			data := rr.String()[len(rr.Header().String()):]
			if txt, ok := rr.(*dns.TXT); ok {
				data = joined(txt)
			}
			q.Answer = append(q.Answer, data)
		}
	}
	observe, done := w.observe, *q
	w.mu.Unlock()
	if observe != nil {
		observe(done)
	}
}

package propagation

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/authority"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/resolver"
)

// State is how an address took part.
type State string

const (
	Shows  State = "shows"  // every value
	Lacks  State = "lacks"  // it answers, and lacks a value
	Silent State = "silent" // it does not answer, or not as a server of the zone
	Lost   State = "lost"   // it answered, lacked a value, and has been silent for long since
)

// Server is one address that was asked.
type Server struct {
	Zone    string        // "" for a resolver
	Name    string        // of the name server, or host of the resolver
	Addr    string        // its address, or the resolver's URL; "" where a name server has none
	State   State         //
	Elapsed time.Duration // until it had shown everything; 0 unless State is Shows
	Missing string        // the first name that lacks a value; "" if State is Shows
	Last    string        // the last answer about that name
}

// Report is what a wait has found, whether or not it succeeded.
type Report struct {
	Mode     Mode
	Elapsed  time.Duration
	Servers  []Server
	Warnings []string // one phrase each, for the log
}

// Summary returns the report as one phrase, such as "visible on 4 servers after 1.2s".
func (r Report) Summary() string {
	after := "after " + round(r.Elapsed).String()
	if len(r.Servers) == 0 {
		return "waited, not checked, " + after
	}
	servers := map[string]State{}
	what := "server"
	if slices.ContainsFunc(r.Servers, func(s Server) bool { return s.Zone == "" }) {
		what = "resolver"
	}
	for _, s := range r.Servers {
		if what == "resolver" && s.Zone != "" {
			continue // those nobody could reach
		}
		key := s.Zone + "/" + s.Name
		if old := servers[key]; s.State == Lacks || old == "" || old == Silent || old == Lost && s.State == Shows {
			servers[key] = s.State
		}
	}
	count := map[State]int{}
	for _, state := range servers {
		count[state]++
	}
	text := fmt.Sprintf("visible on %d of %d %ss %s", count[Shows], len(servers), what, after)
	switch {
	case len(servers) == 1 && count[Shows] == 1:
		text = fmt.Sprintf("visible on the one %s %s", what, after)
	case count[Shows] == len(servers):
		text = fmt.Sprintf("visible on all %d %ss %s", len(servers), what, after)
	}
	if count[Silent] > 0 {
		text += fmt.Sprintf("; %d did not answer", count[Silent])
	}
	if count[Lost] > 0 {
		text += fmt.Sprintf("; %d stopped answering", count[Lost])
	}
	return text
}

// enter puts a poll that has stopped into the report, with a warning about the servers that do not answer
// where others do.
func (w *waiter) enter(p *poll) {
	servers := p.report()
	heard := map[string]bool{}
	for _, s := range servers {
		heard[s.Name] = heard[s.Name] || s.answers()
	}
	var silent []string
	for _, s := range servers {
		if !heard[s.Name] {
			silent = append(silent, s.text())
		}
	}
	if len(silent) > 0 && len(silent) < len(servers) {
		w.warn("not all %s answer: %s", p.whose(), strings.Join(silent, "; "))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.report.Servers = append(w.report.Servers, servers...)
}

func (p *poll) whose() string {
	if p.zone == "" {
		return "resolvers"
	}
	return "servers of the zone " + p.zone
}

func (p *poll) report() []Server {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []Server
	for _, s := range p.sources {
		r := Server{Zone: p.zone, Name: s.server, Addr: s.addr, State: Shows, Elapsed: s.done}
		for name := range s.missing {
			if r.Missing == "" || name < r.Missing {
				r.Missing = name
			}
		}
		if r.Missing != "" {
			r.State, r.Last = Lacks, s.last[r.Missing]
			switch {
			case s.answering():
			case s.answered():
				r.State = Lost
			default:
				r.State = Silent
			}
			if r.Last == "" {
				r.Last = "no answer in time"
			}
		}
		list = append(list, r)
	}
	return list
}

// answers reports whether s answered to the end.
func (s Server) answers() bool { return s.State == Shows || s.State == Lacks }

// text says how the server stands, for a message.
func (s Server) text() string {
	who := s.Name
	if s.Addr != "" && s.Addr != s.Name {
		who += " (" + s.Addr + ")"
	}
	switch s.State {
	case Shows:
		return who + ": all values"
	case Lacks, Lost:
		return fmt.Sprintf("%s: %s at %s", who, s.Last, s.Missing)
	default:
		return who + ": " + s.Last
	}
}

// failure is the error when the time is over.
func (p *poll) failure(after time.Duration) error {
	var lines []string
	lacking := false
	answering := map[string]bool{}
	for _, s := range p.report() {
		lacking = lacking || s.State == Lacks
		if s.answers() {
			answering[s.Name] = true
		}
		lines = append(lines, s.text())
	}
	what := fmt.Sprintf("only %d of %d %s answer", len(answering), p.servers, p.whose())
	hint := "the values stay in place and may become visible later; if this returns, raise PROPAGATION_TIMEOUT"
	switch {
	case lacking:
		what = "not visible on all " + p.whose()
	case len(answering) == 0:
		what = "none of the " + p.whose() + " answers"
		hint = "the values stay in place and may be visible all the same; let this host ask them, or name resolvers that it can ask in DNS_RESOLVERS"
	}
	return fault.Errorf(fault.Propagation, "%s after %s: %s", what, round(after), strings.Join(lines, "; ")).WithHint("%s", hint)
}

// round makes a time readable.
func round(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(100 * time.Millisecond)
}

// brief returns the cause of a failed question without the question.
func brief(err error) string {
	if r, ok := errors.AsType[*authority.Referral](err); ok {
		return "it refers to the zone " + r.Zone
	}
	e, ok := errors.AsType[*resolver.Error](err)
	switch {
	case !ok:
		return err.Error()
	case e.Rcode != 0:
		return resolver.RcodeName(e.Rcode)
	default:
		return e.Err.Error()
	}
}

// describe says what an answer shows.
func describe(m *dns.Msg, texts []string) string {
	const limit = 4
	switch {
	case m.Rcode == dns.RcodeNameError:
		return "NXDOMAIN"
	case len(texts) == 0:
		return "no TXT"
	}
	quoted := make([]string, 0, limit)
	for _, text := range texts[:min(limit, len(texts))] {
		quoted = append(quoted, fmt.Sprintf("%.60q", text))
	}
	if more := len(texts) - limit; more > 0 {
		quoted = append(quoted, fmt.Sprintf("%d more", more))
	}
	return "TXT " + strings.Join(quoted, ", ")
}

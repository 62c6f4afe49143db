package resolver

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/miekg/dns"
)

// Echo is what the resolvers of a panel make of something that stands: whoever asks them, maybe a CA, hears it.
type Echo struct {
	Lagging []Laggard // answer and do not show it, or not all of it
	Failing []Laggard // answer with SERVFAIL
	Silent  []Laggard // cannot be asked, or refuse to tell

	shown int // that answer
}

// Compare makes an echo of statements. differs says what an answer has in place of what stands, "" if that; it goes on
// where the server's name stops.
func Compare(statements []Statement, differs func(*dns.Msg) string) Echo {
	var e Echo
	for _, s := range statements {
		switch {
		case s.Err == nil:
			e.shown++
			if says := differs(s.Msg); says != "" {
				e.Lagging = append(e.Lagging, Laggard{Server: s.Server, Says: says})
			}
		case failed(s.Err):
			e.Failing = append(e.Failing, Laggard{Server: s.Server, Says: "fails: " + Why(s.Err)})
		default:
			e.Silent = append(e.Silent, Laggard{Server: s.Server, Says: "does not answer: " + Why(s.Err)})
		}
	}
	return e
}

// Fails reports whether every resolver that answers fails and these are too many for the fault to be their own: one of
// DNSSEC, as a rule, which keeps a CA from what stands as well.
func (e Echo) Fails() bool { return e.shown == 0 && len(e.Failing) >= Quorum }

// Deaf reports whether there are resolvers and none answers anything.
func (e Echo) Deaf() bool { return e.shown+len(e.Failing) == 0 && len(e.Silent) > 0 }

// Silent is an authoritative server that does not answer about a name, and why.
func Silent(server, name string, err error) Laggard {
	return Laggard{Server: server, Says: fmt.Sprintf("does not answer about %s: %s", name, Why(err))}
}

// failed reports whether a server has answered with SERVFAIL.
func failed(err error) bool {
	return slices.ContainsFunc(leaves(err), func(err error) bool {
		e, ok := err.(*Error)
		return ok && e.Rcode == dns.RcodeServerFailure
	})
}

// Why says in a few words why a server that is named already did not answer, the addresses and ways to it taken together.
func Why(err error) string {
	var reasons []string
	for _, leaf := range leaves(err) {
		why := leaf.Error()
		if e, ok := leaf.(*Error); ok {
			why = e.reason()
		}
		if !slices.Contains(reasons, why) {
			reasons = append(reasons, why)
		}
	}
	return strings.Join(reasons, ", ")
}

// leaves returns the errors that are joined in err, an [*Error] each where there is one.
func leaves(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range joined.Unwrap() {
			all = append(all, leaves(e)...)
		}
		return all
	}
	if e, ok := err.(*Error); ok {
		return []error{e}
	}
	if next := errors.Unwrap(err); next != nil {
		if below := leaves(next); len(below) > 1 {
			return below
		} else if _, ok := below[0].(*Error); ok {
			return below
		}
	}
	return []error{err}
}

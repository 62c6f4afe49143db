package explain

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/certhook/certhook/pkg/fault"
)

// Verdict is how it stands with a name.
type Verdict string

const (
	Exists       Verdict = "exists"
	DoesNotExist Verdict = "does not exist"
	NoEnd        Verdict = "the CNAMEs have no end" // they lead in a circle, or on and on
	Conflict     Verdict = "servers disagree"
	Broken       Verdict = "DNSSEC is broken"
	Nobody       Verdict = "nobody answers"
)

// Err returns nil where it can be told what stands at the name, be it nothing. It is of kind Verdict where
// servers disagree or nobody who follows the rules finds the record, and Unknown where nobody answers.
func (e Explanation) Err() error {
	kind := fault.Verdict
	switch e.Verdict {
	case Exists, DoesNotExist:
		return nil
	case Nobody:
		kind = fault.Unknown
	}
	return &fault.Error{Kind: kind, Err: errors.New(string(e.Verdict) + ": " + e.Reason), Hint: e.hint}
}

// decide sets the verdict. What keeps everybody from the record comes before what servers say about it.
func (e *Explanation) decide() {
	last := e.Chain[len(e.Chain)-1]
	way := ""
	if len(e.Chain) > 1 {
		way = fmt.Sprintf("%s leads to %s: ", e.Name, last.Name)
	}
	e.Verdict, e.Reason = e.state(last)
	e.Reason = way + e.Reason
	if broken := e.broken(); broken != "" {
		e.Verdict, e.Reason = Broken, broken
		e.hint = "sign the zone anew, or correct or remove its DS in the zone above; a CA validates too"
	}
}

// state judges by the last hop of the chain.
func (e *Explanation) state(h Hop) (Verdict, string) {
	who := ""
	if h.byResolvers {
		who = ", say resolvers; no authoritative server answers"
	}
	switch h.State {
	case Present:
		return Exists, fmt.Sprintf("there is %s at %s%s", article(e.Type), h.Name, who)
	case Absent:
		if slices.ContainsFunc(slices.Concat(h.Servers, h.Resolvers), func(s Said) bool { return s.Answer == NoData }) {
			return DoesNotExist, fmt.Sprintf("%s has no %s%s", h.Name, e.Type, who)
		}
		return DoesNotExist, fmt.Sprintf("there is no name %s%s", h.Name, who)
	case Disagree:
		e.hint = "a change spreads within seconds, as a rule; where servers still disagree later, ask who runs them"
		said, whose := h.Servers, "servers of the zone "+h.Zone
		if h.byResolvers {
			said, whose = h.Resolvers, "resolvers"
		}
		return Conflict, fmt.Sprintf("the %s disagree about %s: %s", whose, h.Name, listed(said, Said.answers))
	case Alias:
		switch {
		case h.next == "":
			return DoesNotExist, fmt.Sprintf("%s is a CNAME to the root, which has no %s", h.Name, e.Type)
		case e.has(h.next):
			e.hint = "one of the CNAMEs must go"
			return NoEnd, fmt.Sprintf("the CNAME at %s leads back to %s", h.Name, h.next)
		}
		e.hint = "lead the CNAME straight to its end"
		return NoEnd, fmt.Sprintf("there are more than %d CNAMEs", maxChain)
	}
	e.hint = "check the network and the delegation of the zone, then run it again"
	switch {
	case h.Zone == "":
		return Nobody, fmt.Sprintf("the zone of %s cannot be found", h.Name)
	case slices.ContainsFunc(h.Resolvers, Said.answers):
		return Nobody, fmt.Sprintf("no server of the zone %s answers about %s, and one resolver alone proves nothing", h.Zone, h.Name)
	}
	return Nobody, fmt.Sprintf("no server of the zone %s answers about %s: %s", h.Zone, h.Name,
		listed(h.Servers, func(Said) bool { return true }))
}

// broken says where validation fails, or "". A resolver that validates the same answer refutes one that cannot.
func (e *Explanation) broken() string {
	bogus := func(s Said) bool { return s.Answer == Bogus }
	validated := func(s Said) bool { return s.Validated }
	at := func(name string, said []Said) string {
		if slices.ContainsFunc(said, validated) || !slices.ContainsFunc(said, bogus) {
			return ""
		}
		return fmt.Sprintf("resolvers withhold what stands at %s, for its signatures are wrong or missing: %s", name, listed(said, bogus))
	}
	for _, h := range e.Chain {
		if text := at(h.Name, h.Resolvers); text != "" {
			return text
		}
	}
	for _, z := range e.Zones {
		if text := at(z.Name, z.Resolvers); text != "" {
			return text
		}
	}
	return ""
}

// listed joins what those say of whom it is asked.
func listed(said []Said, of func(Said) bool) string {
	var parts []string
	for _, s := range said {
		if of(s) {
			parts = append(parts, s.Server+" "+s.says())
		}
	}
	return strings.Join(parts, "; ")
}

// says is the answer as it follows the server's name in a sentence.
func (s Said) says() string {
	switch s.Answer {
	case Records, CNAME:
		var records []string
		for _, r := range s.Records {
			records = append(records, r.Type+" "+r.Data)
		}
		return "has " + strings.Join(records, ", ")
	case NoData:
		return "has none"
	case NXDomain:
		return "says that there is no such name"
	case Referral:
		return "refers to the servers of " + s.Detail
	case Lame:
		return "is not authoritative"
	case Refused:
		return "refuses"
	case Timeout:
		return "does not answer"
	case Bogus:
		return strings.Join(append([]string{"fails to validate it"}, s.Errors...), ", ")
	}
	return "fails: " + s.Detail
}

func article(qtype string) string {
	if strings.ContainsRune("AEFHILMNORSX", rune(qtype[0])) {
		return "an " + qtype
	}
	return "a " + qtype
}

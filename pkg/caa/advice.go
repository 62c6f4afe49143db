package caa

import (
	"fmt"
	"slices"
	"strings"
)

// Advice says in one phrase how to mend what the result tells of: a refusal if there is one, or else a lock
// that is open or absent. Records are added first, lest the domain stand open in between.
func (q Question) Advice(s Set, r Result) string {
	if s.CNAME != "" {
		return q.besideCNAME(s, r)
	}
	return q.mend(s, r)
}

func (q Question) mend(s Set, r Result) string {
	var parts []string
	if missing := q.Missing(s, false); len(missing) > 0 {
		parts = append(parts, "add "+strings.Join(missing, " and "))
	}
	switch surplus := q.inTheWay(s, r); {
	case len(surplus) == 1 && slices.Equal(surplus, r.named()):
		parts = append(parts, "remove that record")
	case len(surplus) > 0:
		parts = append(parts, "remove "+strings.Join(surplus, " and "))
	}
	return strings.Join(parts, ", then ")
}

// inTheWay returns the surplus as far as the result is concerned: what another CA may have been given leave
// for on purpose only has to go for the lock's sake.
func (q Question) inTheWay(s Set, r Result) []string {
	if r.Allowed {
		return q.Surplus(s)
	}
	var lines []string
	for _, rr := range s.own(q.Domain) {
		if criticalUnknown(rr) {
			lines = append(lines, Text(q.Domain, rr))
		}
	}
	return lines
}

// named returns the records that the result blames.
func (r Result) named() []string {
	if !r.Allowed {
		return []string{r.Fault.Record}
	}
	var lines []string
	for _, g := range r.Gaps {
		lines = append(lines, g.Record)
	}
	return lines
}

// besideCNAME is advice for a domain that is a CNAME, which has no other records (RFC 1034, section
// 3.6.2): the target may have them, or the CNAME gives way to records that do not claim the name alone.
func (q Question) besideCNAME(s Set, r Result) string {
	at, there := q, Set{Owner: s.CNAME}
	at.Domain = s.CNAME
	if s.Target == s.CNAME {
		there.Records = s.Records
	}
	var ways []string
	if mend := at.mend(there, r); mend != "" && s.CNAME != "." {
		ways = append(ways, fmt.Sprintf("if %s is yours, %s", s.CNAME, mend))
	}
	ways = append(ways, fmt.Sprintf("put address records, or what the DNS provider calls ALIAS, ANAME or flattening, in place of the CNAME, and then lock %s itself", q.Domain))
	text := fmt.Sprintf("%s is a CNAME, and no CAA can stand beside one: %s", q.Domain, strings.Join(ways, "; or else "))
	if len(there.Records) == 0 {
		text += fmt.Sprintf(" (as long as %s has no CAA, the names above %s are what counts, not those above the target)", s.CNAME, q.Domain)
	}
	return text
}

package caa

import (
	"fmt"
	"strings"

	"github.com/miekg/dns"
)

// Text writes a record as a zone file has it, without TTL and class.
func Text(owner string, rr *dns.CAA) string {
	var value strings.Builder
	for _, c := range []byte(rr.Value) {
		switch {
		case c == '"' || c == '\\':
			value.WriteByte('\\')
			value.WriteByte(c)
		case c < ' ' || c > '~':
			fmt.Fprintf(&value, `\%03d`, c)
		default:
			value.WriteByte(c)
		}
	}
	return fmt.Sprintf(`%s. CAA %d %s "%s"`, owner, rr.Flag, rr.Tag, value.String())
}

// locking is the record of that tag that lets the account issue and nobody else.
func (q Question) locking(tag string) *dns.CAA {
	return &dns.CAA{Tag: tag, Value: fmt.Sprintf("%s;%s=%s;%s=%s", q.Issuer, validationMethods, q.Method, accountURI, q.Account)}
}

// Record is the record that locks the domain to the account: issue, which governs wildcards as well where
// no issuewild stands beside it, and never leaves the name itself open.
func (q Question) Record() string { return Text(q.Domain, q.locking("issue")) }

// Missing returns the records that the domain needs besides those it has, so that the account may issue
// for it and its wildcard. Records above the domain stop counting as soon as it has its own.
func (q Question) Missing(s Set) []string {
	issue, wild := properties(s.Records)
	own := s.Owner == q.Domain && s.Target == ""
	var lines []string
	need := func(tag string, there []*dns.CAA) {
		for _, rr := range there {
			if why, _ := q.refusal(rr); own && why == "" && q.pins(rr) {
				return
			}
		}
		lines = append(lines, Text(q.Domain, q.locking(tag)))
	}
	need("issue", issue)
	if len(wild) > 0 {
		need("issuewild", wild)
	}
	return lines
}

// pins reports whether a record is for one account alone.
func (q Question) pins(rr *dns.CAA) bool {
	opens, _ := q.opens(rr)
	return opens == ""
}

// Advice says in one phrase how to mend what the result tells of: a refusal if there is one, or else a lock
// that is open or absent. Records are added first, lest the domain stand open in between.
func (q Question) Advice(s Set, r Result) string {
	if s.CNAME != "" {
		at := q
		at.Domain = s.CNAME
		return fmt.Sprintf("%s is a CNAME, and no CAA can stand beside one: add %s at its target, or put address records in place of the CNAME",
			q.Domain, at.Record())
	}
	var parts []string
	if missing := q.Missing(s); len(missing) > 0 {
		parts = append(parts, "add "+strings.Join(missing, " and "))
	}
	// What another CA may have been given leave for on purpose only has to go for the lock's sake.
	found := r.Fault.Record
	if r.Allowed {
		found = r.Gap.Record
	}
	for _, rr := range s.Records {
		if s.Owner == q.Domain && Text(s.Owner, rr) == found && (criticalUnknown(rr) || r.Allowed && !q.pins(rr)) {
			parts = append(parts, "remove that record")
			break
		}
	}
	return strings.Join(parts, ", then ")
}

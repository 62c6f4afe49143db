package caa

import (
	"fmt"
	"strings"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/resolver"
)

// Text writes a record as a zone file has it, without TTL and class.
func Text(owner string, rr *dns.CAA) string {
	return fmt.Sprintf(`%s. CAA %d %s "%s"`, owner, rr.Flag, rr.Tag, resolver.Escape(rr.Value))
}

// locking is the record of that tag that lets the account issue and nobody else.
func (q Question) locking(tag string) *dns.CAA {
	return &dns.CAA{Tag: tag, Value: fmt.Sprintf("%s;%s=%s;%s=%s",
		q.Issuer, validationMethods, strings.Join(q.methods(), ","), accountURI, q.Account)}
}

// Record is the record that locks the domain to the account: issue, which governs wildcards as well where
// no issuewild stands beside it, and never leaves the name itself open.
func (q Question) Record() string { return Text(q.Domain, q.locking("issue")) }

// Records returns the records with which the account, and nobody else, may issue for the domain and its
// wildcard: issue always, even for a certificate of the wildcard alone, and issuewild besides where wild
// asks for it or the set that governs has one. There are none where the account is not known, nor where the
// domain is a CNAME, beside which no CAA can stand: [Question.Advice] tells the ways out of that.
func (q Question) Records(s Set, wild bool) []string {
	var lines []string
	for _, tag := range q.tags(s, wild) {
		lines = append(lines, Text(q.Domain, q.locking(tag)))
	}
	return lines
}

func (q Question) tags(s Set, wild bool) []string {
	_, wilds := properties(s.Records)
	switch {
	case q.Account == "" || s.CNAME != "":
		return nil
	case wild || len(wilds) > 0:
		return []string{"issue", "issuewild"}
	}
	return []string{"issue"}
}

// Missing returns those of [Question.Records] for which the domain has no record yet that does the same.
// One above the domain does not: it stops counting as soon as the domain has its own.
func (q Question) Missing(s Set, wild bool) []string {
	issue, wilds := properties(s.own(q.Domain))
	there := map[string][]*dns.CAA{"issue": issue, "issuewild": wilds}
	var lines []string
	for _, tag := range q.tags(s, wild) {
		if !q.locks(there[tag]) {
			lines = append(lines, Text(q.Domain, q.locking(tag)))
		}
	}
	return lines
}

// Surplus returns the domain's own records that have to go before the account, and nobody else, may issue:
// those that forbid everything because CAs do not know their tag, and, where the account is known, those
// that let others issue. Without a record in their place the latter are better than nothing.
func (q Question) Surplus(s Set) []string {
	var lines []string
	for _, rr := range s.own(q.Domain) {
		if criticalUnknown(rr) || q.Account != "" && speaksOfIssuance(rr) && !q.pins(rr) {
			lines = append(lines, Text(q.Domain, rr))
		}
	}
	return lines
}

// own returns the records that stand at the domain itself.
func (s Set) own(domain string) []*dns.CAA {
	if s.Owner == domain && s.Target == "" {
		return s.Records
	}
	return nil
}

// locks reports whether one of the records lets the account issue, by all of its methods, and nobody else.
func (q Question) locks(rrs []*dns.CAA) bool {
	for _, rr := range rrs {
		if why, _ := q.refusal(rr); why != "" || !q.pins(rr) {
			continue
		}
		if p, err := Parse(rr.Value); err == nil && q.allMethods(p) {
			return true
		}
	}
	return false
}

func (q Question) allMethods(p Property) bool {
	for _, m := range q.methods() {
		if p.refusesMethod(m) != "" {
			return false
		}
	}
	return true
}

// pins reports whether a record lets nobody but one account issue.
func (q Question) pins(rr *dns.CAA) bool {
	opens, _ := q.opens(rr)
	return opens == ""
}

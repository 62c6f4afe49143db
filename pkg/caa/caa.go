// Package caa tells what a CA makes of the CAA records around a domain (RFC 8659, RFC 8657): whether they
// let it issue to our account, as Boulder decides that, and whether they keep everybody else out.
//
// Delegating the challenge leaves the CAA out of our reach, so that the one record which ties issuance to
// our account is the operator's to create. [Lookup] finds the set that governs a domain, [Evaluate] judges
// it, and [Question.Advice] says what to put there.
package caa

import (
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/resolver"
)

// Question is a certificate that somebody wants.
type Question struct {
	Domain   string   // canonical, without a wildcard label
	Wildcard bool     // the certificate is for *.Domain
	Issuer   string   // the CA's issuer-domain-name, as it writes it itself
	Also     []string // further names that mean the same CA
	Method   string   // of validation, such as dns-01
	Methods  []string // further ones that a record which we advise is to allow
	Account  string   // URI of the ACME account; "" where it is not known: then any one may be the right one
	Others   []string // URIs of further accounts of ours: what lets them issue opens nothing
}

// ours reports whether an issuer-domain-name is the CA's.
func (q Question) ours(issuer string) bool {
	return issuer == q.Issuer || slices.Contains(q.Also, issuer)
}

// methods are all the methods that the account is to validate by, each once.
func (q Question) methods() []string {
	all := []string{q.Method}
	for _, m := range q.Methods {
		if !slices.Contains(all, m) {
			all = append(all, m)
		}
	}
	return all
}

// Set is the relevant resource record set of a domain (RFC 8659, section 3) and how we know of it.
type Set struct {
	Owner   string // where the climb met records: the domain or a name above it; "" if nowhere
	Target  string // the end of the CNAME at Owner that holds them; "" where they stand at Owner itself
	Records []*dns.CAA
	CNAME   string // where the CNAME at the domain itself ends, "." for the root; "" if there is none

	// Proven is set where all of it, that the names below Owner have no records included, comes from
	// authoritative servers, and those of them that answered agree.
	Proven bool

	// Resolvers is set where the panel had to be asked, for want of an authoritative answer, and Plain where
	// it rests on what some of them said without encryption: anybody on the way could have written that.
	Resolvers, Plain bool

	Sources []string           // the servers whose word it is, zones' own by name, resolvers as Panel calls them
	Lagging []resolver.Laggard // authoritative servers that lack some of what others of their zone have
	Failing []resolver.Laggard // authoritative servers that do not answer while others of their zone do

	// Views are what a CA may find in place of Records, since it may ask any of the authoritative servers and they
	// differ; none where they agree.
	Views []View
}

// View is the set that some authoritative servers lead to.
type View struct {
	Servers []string // that differ from others, by name
	Set     Set      // Owner, Target and Records, and what else is known of them
	Err     error    // why it could not be learnt; a CA that asks these servers does not learn it either
}

// Finding is a record and what is the matter with it.
type Finding struct {
	Record string // as a zone file has it
	Why    string // goes on where Record stops: "lets every account at letsencrypt.org issue"
}

func (f Finding) String() string { return strings.TrimSpace(f.Record + " " + f.Why) }

// Lock is how well a set keeps other accounts and other CAs from issuing for a domain and its wildcard.
type Lock string

const (
	Locked Lock = "locked" // nobody but the account may issue
	Open   Lock = "open"   // there are records, and somebody else may
	Absent Lock = "absent" // no record says anything of issuance: every CA may
)

// Result is what [Evaluate] finds.
type Result struct {
	Allowed bool    // Boulder's verdict on the question
	Fault   Finding // where it is no: the record that comes nearest to allowing it, and why it does not

	Lock  Lock
	Gaps  []Finding // where the lock is open: every record that opens it
	Notes []Finding // what is odd and changes neither
}

// Evaluate says whether the CA that the question names would issue, by the rules of Boulder's va/caa.go,
// and how strong the lock is. Records are taken as miekg/dns unpacks them from the wire.
func Evaluate(q Question, s Set) Result {
	r := Result{Allowed: true}
	r.Lock, r.Gaps, r.Notes = q.lock(s)
	issue, wild := properties(s.Records)
	for _, rr := range s.Records {
		if criticalUnknown(rr) {
			r.Allowed = false
			r.Fault = s.finding(rr, "is critical, and CAs do not know its tag")
			return r
		}
	}
	relevant := issue
	if q.Wildcard && len(wild) > 0 {
		relevant = wild // RFC 8659, section 4.3
	}
	nearest := -1
	for _, rr := range relevant {
		why, near := q.refusal(rr)
		if why == "" {
			r.Allowed, r.Fault = true, Finding{}
			return r
		}
		if near > nearest {
			nearest = near
			r.Allowed, r.Fault = false, s.finding(rr, why)
		}
	}
	return r
}

// properties returns the records that speak of issuance, for names and for wildcards.
func properties(rrs []*dns.CAA) (issue, wild []*dns.CAA) {
	for _, rr := range rrs {
		switch strings.ToLower(rr.Tag) {
		case "issue":
			issue = append(issue, rr)
		case "issuewild":
			wild = append(wild, rr)
		}
	}
	return issue, wild
}

func speaksOfIssuance(rr *dns.CAA) bool {
	return strings.EqualFold(rr.Tag, "issue") || strings.EqualFold(rr.Tag, "issuewild")
}

// criticalUnknown reports whether a record forbids everything because its tag is not known. Boulder reads
// bit 1 as the critical one, too: many have mistaken it for bit 128.
func criticalUnknown(rr *dns.CAA) bool {
	switch strings.ToLower(rr.Tag) {
	case "issue", "issuewild", "iodef", "issuemail", "issuevmc":
		return false
	}
	return rr.Flag&(128|1) != 0
}

// refusal says why a record does not let the CA issue, "" if it does, and how near it comes to that.
func (q Question) refusal(rr *dns.CAA) (why string, near int) {
	p, err := Parse(rr.Value)
	switch {
	case err != nil:
		return "counts for nothing, since CAs find it malformed: " + err.Error(), 1
	case p.Issuer == "":
		return "allows no CA", 0
	case !q.ours(p.Issuer):
		return "is for another CA" + q.nearly(p.Issuer), 0
	}
	if why := p.refusesAccount(q.Account); why != "" {
		return why, 3
	}
	return p.refusesMethod(q.Method), 2
}

// nearly explains an issuer that only looks like the CA's: Boulder compares octets.
func (q Question) nearly(issuer string) string {
	for _, name := range append([]string{q.Issuer}, q.Also...) {
		if strings.EqualFold(strings.TrimSuffix(issuer, "."), name) {
			return ": CAs compare the name to the letter, and that is " + name
		}
	}
	return ""
}

// finding makes a Finding of a record of the set.
func (s Set) finding(rr *dns.CAA, why string) Finding {
	owner := s.Owner
	if s.Target != "" {
		owner = s.Target
	}
	return Finding{Record: Text(owner, rr), Why: why}
}

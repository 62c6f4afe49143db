// Package guide tells an operator which records a domain needs before it can get certificates, looks
// whether they stand, and waits until they do.
//
// Whom it believes: the authoritative servers first. A CA may ask any of them, so that what all have decides,
// what only some have cannot be told, and a recursive resolver that does not show it is only named as lagging;
// unless every resolver fails, as a CA's then will. What they do not have no resolver is asked about, since
// the question would have it remember for up to a day that there is nothing. Where none of them can be
// reached, at least two resolvers that know nothing of each other have to answer; fewer prove nothing. Of those
// that do, what one shows counts, since others may hold an older answer.
package guide

import (
	"time"

	"github.com/certhook/certhook/pkg/authority"
	"github.com/certhook/certhook/pkg/delegation"
	"github.com/certhook/certhook/pkg/resolver"
)

// Kind is what a record is for.
type Kind string

const (
	ChallengeCNAME Kind = "challenge-cname" // leads a CA from the domain to the alias zone
	ValidationTXT  Kind = "validation-txt"  // lets the ACME account have certificates by dns-persist-01
	CAA            Kind = "caa"             // locks the domain to the ACME account
	CNAME          Kind = "cname"           // leads clients to the gateway
	TXT            Kind = "txt"             // tells the gateway where to lead them
)

// Kinds lists all kinds, in the order in which they are told.
func Kinds() []Kind { return []Kind{ChallengeCNAME, ValidationTXT, CAA, CNAME, TXT} }

// Method is how a CA validates (RFC 8555, section 8; RFC 8737).
type Method string

const (
	DNS01        Method = "dns-01"
	DNSPersist01 Method = "dns-persist-01" // draft-ietf-acme-dns-persist
	TLSALPN01    Method = "tls-alpn-01"
)

// Plan is what one name of a certificate is to have, from settings alone. Names are canonical.
type Plan struct {
	Name     string // as the certificate has it, the label "*." included
	Domain   string // Name without that label
	Wildcard bool
	Method   Method
	Include  map[Kind]bool // what is asked for; a CAA that forbids the certificate is found in any case

	Target     delegation.Target // of the challenge; for DNS01 only
	Validation *Validation       // of dns-persist-01; nil where that is not asked for

	CAA      Lock
	CAAOwner string // where the CAA is to stand: Domain or a name above it

	Gateway  string // where a CNAME at Name has to lead; "" for anywhere
	TXTName  string
	TXTValue string // "" for none
}

// Lock says to whom a domain's CAA is to tie it.
type Lock struct {
	Issuers  []string // what the CA is called in CAA records (caaIdentities); the first goes into new ones. None: not known
	Accounts []string // URIs of the ACME accounts that may be the one; none where Problem says why
	Doubt    string   // what speaks against the account; "" for nothing
	Problem  string   // why the account is not known, and what to run; "" if it is
	Value    string   // the whole value, where the operator gives it
	Open     bool     // that value keeps nobody out
	Wild     bool     // issuewild is asked for besides
	Methods  []Method // by which the name is validated besides the plan's: the CAA has to allow each
	Others   []string // URIs of accounts that may have certificates for the name as well, by a method of theirs
}

// Record is a record for the operator to create.
type Record struct {
	Kind  Kind   `json:"kind"`
	Name  string `json:"name"` // canonical
	Type  string `json:"type"`
	Value string `json:"value"` // as a zone file has it
	Exact bool   `json:"exact"` // false where something else that comes to the same will do
	Note  string `json:"note"`
}

// Line returns the record as a zone file has it, without TTL and class.
func (r Record) Line() string { return r.Name + ". " + r.Type + " " + r.Value }

// Status is what a check finds.
type Status string

const (
	OK      Status = "ok"
	Missing Status = "missing" // nothing stands there
	Wrong   Status = "wrong"   // something else stands there
	Open    Status = "open"    // CAA: others than the account may get certificates
	Unknown Status = "unknown" // nobody told, or a CA may find either
)

// Finding is how it stands with one requirement of a name.
type Finding struct {
	Kind     Kind               `json:"kind"`
	Status   Status             `json:"status"`
	Accepted bool               `json:"accepted,omitempty"` // Open, and the settings say that this is all right
	Detail   string             `json:"detail"`             // one phrase: what was found
	Cause    string             `json:"cause,omitempty"`    // all that went wrong on the way, where Detail ends with the gist of it
	Advice   string             `json:"advice,omitempty"`   // one phrase: what to do about it
	Warning  string             `json:"warning,omitempty"`  // one phrase: what is fine now and will not be soon
	Notes    []string           `json:"notes,omitempty"`    // what is odd and changes nothing
	Lagging  []resolver.Laggard `json:"lagging,omitempty"`  // servers that do not show it yet
	Source   Source             `json:"source,omitempty"`
	Records  []Record           `json:"records"` // what is to be created, whatever stands there
}

// Fine reports whether nothing has to be done.
func (f Finding) Fine() bool { return f.Status == OK || f.Accepted }

// Source is who told.
type Source string

const (
	Authoritative Source = "authoritative"
	Resolvers     Source = "resolvers"       // over DoH or DoT
	PlainDNS      Source = "plain resolvers" // some of them by plain DNS, which anybody on the way can forge
)

// Result is all that is found about one name.
type Result struct {
	Name     string    `json:"name"`
	Findings []Finding `json:"findings"`
}

// Fine reports whether nothing has to be done.
func (r Result) Fine() bool {
	for _, f := range r.Findings {
		if !f.Fine() {
			return false
		}
	}
	return true
}

// Guide checks names. All fields but the first two may be zero.
type Guide struct {
	DNS   *authority.Client
	Panel resolver.Panel

	AllowMissingCAA bool // accept that no lock stands, loudly

	Interval time.Duration // between two checks of [Guide.Wait]
}

package persist

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Question is a certificate that an account wants, and when the CA looks.
type Question struct {
	Issuer string // the CA's, as [ParseIssuer] returns it
	// Account is what the record's accounturi has to be: the account's URL for [Draft01], for [Draft02] what
	// [HashedAccount] makes of it for the domain.
	Account string
	// Shared is what [HashedAccount] makes of the account for the domain "*", with which a CA of [Draft02] is content as
	// well; "" where that is not to count.
	Shared   string
	Wildcard bool // it is for the domain's wildcard
	Now      time.Time
	Draft    Draft
}

// Verdict is what a CA makes of the records at a name.
type Verdict struct {
	OK        bool      `json:"ok"`
	Malformed bool      `json:"malformed,omitempty"` // the refusal is of ACME's type malformed, not unauthorized
	Detail    string    `json:"detail,omitempty"`    // of the refusal, as Boulder words it
	Reasons   []Reason  `json:"reasons,omitempty"`   // for each record that does not let the account have the certificate
	Until     time.Time `json:"until,omitzero"`      // when the last of the records that do let it ends; zero: never
}

// Reason is why a record does not help.
type Reason struct {
	Record   string `json:"record"`             // its value
	Wrong    string `json:"wrong"`              // in plain words
	Expected string `json:"expected,omitempty"` // and Seen: what differs; both empty where there is nothing to compare
	Seen     string `json:"seen,omitempty"`
	Foreign  bool   `json:"foreign,omitempty"` // no record of this CA at all, which is no fault
}

// Evaluate says what Boulder makes of the TXT records at [Owner]. Each is the strings of one record, joined, in
// miekg/dns's presentation form, whose escapes Boulder does not undo. One good record suffices.
//
// Boulder knows [Draft01] only; for [Draft02] the same is done with the account hashed.
func Evaluate(q Question, txts []string) Verdict {
	if len(txts) == 0 {
		return Verdict{Detail: "No TXT record found for DNS-PERSIST-01 challenge"}
	}
	var v Verdict
	var malformed, refused []string
	var valid []time.Time
	for _, txt := range txts {
		p, err := parse(txt)
		if p.issuer != q.Issuer {
			v.Reasons = append(v.Reasons, foreign(q, txt, p, err))
			continue
		}
		if err != nil {
			malformed = append(malformed, fmt.Sprintf("Parsing DNS-PERSIST-01 challenge TXT record with issuer-domain-name %q: %s", p.issuer, err))
			v.Reasons = append(v.Reasons, Reason{Record: txt, Wrong: "it is malformed: " + err.Error()})
			continue
		}
		why, reason := q.refusal(p)
		if why == "" {
			valid = append(valid, p.until)
			continue
		}
		refused = append(refused, fmt.Sprintf("Checking DNS-PERSIST-01 challenge TXT record with issuer-domain-name %q: %s", p.issuer, why))
		reason.Record = txt
		v.Reasons = append(v.Reasons, reason)
	}
	switch {
	case len(valid) > 0:
		v.OK, v.Until = true, last(valid)
	case len(malformed) > 0:
		v.Malformed, v.Detail = true, strings.Join(malformed, "; ")
	case len(refused) > 0:
		v.Detail = strings.Join(refused, "; ")
	default:
		v.Detail = "No valid TXT record found for DNS-PERSIST-01 challenge"
	}
	return v
}

// last returns the end of the record that holds longest.
func last(ends []time.Time) time.Time {
	if slices.ContainsFunc(ends, time.Time.IsZero) {
		return time.Time{}
	}
	return slices.MaxFunc(ends, time.Time.Compare)
}

// foreign is the reason for a record that is not of this CA, as far as can be read.
func foreign(q Question, txt string, p parsed, err error) Reason {
	switch {
	case p.issuer != "":
		return Reason{Record: txt, Foreign: true, Wrong: "it is for another CA", Expected: q.Issuer, Seen: p.issuer}
	case err != nil:
		return Reason{Record: txt, Foreign: true, Wrong: "it names no CA: " + err.Error()}
	}
	return Reason{Record: txt, Foreign: true, Wrong: "it names no CA but the root"}
}

// refusal says why a record of this CA does not hold, in Boulder's words and in ours, "" if it does.
func (q Question) refusal(p parsed) (string, Reason) {
	switch {
	case p.account != q.Account && (q.Shared == "" || p.account != q.Shared):
		return fmt.Sprintf("accounturi mismatch: expected %q, got %q", q.Account, p.account),
			Reason{Wrong: q.wrongAccount(p.account), Expected: q.Account, Seen: p.account}
	case q.Wildcard && strings.ToLower(p.policy) != "wildcard":
		return fmt.Sprintf("policy mismatch: expected %q, got %q", "wildcard", p.policy),
			Reason{Wrong: "it does not cover the wildcard", Expected: "policy=wildcard", Seen: "policy=" + p.policy}
	case !p.until.IsZero() && q.Now.After(p.until):
		now, until := q.Now.UTC().Format(time.RFC3339), p.until.Format(time.RFC3339)
		return fmt.Sprintf("validation time %s is after persistUntil %s", now, until),
			Reason{Wrong: "it has expired", Expected: "persistUntil not before " + now, Seen: until}
	}
	return "", Reason{}
}

// wrongAccount says what is wrong with a record's account.
func (q Question) wrongAccount(seen string) string {
	switch {
	case q.Draft == Draft02 && !hashed.MatchString(seen):
		return "its accounturi is not hashed, as draft -02 wants it"
	case q.Draft != Draft02 && hashed.MatchString(seen):
		return "its accounturi is hashed, as draft -02 wants it, and not the account's URL of draft -01"
	}
	return "it is for another account"
}

package caa

import (
	"slices"

	"github.com/miekg/dns"
)

// lock says how strong the set's lock is for the question's domain, its wildcard included: whoever may
// issue for *.example.com may answer for every name below. gaps are all the records that open it.
func (q Question) lock(s Set) (l Lock, gaps, notes []Finding) {
	issue, wild := properties(s.Records)
	if len(issue)+len(wild) == 0 {
		return Absent, nil, nil
	}
	for _, rr := range append(issue[:len(issue):len(issue)], wild...) {
		opens, odd := q.opens(rr)
		if opens != "" {
			gaps = append(gaps, s.finding(rr, opens))
		}
		for _, why := range odd {
			notes = append(notes, s.finding(rr, why))
		}
	}
	if len(issue) == 0 {
		gaps = append(gaps, s.finding(wild[0], "is about wildcards, and nothing is said of the name itself"))
	}
	if len(gaps) > 0 {
		return Open, gaps, notes
	}
	return Locked, nil, notes
}

// opens says to whom but the account a record opens the domain, "" for nobody, and what is odd about it.
func (q Question) opens(rr *dns.CAA) (opens string, odd []string) {
	p, err := Parse(rr.Value)
	if err != nil {
		return "", []string{"counts for nothing, since CAs find it malformed: " + err.Error()}
	}
	if p.Issuer == "" {
		return "", nil
	}
	if !q.ours(p.Issuer) {
		return "lets another CA issue" + q.nearly(p.Issuer), nil
	}
	uri, err := p.pin()
	switch tag := p.misspelt(accountURI); {
	case err != nil:
		return "", []string{"allows no account: its accounturi " + err.Error()}
	case uri == "" && tag != "":
		return "lets every account issue: CAs ignore " + tag + ", for they know only " + accountURI, nil
	case uri == "":
		return "lets every account at " + p.Issuer + " issue", nil
	case q.Account == "":
		odd = append(odd, "is for one account, and whose that is cannot be checked")
	case slices.ContainsFunc(q.Others, func(other string) bool { return SameAccount(uri, other) }):
		return "", nil
	case !SameAccount(uri, q.Account):
		return "lets another account issue", nil
	}
	return "", append(odd, q.oddMethods(p)...)
}

// oddMethods says what is odd about the methods that a record for the account allows: more than ours, or
// not all of ours.
func (q Question) oddMethods(p Property) (odd []string) {
	if tag := p.misspelt(validationMethods); tag != "" {
		return []string{"allows every method of validation: CAs ignore " + tag + ", for they know only " + validationMethods}
	}
	if len(p.values(validationMethods)) == 0 {
		return []string{"allows every method of validation, not " + q.Method + " alone"}
	}
	for _, m := range q.methods() {
		if why := p.refusesMethod(m); why != "" {
			odd = append(odd, why)
		}
	}
	return odd
}

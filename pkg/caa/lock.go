package caa

import "github.com/miekg/dns"

// lock says how strong the set's lock is for the question's domain, its wildcard included: whoever may
// issue for *.example.com may answer for every name below.
func (q Question) lock(s Set) (Lock, Finding, []Finding) {
	issue, wild := properties(s.Records)
	if len(issue)+len(wild) == 0 {
		return Absent, Finding{}, nil
	}
	var gap Finding
	var notes []Finding
	for _, rr := range append(issue[:len(issue):len(issue)], wild...) {
		opens, odd := q.opens(rr)
		if opens != "" && gap.Why == "" {
			gap = s.finding(rr, opens)
		}
		if odd != "" {
			notes = append(notes, s.finding(rr, odd))
		}
	}
	if len(issue) == 0 && gap.Why == "" {
		gap = s.finding(wild[0], "is about wildcards, and nothing is said of the name itself")
	}
	if gap.Why != "" {
		return Open, gap, notes
	}
	return Locked, Finding{}, notes
}

// opens says to whom but the account a record opens the domain, "" for nobody, and what is odd about it.
func (q Question) opens(rr *dns.CAA) (opens, odd string) {
	p, err := Parse(rr.Value)
	if err != nil {
		return "", "counts for nothing, since CAs find it malformed: " + err.Error()
	}
	if p.Issuer == "" {
		return "", ""
	}
	if p.Issuer != q.Issuer {
		return "lets another CA issue" + q.nearly(p.Issuer), ""
	}
	uri, err := p.pin()
	switch tag := p.misspelt(accountURI); {
	case err != nil:
		return "", "allows no account: its accounturi " + err.Error()
	case uri == "" && tag != "":
		return "lets every account issue: CAs do not know " + tag + ", only " + accountURI, ""
	case uri == "":
		return "lets every account at " + q.Issuer + " issue", ""
	case q.Account != "" && !SameAccount(uri, q.Account):
		return "lets another account issue", ""
	}
	if tag := p.misspelt(validationMethods); tag != "" {
		return "", "allows every method of validation: CAs do not know " + tag + ", only " + validationMethods
	}
	if len(p.values(validationMethods)) == 0 {
		return "", "allows every method of validation, not " + q.Method + " alone"
	}
	return "", ""
}

package guide

import (
	"context"
	"fmt"
	"strings"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/caa"
	"github.com/certhook/certhook/pkg/dnsname"
)

// prescribeLock lists the CAA records, as what stands in DNS today asks for.
func (g *Guide) prescribeLock(ctx context.Context, p Plan, gr *ground, list *Prescription) {
	s, err := caa.Lookup(ctx, g.DNS, g.Panel, p.Domain)
	records, leftOut, notes := p.lockRecords(s, gr)
	list.Records = append(list.Records, records...)
	if leftOut != "" {
		list.leaveOut("the CAA record", leftOut)
	}
	for _, n := range append(notes, gr.lockNotes(p)...) {
		list.note(n)
	}
	if err != nil && len(records) > 0 {
		list.note(fmt.Sprintf("which CAA records stand at %s and above it today cannot be told, so that more may be needed beside this one where there is an issuewild: %s", p.Domain, brief(err)))
	}
}

// lockRecords lists the CAA records that tie the domain to the account, given those that govern it today, or says why
// there are none. It never lists a CAA where a CNAME stands or is to stand.
func (p Plan) lockRecords(s caa.Set, gr *ground) (records []Record, leftOut string, notes []string) {
	switch {
	case p.CAA.Value != "":
	case p.CAA.Problem != "":
		return nil, p.CAA.Problem, nil
	case len(p.CAA.Accounts) > 1:
		return nil, p.severalAccounts(), nil
	}
	stands := s.CNAME != ""
	s = gr.around(p, s)
	q := p.question("")
	if len(p.CAA.Accounts) > 0 {
		q = p.question(p.CAA.Accounts[0])
	}
	q.Domain = p.CAAOwner
	if s.CNAME != "" {
		advice := q.Advice(s, caa.Evaluate(q, s))
		if !stands && p.CAAOwner == p.Domain {
			advice = "once its CNAME is there, " + advice
		}
		return nil, advice, nil
	}
	if s.Owner != "" && s.Owner != p.CAAOwner && dnsname.Within(s.Owner, p.CAAOwner) {
		notes = append(notes, fmt.Sprintf("%s has CAA records of its own, so that one at %s will not count for %s", s.Owner, p.CAAOwner, p.Name))
	}
	note := fmt.Sprintf("lets nobody but this ACME account have certificates for %s and all names below", p.CAAOwner)
	if p.CAA.Open {
		note = fmt.Sprintf("lets the CA issue for %s; it locks nobody out", p.CAAOwner)
	}
	for _, line := range p.lockLines(q, s) {
		owner, value, _ := strings.Cut(line, ". CAA ")
		records = append(records, Record{Kind: CAA, Name: owner, Type: "CAA", Value: value, Exact: true, Note: note})
		note = "the same for wildcards, since an issuewild that stands there counts for them in place of issue"
	}
	return records, "", notes
}

// lockLines returns the records as a zone file has them.
func (p Plan) lockLines(q caa.Question, s caa.Set) []string {
	if p.CAA.Value == "" {
		return q.Records(s, p.CAA.Wild)
	}
	q.Account = "https://any.invalid" // which tags are needed depends on no account
	var lines []string
	for i := range q.Records(s, p.CAA.Wild) {
		lines = append(lines, caa.Text(q.Domain, &dns.CAA{Tag: []string{"issue", "issuewild"}[i], Value: p.CAA.Value}))
	}
	return lines
}

func (p Plan) severalAccounts() string {
	return fmt.Sprintf("certbot has several accounts, and nothing tells which one it will use for %s: choose one of %s by --account-uri, and give certbot the same one by --account",
		p.Name, strings.Join(p.CAA.Accounts, ", "))
}

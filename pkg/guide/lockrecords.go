package guide

import (
	"context"
	"fmt"
	"strings"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/caa"
)

// findLockRecords is lockRecords for what DNS has today.
func (g *Guide) findLockRecords(ctx context.Context, p Plan) ([]Record, []string) {
	s, err := caa.Lookup(ctx, g.DNS, g.Panel, p.Domain)
	records, notes := p.lockRecords(s, g.flat(ctx, p))
	if err != nil && len(records) > 0 {
		notes = append(notes, fmt.Sprintf("which CAA records stand at %s and above it today cannot be told, so that more may be needed beside this one where there is an issuewild: %v", p.Domain, err))
	}
	return records, notes
}

// lockRecords lists the CAA records that tie the domain to the account, given those that govern it today, and
// says what is left out and why. It never lists a CAA beside a CNAME at the same name: nothing else can
// stand there (RFC 1034, section 3.6.2). flat is what the method of that name tells.
func (p Plan) lockRecords(s caa.Set, flat bool) (records []Record, notes []string) {
	switch {
	case p.CAA.Value != "":
	case p.CAA.Problem != "":
		return nil, []string{"the CAA record is left out: " + p.CAA.Problem}
	case len(p.CAA.Accounts) > 1:
		return nil, []string{"the CAA record is left out: " + p.severalAccounts()}
	}
	if p.CAAOwner == p.Name && p.wantsGateway() && !flat && s.CNAME == "" {
		s.CNAME = p.Gateway // it will be
	}
	q := p.question("")
	if len(p.CAA.Accounts) > 0 {
		q = p.question(p.CAA.Accounts[0])
	}
	if p.CAAOwner == p.Domain && s.CNAME != "" {
		return nil, []string{"the CAA record is left out: " + q.Advice(s, caa.Evaluate(q, s))}
	}
	q.Domain = p.CAAOwner
	note := fmt.Sprintf("lets nobody but this ACME account have certificates for %s and all names below", p.CAAOwner)
	for _, line := range p.lockLines(q, s) {
		owner, value, _ := strings.Cut(line, ". CAA ")
		records = append(records, Record{Kind: CAA, Name: owner, Type: "CAA", Value: value, Exact: true, Note: note})
		note = "the same for wildcards, since an issuewild that stands there counts for them in place of issue"
	}
	return records, notes
}

// lockLines returns the records as a zone file has them.
func (p Plan) lockLines(q caa.Question, s caa.Set) []string {
	s.CNAME = ""
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

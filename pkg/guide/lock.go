package guide

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/certhook/certhook/pkg/caa"
)

// question is what a CA has to decide for the account.
func (p Plan) question(account string) caa.Question {
	q := caa.Question{Domain: p.Domain, Wildcard: p.Wildcard, Account: account, Others: p.CAA.Others}
	q.Method, q.Methods = p.methods()
	if len(p.CAA.Issuers) > 0 {
		q.Issuer, q.Also = p.CAA.Issuers[0], p.CAA.Issuers[1:]
	}
	return q
}

// judge evaluates the set for the account that it suits best: which one of several certbot will use nobody
// knows yet.
func (p Plan) judge(s caa.Set) (caa.Question, caa.Result) {
	best := p.question("")
	if len(p.CAA.Accounts) > 0 {
		best = p.question(p.CAA.Accounts[0])
	}
	result := evaluate(best, s)
	for _, account := range p.CAA.Accounts {
		q := p.question(account)
		r := evaluate(q, s)
		if r.Allowed && r.Lock == caa.Locked {
			return q, r
		}
	}
	return best, result
}

// checkCAA looks whether the CAA records let the account issue, and whether they keep everybody else out.
// Where the plan asks for no CAA only a refusal is a fault.
func (g *Guide) checkCAA(ctx context.Context, p Plan, gr *ground) Finding {
	f := Finding{Kind: CAA, Notes: gr.lockNotes(p)}
	s, err := caa.Lookup(ctx, g.DNS, g.Panel, p.Domain)
	if p.Include[CAA] {
		f.Records, _, _ = p.lockRecords(s, gr)
	}
	if err != nil {
		what := "cannot tell whether CAA records allow it"
		if e, ok := errors.AsType[*caa.Error](err); ok && e.Refused {
			what = "the servers fail when asked for CAA records, and a CA does not issue then"
		}
		return f.undecided(what, err)
	}
	f = f.with(g.judgeViews(p, s, gr))
	f.Source = source(s.Resolvers, s.Plain)
	f.failing(s.Failing)
	if len(s.Views) == 0 || f.Fine() {
		f.Lagging = s.Lagging
	}
	f.hears(caa.Heard(ctx, g.Panel, s), s.Owner, "CAA")
	return f
}

// judgeViews is the worst of what the servers lead to, where they differ.
func (g *Guide) judgeViews(p Plan, s caa.Set, gr *ground) Finding {
	if len(s.Views) == 0 {
		return g.judgeSet(p, s, gr)
	}
	var views []view
	for _, v := range s.Views {
		var f Finding
		if v.Err == nil {
			f = g.judgeSet(p, v.Set, gr)
		} else {
			f = f.undecided("cannot tell", v.Err)
		}
		views = append(views, view{v.Servers, f})
	}
	return worst("CAA of "+p.Domain, views)
}

// judgeSet is what a set comes to.
func (g *Guide) judgeSet(p Plan, s caa.Set, gr *ground) (f Finding) {
	q, r := p.judge(s)
	for _, n := range r.Notes {
		f.Notes = append(f.Notes, n.String())
	}
	switch whom := p.allowed(s); {
	case whom == someOnly:
		f.Status, f.Detail = Unknown, fmt.Sprintf("CAA of %s lets some accounts issue, and which one certbot will use cannot be told", s.Owner)
	case !r.Allowed:
		f.Status, f.Detail = Wrong, "CAA forbids it: "+r.Fault.String()+pinned(q, s)
	case !p.Include[CAA]:
		f.Status, f.Detail = OK, "CAA does not forbid it"
		return f
	case r.Lock == caa.Locked:
		f.Status, f.Detail = OK, fmt.Sprintf("CAA of %s lets the account issue and nobody else", s.Owner)
		return f
	default:
		f.Status, f.Accepted = Open, g.AllowMissingCAA
		f.Detail = "no CAA record locks it to the ACME account"
		if r.Lock == caa.Open {
			f.Detail = "CAA does not lock it to the ACME account: " + gaps(r.Gaps)
		}
	}
	f.Advice = p.advice(q, gr.around(p, s), r)
	return f
}

// whom is which of the accounts that may be ours a set lets issue.
type whom int

const (
	none whom = iota
	someOnly
	all
)

// nobodys is an account that no record names.
const nobodys = "https://nobody.invalid/account"

// allowed tells whom the set lets issue: of several accounts, or of an unknown one, that need not be ours.
func (p Plan) allowed(s caa.Set) whom {
	accounts := p.CAA.Accounts
	if len(accounts) == 0 {
		accounts = []string{nobodys, ""} // any one that no record names, and the one that suits best
	}
	n := 0
	for _, account := range accounts {
		if evaluate(p.question(account), s).Allowed {
			n++
		}
	}
	switch n {
	case 0:
		return none
	case len(accounts):
		return all
	}
	return someOnly
}

// gaps tells every record that opens a lock.
func gaps(list []caa.Finding) string {
	var parts []string
	for _, gap := range list {
		parts = append(parts, gap.String())
	}
	return strings.Join(parts, "; ")
}

// advice says how to mend what is wrong with the set.
func (p Plan) advice(q caa.Question, s caa.Set, r caa.Result) string {
	switch {
	case p.CAA.Problem != "":
		return p.CAA.Problem
	case len(p.CAA.Accounts) > 1:
		return p.severalAccounts()
	}
	q.Domain = p.CAAOwner
	return q.Advice(s, r)
}

package guide

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/persist"
)

// Validation is what the record of dns-persist-01 is to say, besides the account.
type Validation struct {
	Draft    persist.Draft
	Issuers  []string // what the CA calls itself there; the first goes into new records
	Wildcard bool     // the domain's wildcard is to be covered as well
	Until    time.Time

	Prefix      string            // accountHashPrefix of [persist.Draft02]
	Thumbprints map[string]string // and of the accounts' keys, by URI

	Problem string // why it cannot be written for an account that is known, and what to do; "" if it can
}

// soon is how near a record's end is when it is warned about.
const soon = 30 * 24 * time.Hour

// Experimental is what to know of every record of a draft.
func Experimental(d persist.Draft) string {
	return fmt.Sprintf("draft -%s of dns-persist-01, which is experimental: CAs may stop taking it", d)
}

// accountURI is what a record for the domain names as the account.
func (v Validation) accountURI(domain, account string) string {
	if v.Draft == persist.Draft02 {
		return persist.HashedAccount(v.Prefix, domain, v.Thumbprints[account], account)
	}
	return account
}

// validates reports whether the record of dns-persist-01 is asked for.
func (p Plan) validates() bool { return p.Validation != nil && p.Include[ValidationTXT] }

// validationProblem says why no record can be written, "" if one can.
func (p Plan) validationProblem() string {
	switch {
	case p.CAA.Problem != "":
		return p.CAA.Problem
	case len(p.CAA.Accounts) > 1:
		return p.severalAccounts()
	}
	return p.Validation.Problem
}

// knowsAccount reports whether it is known what a record names as the account.
func (p Plan) knowsAccount() bool { return len(p.CAA.Accounts) > 0 && p.Validation.Problem == "" }

// validationRecord is the one that lets the account have certificates, for the domain and, where that is asked for, its
// wildcard. The error says why there is none.
func (p Plan) validationRecord() (Record, error) {
	if why := p.validationProblem(); why != "" {
		return Record{}, errors.New(why)
	}
	v := p.Validation
	if Ended(v.Until, time.Now()) {
		return Record{}, fmt.Errorf("there is none to add, since new ones are to end on %s (PERSIST_UNTIL)", v.Until.UTC().Format(time.DateOnly))
	}
	line, err := persist.Record{
		Issuer: v.Issuers[0], Account: v.accountURI(p.Domain, p.CAA.Accounts[0]), Wildcard: v.Wildcard, Until: v.Until, Draft: v.Draft,
	}.Line(p.Domain)
	if err != nil {
		return Record{}, err
	}
	_, value, _ := strings.Cut(line, ". TXT ")
	covers := p.Domain
	if v.Wildcard {
		covers += " and *." + p.Domain
	}
	return Record{
		Kind: ValidationTXT, Name: persist.Owner(p.Domain), Type: "TXT", Value: value, Exact: true,
		Note: fmt.Sprintf("lets this ACME account have certificates for %s as long as it stands, without a DNS credential; made once (draft -%s of dns-persist-01, experimental)", covers, v.Draft),
	}, nil
}

// prescribeValidation lists the record unless something stands in its way.
func (g *Guide) prescribeValidation(ctx context.Context, p Plan, gr *ground, list *Prescription) {
	const what = "the TXT of dns-persist-01"
	record, err := p.validationRecord()
	if err != nil {
		list.leaveOut(what, err.Error())
		return
	}
	if to := g.standing(ctx, gr, record.Name, dns.TypeTXT).cname; to != "" {
		list.leaveOut(what, beside(record, to))
	} else {
		list.add(record)
	}
	list.note(fmt.Sprintf("the TXT at %s is of %s", record.Name, Experimental(p.Validation.Draft)))
	if note := ending(p.Validation.Until, time.Now()); note != "" {
		list.note(note)
	}
}

// beside says what to do where the record's name is a CNAME, which a CA follows.
func beside(r Record, to string) string {
	moved := r
	moved.Name = to
	return fmt.Sprintf("%s is a CNAME to %s: if that is yours, add %s, or else remove the CNAME and add %s", r.Name, to, moved.Line(), r.Line())
}

// Ended reports whether a record with that end has no use any more.
func Ended(until, now time.Time) bool { return !until.IsZero() && until.Before(now) }

// ending warns of a record that ends soon, "" where there is no hurry.
func ending(until, now time.Time) string {
	left := until.Sub(now)
	if until.IsZero() || left > soon {
		return ""
	}
	in := fmt.Sprintf("%d days", int(left.Hours()/24))
	if left < 48*time.Hour {
		in = fmt.Sprintf("%d hours", int(left.Hours()))
	}
	return fmt.Sprintf("the record ends on %s (persistUntil), in %s: put one with a later end beside it before", until.UTC().Format(time.DateOnly), in)
}

// checkValidation looks whether a record lets the account have a certificate for the name, as Boulder decides it.
func (g *Guide) checkValidation(ctx context.Context, p Plan, gr *ground) Finding {
	f := Finding{Kind: ValidationTXT}
	if record, err := p.validationRecord(); err == nil {
		f.Records = []Record{record}
	}
	owner := persist.Owner(p.Domain)
	seen, err := persist.Lookup(ctx, g.DNS, g.Panel, p.Domain)
	switch {
	case fault.KindOf(err) == fault.Unknown:
		return f.undecided("cannot tell what stands at "+owner, err)
	case err != nil:
		f.Status, f.Detail = Wrong, err.Error()
		f.Advice = g.validationAdvice(ctx, p, gr)
		return f
	}
	now := time.Now()
	views := make([]view, len(seen.Views))
	for i, v := range seen.Views {
		views[i] = view{v.Servers, p.judgeValidation(v, owner, now)}
	}
	f = f.with(worst("TXT at "+owner, views))
	f.Source = source(seen.Resolvers, seen.Plain)
	f.failing(seen.Failing)
	if f.Fine() { // else whoever hears of it now does not see for a while that it is mended
		f.hears(persist.Heard(ctx, g.Panel, seen), owner, "TXT")
	}
	f.Notes = append(f.Notes, "of "+Experimental(p.Validation.Draft))
	if !f.Fine() && f.Advice == "" {
		f.Advice = g.validationAdvice(ctx, p, gr)
	}
	return f
}

// judgeValidation is what the records that some servers show come to.
func (p Plan) judgeValidation(seen persist.View, owner string, now time.Time) (f Finding) {
	if seen.Err != nil {
		return f.undecided("cannot tell", seen.Err)
	}
	switch v := p.bestVerdict(seen, now); {
	case v.OK:
		f.Status, f.Detail = OK, fmt.Sprintf("%s lets the account have certificates for %s", owner, p.Name)
		f.Notes = others(v)
		f.Warning = ending(v.Until, now)
	case !slices.ContainsFunc(v.Reasons, func(r persist.Reason) bool { return !r.Foreign }):
		f.Status, f.Detail = Missing, fmt.Sprintf("there is no TXT of %s at %s", p.Validation.Issuers[0], owner)
	case !p.knowsAccount():
		f.Status, f.Detail = Unknown, fmt.Sprintf("cannot tell whether the TXT at %s is for the account", owner)
	default:
		f.Status, f.Detail = Wrong, fmt.Sprintf("no TXT at %s lets the account have certificates for %s: %s", owner, p.Name, why(v))
	}
	return f
}

// bestVerdict evaluates what is seen for each account that may be the one and each name of the CA; the first of both
// counts where none is good.
func (p Plan) bestVerdict(seen persist.View, now time.Time) persist.Verdict {
	v := p.Validation
	accounts := p.CAA.Accounts
	if !p.knowsAccount() {
		accounts = []string{nobodys}
	}
	var first *persist.Verdict
	for _, account := range accounts {
		for _, issuer := range v.Issuers {
			q := persist.Question{Issuer: issuer, Account: v.accountURI(p.Domain, account), Wildcard: p.Wildcard, Now: now, Draft: v.Draft}
			if v.Draft == persist.Draft02 {
				q.Shared = v.accountURI("*", account)
			}
			got := seen.Evaluate(q)
			if got.OK {
				return got
			}
			if first == nil {
				first = &got
			}
		}
	}
	return *first
}

// why tells what is wrong with each record of the CA.
func why(v persist.Verdict) string {
	var parts []string
	for _, r := range v.Reasons {
		if !r.Foreign {
			parts = append(parts, reason(r))
		}
	}
	return strings.Join(parts, "; and of ")
}

func reason(r persist.Reason) string {
	text := fmt.Sprintf("%q: %s", r.Record, r.Wrong)
	if r.Expected != "" {
		text += fmt.Sprintf(" (expected %s, it has %s)", r.Expected, r.Seen)
	}
	return text
}

// others tells of records beside the one that counts that let somebody else have certificates, or seem to.
func others(v persist.Verdict) []string {
	var notes []string
	for _, r := range v.Reasons {
		if !r.Foreign || r.Seen != "" {
			notes = append(notes, "beside it stands "+reason(r))
		}
	}
	return notes
}

// validationAdvice says what to do where no record holds.
func (g *Guide) validationAdvice(ctx context.Context, p Plan, gr *ground) string {
	record, err := p.validationRecord()
	if err != nil {
		return err.Error()
	}
	if to := g.standing(ctx, gr, record.Name, dns.TypeTXT).cname; to != "" {
		return beside(record, to)
	}
	return "add " + record.Line()
}

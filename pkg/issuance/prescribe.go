package issuance

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/certhook/certhook/pkg/caa"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/resolver"
)

// Line is a record for the operator to create.
type Line struct {
	Name  string // canonical
	Type  string // TXT or CAA
	Value string // as a zone file has it
	Note  string // what it is for, with its draft
}

func (l Line) String() string { return l.Name + ". " + l.Type + " " + l.Value }

// newLine takes a record apart that is written as a zone file has it.
func newLine(text, note string) Line {
	name, rest, _ := strings.Cut(text, ". ")
	kind, value, _ := strings.Cut(rest, " ")
	return Line{Name: name, Type: kind, Value: value, Note: note}
}

// Prescription is what one domain needs.
type Prescription struct {
	Domain  string
	Records []Line
	Notes   []string
}

// Prescribe lists the records for names, by domain, for the account in use. DNS is asked which CAA records govern a
// domain today, since what belongs beside them depends on that; where nobody can tell, that is a note.
func (i *Issuer) Prescribe(ctx context.Context, names []string) ([]Prescription, error) {
	a, err := i.Account()
	if err != nil {
		return nil, err
	}
	var c *ca
	if i.Draft == "" {
		c = i.dial(a)
	}
	t, err := i.terms(ctx, c, a)
	if err != nil {
		return nil, err
	}
	return i.prescribe(ctx, t, names)
}

func (i *Issuer) prescribe(ctx context.Context, t terms, names []string) ([]Prescription, error) {
	ctx = resolver.Remember(ctx)
	all := sites(names)
	list, errs := make([]Prescription, len(all)), make([]error, len(all))
	var wg sync.WaitGroup
	for n, s := range all {
		wg.Go(func() { list[n], errs[n] = i.prescribeSite(ctx, t, s) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (i *Issuer) prescribeSite(ctx context.Context, t terms, s site) (Prescription, error) {
	p := Prescription{Domain: s.domain}
	if !t.until.IsZero() && !t.until.After(time.Now()) {
		return p, fault.Errorf(fault.Usage, "PERSIST_UNTIL lies in the past, so that no CA would take a record with it").WithHint("give it a later time, or none")
	}
	line, err := t.record(s.domain, s.wildcard).Line(s.domain)
	if err != nil {
		return p, fault.Errorf(fault.Usage, "the record for %s: %w", s.domain, err)
	}
	lets := "for " + s.domain
	if s.wildcard {
		lets += " and *." + s.domain
	}
	p.Records = append(p.Records, newLine(line, fmt.Sprintf("lets this ACME account have certificates %s; made once (%s)", lets, t.experimental())))
	q := i.shared(t.question(s.domain, false))
	set, err := caa.Lookup(ctx, i.DNS, i.Panel, s.domain)
	if set.CNAME != "" {
		p.Notes = append(p.Notes, "the CAA record is left out: "+q.Advice(set, caa.Evaluate(q, set)))
		return p, nil
	}
	for _, line := range q.Records(set, false) {
		p.Records = append(p.Records, newLine(line, fmt.Sprintf("lets nobody but this ACME account have certificates for %s and all names below (%s)", s.domain, t.experimental())))
	}
	if err != nil {
		p.Notes = append(p.Notes, fmt.Sprintf("which CAA records stand at %s and above it today cannot be told, so that more may be needed beside this one where there is an issuewild: %v", s.domain, oneLine(err)))
	}
	return p, nil
}

// oneLine puts an error of several lines into one: a comment in a zone file has no second.
func oneLine(err error) string { return strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; ") }

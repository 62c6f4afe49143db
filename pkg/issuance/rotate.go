package issuance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/persist"
	"github.com/certhook/certhook/pkg/resolver"
)

// Rotation is how far the change to another account has come.
type Rotation struct {
	From, To string // URIs
	Done     bool   // To is in use now
	Method   string // the draft of the records, and that it is experimental

	Create []Prescription // what is to be there for To, beside the records for From
	Remove []Prescription // what only From needed; none before Done

	Missing []string // what is not seen yet, a text each; none where Done
	unknown bool     // nothing is known to be missing, and not all of it could be looked at
}

// Rotate changes to a new account of our own, in steps that can each be cut short:
//
//  1. The new account is registered and kept beside the old one, which stays in use: orders go on with its records.
//  2. The records for the new one are listed. As long as they are not all seen by every authoritative server, and no
//     CAA record keeps the new account out, Rotate ends with an error of kind Verdict, or of kind Unknown where nobody
//     can tell; to be called again.
//  3. The new account is put into use, at one instant, and what may be removed is listed.
//
// However often it is called, one rotation registers one account. names are domains besides those of the lineages.
// tell is called with what there is to say before the rotation counts as done.
func (i *Issuer) Rotate(ctx context.Context, names []string, tell func(Rotation) error) error {
	start := time.Now()
	ctx, cancel := i.within(ctx, start)
	defer cancel()
	release, err := i.lock(ctx, start.Add(i.Budget/2))
	if err != nil {
		return err
	}
	defer release()
	l, err := i.ledger()
	if err != nil {
		return err
	}
	if names, err = i.namesOfLineages(names); err != nil {
		return err
	}
	if l.Leaving != nil && l.Next == nil {
		// The last one has come to its end, and its last words have not.
		return i.finishRotation(ctx, l, names, tell)
	}
	if i.Choice != "" && i.Choice != Own {
		return fault.Errorf(fault.Usage, "PERSIST_ACCOUNT says %s, and a rotation leads to an account of persist-issue's own", i.Choice).
			WithHint("take PERSIST_ACCOUNT out of the settings: the account that is in use now stays so until the end of the rotation")
	}
	from, err := i.account(l)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return fault.Errorf(fault.Usage, "there is no lineage whose records could be looked at").WithHint("name the domains that have records: persist-issue rotate -d NAME…")
	}
	if l.Next == nil || l.Next.URI == "" {
		if _, err := i.enroll(ctx, l, &l.Next); err != nil {
			return left(err, from, l)
		}
	}
	i.step("registered")
	to, err := l.Next.account(l)
	if err != nil {
		return err
	}
	r, err := i.lookForNext(ctx, from, to, names)
	if err != nil {
		return left(err, from, l)
	}
	if len(r.Missing) > 0 {
		return i.notYet(r, l, tell)
	}
	// The first order for the new account is not to meet a CA that remembers the name without its record.
	if i.settle(ctx, i.Memory, "PROPAGATION_SETTLE", start.Add(i.Budget/2)); ctx.Err() != nil {
		return left(context.Cause(ctx), from, l)
	}
	switched := *l
	switched.Leaving = &leaving{From: from.URI, Names: names}
	switched.Former = append(slices.Clone(l.Former), entry{URI: from.URI}) // of certbot's, who keeps the key
	if l.Current != nil && from.Owner == Own {
		switched.Former[len(l.Former)] = *l.Current
	}
	switched.Current, switched.Next = l.Next, nil
	i.step("about to switch")
	if err := i.save(&switched); err != nil {
		return left(err, from, l)
	}
	i.step("switched")
	return i.finishRotation(ctx, &switched, names, tell)
}

// left says what is in place where a rotation fails before its end.
func left(err error, from Account, l *ledger) error {
	state := "a new account is not registered yet"
	switch {
	case l.Next == nil:
	case l.Next.URI != "":
		state = "the new account " + l.Next.URI + " is registered, and its key kept"
	default:
		state = "the key of a new account is kept, and whether the CA has the account it will be asked first"
	}
	return fault.Errorf(fault.KindOf(err), "%w\nin place: %s is in use as before; %s in %s", err, from.URI, state, l.path).
		WithHint("run again: persist-issue rotate, which goes on from there")
}

// namesOfLineages adds the names of the lineages at the CA, each once.
func (i *Issuer) namesOfLineages(names []string) ([]string, error) {
	lineages, err := i.Lineages()
	if err != nil {
		return nil, err
	}
	names = slices.Clone(names)
	for _, name := range lineages {
		l, err := i.lineage(name)
		if err != nil {
			return nil, err
		}
		if l.Server != i.Server {
			continue
		}
		for _, n := range l.Names {
			if !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
	}
	return names, nil
}

// lookForNext lists the records for the new account, and looks whether all of them stand and nothing forbids it.
func (i *Issuer) lookForNext(ctx context.Context, from, to Account, names []string) (Rotation, error) {
	t, err := i.terms(ctx, i.dial(to), to)
	if err != nil {
		return Rotation{}, err
	}
	r := Rotation{From: from.URI, To: to.URI, Method: t.experimental()}
	if r.Create, err = i.prescribe(ctx, t, names); err != nil {
		return Rotation{}, err
	}
	ctx = resolver.Remember(ctx)
	found := i.look(ctx, t, names)
	texts, errs := make([]string, len(found)), make([]error, len(found))
	var wg sync.WaitGroup
	for n, s := range found {
		wg.Go(func() { texts[n], errs[n] = i.forbidden(ctx, t, s.site) })
	}
	wg.Wait()
	for n, s := range found {
		if s.err != nil {
			errs[n] = s.err
		}
		for _, text := range []string{t.lacks(s), texts[n]} {
			if text != "" {
				r.Missing = append(r.Missing, text)
			}
		}
		if errs[n] != nil && s.err == nil {
			r.Missing = append(r.Missing, fmt.Sprintf("whether a CAA record keeps the new account from %s cannot be told: %s", s.domain, oneLine(errs[n])))
		}
	}
	r.unknown = len(r.Missing) > 0 && !slices.ContainsFunc(found, func(s sighting) bool { return s.err == nil && !s.verdict.OK }) &&
		!slices.ContainsFunc(texts, func(text string) bool { return text != "" })
	return r, nil
}

// notYet ends a call that has not come to the switch.
func (i *Issuer) notYet(r Rotation, l *ledger, tell func(Rotation) error) error {
	if err := tell(r); err != nil {
		return err
	}
	kind := fault.Verdict
	if r.unknown {
		kind = fault.Unknown
	}
	return fault.Errorf(kind, "%s stays in use, since not all records for the new account %s are seen (%s):\n%s\nin place: both accounts, in %s",
		r.From, r.To, r.Method, strings.Join(r.Missing, "\n"), l.path).
		WithHint("create what is printed beside what is there, remove nothing, and run again: persist-issue rotate")
}

// finishRotation says what may be removed, and notes that it has been said.
func (i *Issuer) finishRotation(ctx context.Context, l *ledger, names []string, tell func(Rotation) error) error {
	to, err := i.own(l)
	if err != nil {
		return err
	}
	for _, n := range l.Leaving.Names {
		if !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	r := Rotation{From: l.Leaving.From, To: to.URI, Done: true}
	if err := i.fillIn(ctx, &r, l, to, names); err != nil {
		return fault.Errorf(fault.KindOf(err), "%s is in use now in place of %s, and what may be removed cannot be listed: %w", r.To, r.From, err).
			WithHint("run again: persist-issue rotate, which lists it and changes nothing else")
	}
	if err := tell(r); err != nil {
		return err
	}
	i.step("told")
	l.Leaving = nil
	return i.save(l)
}

// fillIn lists the records of both accounts.
func (i *Issuer) fillIn(ctx context.Context, r *Rotation, l *ledger, to Account, names []string) error {
	t, err := i.terms(ctx, i.dial(to), to)
	if err != nil {
		return err
	}
	r.Method = t.experimental()
	old := t
	old.account = Account{URI: r.From}
	if t.Draft == persist.Draft02 {
		// What the old record says takes the old key.
		if old.account, err = i.former(l, r.From); err != nil {
			return err
		}
	}
	list, err := i.prescribe(ctx, old, names)
	if err != nil {
		return err
	}
	for n, p := range list {
		p.Notes = nil
		if i.certbotRenews(p.Domain, r.From) {
			p.Records = slices.DeleteFunc(p.Records, func(line Line) bool { return line.Type == "CAA" })
			p.Notes = []string{fmt.Sprintf("the CAA record for %s stays: certbot renews %s by that account", r.From, p.Domain)}
		}
		for k := range p.Records {
			p.Records[k].Note = fmt.Sprintf("of the account %s, which persist-issue does not use any more: remove it unless somebody else does (%s)", r.From, r.Method)
		}
		list[n] = p
	}
	r.Remove = list
	return nil
}

// former returns an account that was in use before, of ours or certbot's.
func (i *Issuer) former(l *ledger, uri string) (Account, error) {
	for _, e := range l.Former {
		if e.URI == uri && e.Key != "" {
			return e.account(l)
		}
	}
	a, err := i.certbots(uri)
	if err != nil {
		return a, errors.Join(fmt.Errorf("the key of the account %s is not there any more", uri), err)
	}
	return a, nil
}

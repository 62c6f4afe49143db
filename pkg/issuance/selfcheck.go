package issuance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/certhook/certhook/pkg/caa"
	"github.com/certhook/certhook/pkg/persist"
	"github.com/certhook/certhook/pkg/resolver"
)

// sighting is what a look found at one domain.
type sighting struct {
	site
	seen    persist.Seen
	verdict persist.Verdict
	err     error // nobody could tell
}

// selfCheck looks whether the records stand, and waits for those that do not: for Patience, and not beyond the
// deadline, which leaves the CA the other half of the order's time. It only advises: what it misses it names, with what
// was expected and what is there, and the CA decides.
func (i *Issuer) selfCheck(ctx context.Context, t terms, names []string, deadline time.Time) []sighting {
	if i.Patience < 0 {
		i.settle(ctx, i.Settle, "PROPAGATION_WAIT", deadline)
		return nil
	}
	var found []sighting
	missing := func(ctx context.Context) int {
		found = latest(found, i.look(ctx, t, names))
		n := 0
		for _, s := range found {
			if !s.verdict.OK {
				n++
			}
		}
		return n
	}
	forbidden, cancel := i.lookForbidden(ctx, t, names, deadline)
	defer cancel()
	i.waitFor(ctx, deadline, missing)
	if ctx.Err() != nil {
		return found // nobody waits for advice any more
	}
	for _, s := range found {
		if text := t.lacks(s); text != "" {
			i.Log.Warn(text)
		}
	}
	for _, text := range forbidden() {
		i.Log.Warn(text)
	}
	return found
}

// latest is what is known after another look: what that could not tell, the one before may have.
func latest(before, now []sighting) []sighting {
	for n := range before {
		if now[n].err != nil && before[n].err == nil {
			now[n] = before[n]
		}
	}
	return now
}

// waitFor looks until nothing is missing any more, and says when it cannot wait for as long as it is set to.
func (i *Issuer) waitFor(ctx context.Context, deadline time.Time, missing func(context.Context) int) {
	looking, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	looks, until := 0, time.Now().Add(i.Patience)
	stands := await(looking, earlier(until, deadline), func(ctx context.Context) bool {
		n := missing(ctx)
		if looks++; n > 0 && looks == 1 && until.Sub(deadline) > time.Second {
			i.Log.Warn(fmt.Sprintf("the wait for %s is lowered from %v (PROPAGATION_TIMEOUT) to %v: half of the order's %v (PERSIST_BUDGET) is the CA's",
				records(n), i.Patience, max(0, time.Until(deadline)).Round(time.Second), i.Budget))
		}
		return n == 0
	})
	if stands && looks > 1 {
		i.settle(ctx, i.Settle, "PROPAGATION_WAIT", deadline)
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// settle waits for d, which a setting asks for, as far as there is time before the deadline.
func (i *Issuer) settle(ctx context.Context, d time.Duration, setting string, deadline time.Time) {
	if left := max(0, time.Until(deadline)); d > left {
		i.Log.Warn(fmt.Sprintf("the further wait of %v (%s) is lowered to %v: half of the order's %v (PERSIST_BUDGET) is the CA's",
			d, setting, left.Round(time.Second), i.Budget))
		d = left
	}
	sleep(ctx, d)
}

func records(n int) string {
	if n == 1 {
		return "a record that is not seen"
	}
	return fmt.Sprintf("%d records that are not seen", n)
}

// look asks once about every domain of the names, all at once.
func (i *Issuer) look(ctx context.Context, t terms, names []string) []sighting {
	ctx = resolver.Remember(ctx)
	var found []sighting
	for _, s := range sites(names) {
		found = append(found, sighting{site: s})
	}
	var wg sync.WaitGroup
	for n := range found {
		wg.Go(func() {
			s := &found[n]
			if s.seen, s.err = persist.Lookup(ctx, i.DNS, i.Panel, s.domain); s.err == nil {
				s.verdict = t.judge(s.seen, s.domain, s.wildcard, time.Now())
			}
		})
	}
	wg.Wait()
	return found
}

// lacks says in one text what a domain lacks, "" if nothing.
func (t terms) lacks(s sighting) string {
	if s.verdict.OK {
		return ""
	}
	line, err := t.record(s.domain, s.wildcard).Line(s.domain)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	if s.err != nil {
		fmt.Fprintf(&b, "whether the record for %s stands cannot be told: %s", s.domain, oneLine(s.err))
	} else {
		fmt.Fprintf(&b, "the record for %s is not seen", strings.Join(s.names, " and "))
	}
	fmt.Fprintf(&b, " (%s)\nexpected: %s", t.experimental(), line)
	if s.err == nil {
		b.WriteString("\n" + t.sees(s))
	}
	return b.String()
}

// endBefore tells of the records that end before a certificate does, so that its renewal would find none.
func (t terms) endBefore(found []sighting, notAfter time.Time) []string {
	var texts []string
	for _, s := range found {
		if end := s.verdict.Until; s.verdict.OK && !end.IsZero() && end.Before(notAfter) {
			texts = append(texts, fmt.Sprintf("the record for %s ends on %s (persistUntil, %s), before the certificate does: put one with a later end beside it, or renewals will be refused",
				strings.Join(s.names, " and "), end.UTC().Format("2006-01-02 15:04 UTC"), t.experimental()))
		}
	}
	return texts
}

// sees says what stands where a record is expected, and what is wrong with that.
func (t terms) sees(s sighting) string {
	var lines []string
	for _, r := range s.verdict.Reasons {
		text := fmt.Sprintf("seen: %s. TXT %q: %s", s.seen.Owner, clean(r.Record), r.Wrong)
		if r.Expected != "" {
			text += fmt.Sprintf(" (expected %s, seen %s)", clean(r.Expected), clean(r.Seen))
		}
		lines = append(lines, text)
	}
	if len(lines) == 0 {
		lines = append(lines, "seen: no TXT at "+s.seen.Owner)
	}
	for _, l := range s.seen.Lagging(t.asked(t.issuers[0], s.domain, s.wildcard, time.Now())) {
		lines = append(lines, "others show it, but "+l.Server+" "+l.Says)
	}
	return strings.Join(lines, "\n")
}

// lookForbidden looks meanwhile for CAA records that keep the CA from issuing. The function that it returns waits for
// what was found.
func (i *Issuer) lookForbidden(ctx context.Context, t terms, names []string, deadline time.Time) (func() []string, context.CancelFunc) {
	ctx, cancel := context.WithDeadline(resolver.Remember(ctx), deadline)
	all := sites(names)
	texts := make([]string, len(all))
	var wg sync.WaitGroup
	for n, s := range all {
		wg.Go(func() { texts[n], _ = i.forbidden(ctx, t, s) })
	}
	return func() []string {
		wg.Wait()
		return slices.DeleteFunc(texts, func(text string) bool { return text == "" })
	}, cancel
}

// forbidden says which CAA record keeps the CA from issuing, by authoritative proof, "" if none does. The error says why
// that cannot be told.
func (i *Issuer) forbidden(ctx context.Context, t terms, s site) (string, error) {
	set, err := caa.Lookup(ctx, i.DNS, i.Panel, s.domain)
	if err != nil {
		return "", err
	}
	if !set.Proven {
		return "", fmt.Errorf("no authoritative server tells which CAA records govern %s", s.domain)
	}
	for _, name := range s.names {
		q := t.question(s.domain, strings.HasPrefix(name, "*."))
		if r := caa.Evaluate(q, set); !r.Allowed {
			return fmt.Sprintf("a CAA record keeps the CA from issuing for %s by %s: %s\nmend it: %s", name, Method, r.Fault, q.Advice(set, r)), nil
		}
	}
	return "", nil
}

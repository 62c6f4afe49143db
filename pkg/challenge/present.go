package challenge

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/certhook/certhook/pkg/authority"
	"github.com/certhook/certhook/pkg/certbot"
	"github.com/certhook/certhook/pkg/delegation"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/journal"
	"github.com/certhook/certhook/pkg/propagation"
	"github.com/certhook/certhook/pkg/provider"
	"github.com/certhook/certhook/pkg/resolver"
)

// Present handles one auth-hook call. The text says in one line what was done; it is for certbot's
// output and holds no secret. Several errors come joined, the call's own first; they are *[Aborted] where
// certbot is to be stopped.
func (h *Hooks) Present(ctx context.Context, c certbot.Challenge, by Caller) (string, error) {
	if by.gone {
		return "", fault.Errorf(fault.Other, "nothing was written: %w", errGone)
	}
	target, refusal := h.Targets.Target(c.Domain)
	if !together(c, by) {
		if refusal != nil {
			return "", h.abort(ctx, nil, refusal)
		}
		c.Size, c.Remaining = 1, 0
	}
	id := fileID(c, by, target.Record)
	f, err := h.lock(ctx, by, id)
	if err != nil {
		return "", h.abortLast(ctx, c, nil, err)
	}
	defer f.Close()
	unlocked := ""
	if refusal == nil && !checkedBefore(f, c) {
		unlocked, refusal = h.preflight(ctx, c, target)
	}
	api, cancel := h.withProviderTime(ctx)
	defer cancel()
	if err := h.file(api, f, c, target, refusal); err != nil {
		return "", h.abortLast(ctx, c, f, err)
	}
	h.warnUnlocked(f, c, unlocked)
	if !c.Last() {
		if refusal != nil {
			return "", refusal
		}
		return fmt.Sprintf("%s: checked; to be written with the last of the %d names", c.Domain, c.Size), nil
	}
	return h.finish(ctx, api, f, id, by, refusal)
}

// finish is the rest of an order's last call: it writes, waits and sweeps. api bounds the calls to the
// provider.
func (h *Hooks) finish(ctx, api context.Context, f *journal.File, id journal.ID, by Caller, refusal error) (string, error) {
	if h.AbortOnFailure && (refusal != nil || refusedBefore(f)) {
		if refusal == nil {
			refusal = fault.Errorf(fault.Other, "another name of the order was refused")
		}
		return "", h.abort(ctx, f, refusal)
	}
	groups, err := h.write(api, f, by)
	if err = errors.Join(refusal, err); err != nil && h.AbortOnFailure {
		return "", h.abort(ctx, f, err)
	}
	f.Close() // before the wait, which a cleanup must not have to sit out
	var waited string
	if len(groups) > 0 {
		watched, cancel := h.whileWaited(ctx, by)
		defer cancel()
		var waitErr error
		if waited, waitErr = h.wait(watched, groups); waitErr == nil {
			waitErr = h.settle(watched, groups, id)
		}
		if h.waits(by) != nil { // which may have escaped the wait when that was short
			waitErr = h.orphaned(ctx, id, by)
		}
		err = errors.Join(err, waitErr)
	}
	h.Sweep(ctx, id)
	return waited, err
}

// orphaned removes what the order wrote, for certbot, which would have asked for it, is gone.
func (h *Hooks) orphaned(ctx context.Context, id journal.ID, by Caller) error {
	ctx, cancel := h.withProviderTime(ctx)
	defer cancel()
	f, err := h.lock(ctx, by, id)
	if err != nil {
		return errors.Join(errGone, err)
	}
	defer f.Close()
	text, err := h.end(ctx, f)
	if err != nil {
		return errors.Join(errGone, err)
	}
	return fault.Errorf(fault.Other, "%w: %s", errGone, text)
}

// together reports whether the call is one of an order that is written as a whole.
func together(c certbot.Challenge, by Caller) bool { return by.Known && c.Counted }

func fileID(c certbot.Challenge, by Caller, record string) journal.ID {
	if together(c, by) {
		return journal.RunID(by.Run)
	}
	return journal.ValueID(record, c.Validation)
}

// checkedBefore reports whether an earlier call of the order was about the same domain, as with a name
// and its wildcard, and passed.
func checkedBefore(f *journal.File, c certbot.Challenge) bool {
	if c.First() {
		return false
	}
	for _, e := range f.Current() {
		if e.Domain == c.Domain && e.State == journal.Planned {
			return true
		}
	}
	return false
}

// preflight asks the authoritative servers whether the CA will be led to the record, and whether it may
// issue at all. Only their proof that it will not stops the work; a check that could not be made must never
// stop an issuance that would have worked. unlocked is that of checkCAA.
func (h *Hooks) preflight(ctx context.Context, c certbot.Challenge, t delegation.Target) (unlocked string, err error) {
	h.step(Step{Name: StepTarget, Domain: t.Domain, Record: t.Record, Detail: "the TXT belongs at " + t.Record})
	ctx, cancel := context.WithTimeout(resolver.Remember(ctx), preflightTimeout)
	defer cancel()
	records := h.lookUpCAA(ctx, t.Domain)
	began := time.Now()
	verdict := delegation.Check(ctx, h.DNS, h.Panel, t)
	h.step(Step{
		Name: StepCNAME, Domain: t.Domain, Record: t.Record, Detail: verdict.Reason, Took: time.Since(began),
		Err: verdict.Err(), Warn: verdict.Status != delegation.OK && verdict.Err() == nil,
	})
	unlocked, err = h.checkCAA(c, records())
	return unlocked, errors.Join(verdict.Err(), err)
}

// file enters the call in the journal. The first call of an order removes what an earlier order of the
// same run left; a later one is refused unless every call before it is on record, since a hook that
// outlives its certbot must not write after the cleanup.
func (h *Hooks) file(ctx context.Context, f *journal.File, c certbot.Challenge, t delegation.Target, refusal error) error {
	if c.First() {
		f.Begin(c.Size, h.Settle)
		if left := f.Earlier(); len(left) > 0 {
			if _, err := h.remove(ctx, left); err != nil {
				h.Log.Warn("records of an earlier order are left, to be removed later", "error", err)
			}
		}
	} else if f.Ended || f.Size != c.Size || !f.Complete(c.Call()) {
		return fault.Errorf(fault.Other, "an earlier call of this order is not on record, or the order was cleaned up already: nothing was written").
			WithHint("run certbot again; if this returns, see the log for the call that failed. A wrapper that sends only some of the names here must unset CERTBOT_REMAINING_CHALLENGES")
	}
	e := journal.Entry{
		Call: c.Call(), Domain: c.Domain, Name: t.Record, Value: c.Validation, Alias: t.Alias, Provider: h.ProviderName,
	}
	e.Set(journal.Planned)
	if refusal != nil {
		e.Set(journal.Refused)
	}
	f.Put(e)
	return f.Save()
}

// write adds every planned value of the order, in parallel, and returns those that the provider
// confirmed, by zone. What failed stays in the journal as possibly there.
func (h *Hooks) write(ctx context.Context, f *journal.File, by Caller) ([]propagation.Group, error) {
	var entries []*journal.Entry
	var targets []delegation.Target
	for _, e := range f.Current() {
		if e.State == journal.Planned {
			entries = append(entries, e)
			targets = append(targets, targetOf(e))
		}
	}
	if len(entries) == 0 {
		return nil, nil
	}
	places := h.locate(ctx, targets)
	errs := make([]error, len(entries))
	for i, e := range entries {
		if errs[i] = places[i].err; errs[i] == nil {
			e.Zone = places[i].zone
			e.Set(journal.Writing)
		} else {
			e.Set(journal.Refused)
		}
	}
	if err := f.Save(); err != nil {
		return nil, err
	}
	if err := h.waits(by); err != nil {
		for _, e := range entries {
			e.Zone = provider.Zone{}
			e.Set(journal.Refused)
		}
		return nil, errors.Join(fault.Errorf(fault.Other, "nothing was written: %w", err), f.Save())
	}
	each(entries, func(i int, e *journal.Entry) {
		if errs[i] != nil {
			return
		}
		began := time.Now()
		errs[i] = h.Provider.Add(ctx, e.Zone, provider.TXT{Name: e.Name, Value: e.Value, TTL: h.TTL})
		if errs[i] == nil {
			e.Set(journal.Written)
		}
		h.step(Step{Name: StepWrite, Domain: e.Domain, Record: e.Name, Detail: "TXT added in zone " + e.Zone.Name, Took: time.Since(began), Err: errs[i]})
	})
	return grouped(entries, places), errors.Join(append(errs, f.Save())...)
}

// grouped sorts the written values by the zone whose servers have to show them.
func grouped(entries []*journal.Entry, places []place) []propagation.Group {
	var groups []propagation.Group
	index := make(map[string]int)
	for i, e := range entries {
		if e.State != journal.Written {
			continue
		}
		zone := places[i].dns
		if zone.Name == "" { // DNS could not be asked: the wait has to do without its servers
			zone = authority.Zone{Name: places[i].zone.Name}
		}
		at, ok := index[zone.Name]
		if !ok {
			at = len(groups)
			index[zone.Name] = at
			groups = append(groups, propagation.Group{Zone: zone})
		}
		groups[at].Values = append(groups[at].Values, propagation.Value{Name: e.Name, Value: e.Value})
	}
	return groups
}

// wait returns when every value can be seen, and says in one line where.
func (h *Hooks) wait(ctx context.Context, groups []propagation.Group) (string, error) {
	began := time.Now()
	opts := h.Propagation
	opts.Observe = func(e propagation.Event) {
		h.step(Step{Name: StepVisible, Record: e.Value.Name, Detail: fmt.Sprintf("%s (%s) shows it", e.Server, e.Addr), Took: e.Elapsed})
	}
	report, err := propagation.Wait(ctx, h.DNS, groups, opts)
	for _, w := range report.Warnings {
		h.Log.Warn(w)
	}
	n := 0
	for _, g := range groups {
		n += len(g.Values)
	}
	text := fmt.Sprintf("%s added; %s", plural(n, "value"), report.Summary())
	h.step(Step{Name: StepWait, Detail: text, Took: time.Since(began), Err: err})
	return text, err
}

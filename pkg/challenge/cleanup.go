package challenge

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/certhook/certhook/pkg/certbot"
	"github.com/certhook/certhook/pkg/delegation"
	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/journal"
	"github.com/certhook/certhook/pkg/provider"
)

// CleanUp handles one cleanup-hook call: it removes every value of the run, so that the calls after the
// first find nothing left to do. A value that is on no record is removed by its name and content alone.
// An error means that at least one value was not removed; it stays in the journal for the next hook run.
func (h *Hooks) CleanUp(ctx context.Context, c certbot.Challenge, by Caller) (string, error) {
	api, cancel := h.withProviderTime(ctx)
	defer cancel()
	var ids []journal.ID
	defer func() { h.Sweep(ctx, ids...) }()
	if together(c, by) {
		id := journal.RunID(by.Run)
		ids = append(ids, id)
		if text, done, err := h.endOrder(api, id, c, by); done || err != nil {
			return text, err
		}
	}
	target, err := h.Targets.Target(c.Domain)
	if err != nil {
		return "", err
	}
	id := journal.ValueID(target.Record, c.Validation)
	ids = append(ids, id)
	return h.endValue(api, id, c, by, target)
}

// endOrder ends the run's current order. done is false when the call is on no record of it.
func (h *Hooks) endOrder(ctx context.Context, id journal.ID, c certbot.Challenge, by Caller) (text string, done bool, err error) {
	f, err := h.lock(ctx, by, id)
	if err != nil {
		return "", false, fmt.Errorf("not removed: the TXT of %s: %w", c.Domain, err)
	}
	defer f.Close()
	entry := f.Find(c.Domain, c.Validation)
	if entry == nil && len(f.Live()) == 0 {
		return "", false, nil
	}
	unfinished := entry != nil && entry.State == journal.Planned
	if f.Ended {
		text, err = h.again(ctx, f, entry)
	} else {
		text, err = h.end(ctx, f)
	}
	switch {
	case err != nil:
		return "", true, err
	case entry == nil:
		return "", false, nil
	case text != "":
	case unfinished:
		text = fmt.Sprintf("%s: nothing was written for it, since the last call of its order never came", c.Domain)
	case entry.State == journal.Refused:
		text = fmt.Sprintf("%s: nothing was written for it", c.Domain)
	default:
		text = fmt.Sprintf("%s: nothing left to do", c.Domain)
	}
	return text, true, nil
}

// again is a later cleanup call of an order whose first one failed: it tries its own value once more, and
// not for long, since certbot makes one such call a name. The sweep of later hook runs does the rest.
func (h *Hooks) again(ctx context.Context, f *journal.File, entry *journal.Entry) (string, error) {
	if entry == nil || !entry.Live() {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	text, err := h.remove(ctx, []*journal.Entry{entry})
	return text, errors.Join(err, f.Save())
}

// end closes the current order for good and removes every value of the run that may exist. text is empty
// when there was none.
func (h *Hooks) end(ctx context.Context, f *journal.File) (text string, err error) {
	f.Ended = true
	for _, e := range f.Current() {
		if e.State == journal.Planned {
			e.Set(journal.Removed)
		}
	}
	if live := f.Live(); len(live) > 0 {
		text, err = h.remove(ctx, live)
	}
	return text, errors.Join(err, f.Save())
}

// endValue removes one value that belongs to no order that we know of. It goes into the journal first,
// so that a removal that fails is tried again.
func (h *Hooks) endValue(ctx context.Context, id journal.ID, c certbot.Challenge, by Caller, target delegation.Target) (string, error) {
	f, err := h.lock(ctx, by, id)
	if err != nil {
		return "", fmt.Errorf("not removed: the TXT of %s: %w", c.Domain, err)
	}
	defer f.Close()
	f.Ended = true
	if len(f.Live()) == 0 {
		e := journal.Entry{Domain: c.Domain, Name: target.Record, Value: c.Validation, Alias: target.Alias, Provider: h.ProviderName}
		e.Set(journal.Writing)
		f.Put(e)
	}
	_ = f.Save() // a disk that is full must not keep the value in DNS; a removal that fails says so below
	text, err := h.remove(ctx, f.Live())
	if err != nil {
		return "", errors.Join(err, f.Save())
	}
	return text, h.retire(f)
}

// remove takes the entries' values away, in parallel, and marks those that are gone. Each is checked
// against today's settings first: the journal alone is no licence to delete.
func (h *Hooks) remove(ctx context.Context, entries []*journal.Entry) (string, error) {
	zones, errs := h.zonesOf(ctx, entries)
	var count removals
	each(entries, func(i int, e *journal.Entry) {
		began := time.Now()
		gone := false
		if errs[i] == nil {
			gone, errs[i] = h.removeFrom(ctx, zones[i], provider.TXT{Name: e.Name, Value: e.Value})
		}
		s := Step{Name: StepRemove, Domain: e.Domain, Record: e.Name, Took: time.Since(began)}
		switch {
		case errs[i] != nil:
			errs[i] = notRemoved(e, errs[i])
			s.Err = errs[i]
		case gone:
			count.removed.Add(1)
			e.Set(journal.Removed)
			s.Detail = "TXT removed from zone " + zones[i].Name
		case e.State == journal.Writing && e.Sent() && time.Since(e.Time).Abs() < lateRequest:
			count.late.Add(1)
			e.Set(journal.Absent)
			s.Detail = "not there, but the request to add it got no answer and may still take effect: looked for again later"
		default:
			count.absent.Add(1)
			e.Set(journal.Removed)
			s.Detail = "already absent from zone " + zones[i].Name
		}
		h.step(s)
	})
	return count.String(), errors.Join(errs...)
}

// removeFrom removes one value. The journal may have kept a wrong ID of the zone, such as a mistyped one that the
// settings named; where the provider refuses it, the one that counts today is tried as well.
func (h *Hooks) removeFrom(ctx context.Context, zone provider.Zone, rec provider.TXT) (bool, error) {
	removed, err := h.Provider.Remove(ctx, zone, rec)
	if errors.Is(err, provider.ErrZoneID) {
		if today, lookErr := h.zoneAt(ctx, zone.Name); lookErr == nil && today != zone {
			return h.Provider.Remove(ctx, today, rec)
		}
	}
	return removed, err
}

// zonesOf returns the zone of every entry that may be removed: the one that the journal names, or the
// one that is found now.
func (h *Hooks) zonesOf(ctx context.Context, entries []*journal.Entry) ([]provider.Zone, []error) {
	zones := make([]provider.Zone, len(entries))
	errs := make([]error, len(entries))
	var lost []int
	var targets []delegation.Target
	for i, e := range entries {
		if errs[i] = h.mayRemove(e); errs[i] != nil {
			continue
		}
		if zones[i] = e.Zone; e.Zone.Name == "" {
			lost = append(lost, i)
			targets = append(targets, targetOf(e))
		}
	}
	if len(lost) > 0 {
		for k, p := range h.locate(ctx, targets) {
			zones[lost[k]], errs[lost[k]] = p.zone, p.err
		}
	}
	return zones, errs
}

// mayRemove refuses an entry that is not ours to remove today, whoever wrote it into the journal.
func (h *Hooks) mayRemove(e *journal.Entry) error {
	refuse := func(format string, args ...any) error {
		return fault.Errorf(fault.Usage, format, args...).
			WithHint("if the record still exists, remove it by hand")
	}
	switch {
	case e.Provider != h.ProviderName:
		return refuse("it was written through %q, the settings name %q", e.Provider, h.ProviderName)
	case !certbot.IsValidation(e.Value):
		return refuse("its content is not a dns-01 value")
	case e.Zone.Name != "" && !dnsname.Within(e.Name, e.Zone.Name):
		return refuse("it does not lie in the zone %q that the journal names", e.Zone.Name)
	case len(h.Targets.Aliases) == 0 && e.Name != dnsname.Challenge(e.Domain):
		return refuse("it is not the challenge name of %q, and no alias zone is configured", e.Domain)
	}
	for _, alias := range h.Targets.Aliases {
		if dnsname.Below(e.Name, alias) {
			return nil
		}
	}
	if len(h.Targets.Aliases) > 0 {
		return refuse("it lies in no alias zone that is configured today")
	}
	return nil
}

func notRemoved(e *journal.Entry, err error) error {
	kind := fault.KindOf(err)
	if kind == fault.Other {
		kind = fault.Provider
	}
	told := fault.Errorf(kind, "not removed: the TXT of %s at %q: %w", e.Domain, e.Name, err)
	if fault.HintOf(err) == "" {
		return told.WithHint("the next run of either hook tries again; cleanup-hook --sweep does so now")
	}
	return told
}

// removals counts how removals ended.
type removals struct{ removed, absent, late atomic.Int32 }

// String is empty when there was none.
func (r *removals) String() string {
	var parts []string
	for _, p := range []struct {
		n    int32
		what string
	}{{r.removed.Load(), "removed"}, {r.absent.Load(), "already absent"}, {r.late.Load(), "not there (yet), looked for again later"}} {
		if p.n > 0 {
			parts = append(parts, plural(int(p.n), "value")+" "+p.what)
		}
	}
	return strings.Join(parts, "; ")
}

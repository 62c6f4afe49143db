package challenge

import (
	"context"
	"time"

	"github.com/certhook/certhook/pkg/journal"
	"github.com/certhook/certhook/pkg/propagation"
)

// settle waits until no run but this order has changed any of the names for h.Settle. A CA that looked at
// a name for another order may remember what it saw until then, and would not see today's value.
func (h *Hooks) settle(ctx context.Context, groups []propagation.Group, own journal.ID) error {
	began := time.Now()
	names := make(map[string]bool)
	for _, g := range groups {
		for _, v := range g.Values {
			names[v.Name] = true
		}
	}
	last := h.lastChange(names, own)
	left := time.Until(last.Add(h.Settle))
	if last.IsZero() || left <= 0 {
		return nil
	}
	h.Log.Info("waiting, since another run changed the same name a moment ago", "for", left.Round(time.Second))
	select {
	case <-time.After(left):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	h.step(Step{Name: StepSettle, Detail: "another run changed the same name; what a CA remembers of it is over", Took: time.Since(began)})
	return nil
}

// lastChange returns when a run other than the current order last changed one of the names; zero if none
// did within h.Settle. A file that cannot be read tells nothing.
func (h *Hooks) lastChange(names map[string]bool, own journal.ID) time.Time {
	var last time.Time
	ids, err := h.Journal.IDs()
	if err != nil {
		return last
	}
	for _, id := range ids {
		record, err := h.Journal.Peek(id)
		if err != nil {
			continue // Sweep warns of it
		}
		for _, e := range record.Entries {
			current := id == own && e.Order == record.Order
			if names[e.Name] && !current && e.SentWithin(h.Settle) && e.Time.After(last) {
				last = e.Time
			}
		}
	}
	return last
}

// retire deletes a file that has nothing left to do, or keeps it while it has to tell settle of a change or
// a value has to be looked for again.
func (h *Hooks) retire(f *journal.File) error {
	for _, e := range f.Entries {
		if e.State == journal.Absent || e.SentWithin(h.Settle) {
			return f.Save()
		}
	}
	return f.Delete()
}

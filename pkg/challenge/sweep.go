package challenge

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/certhook/certhook/pkg/certbot"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/journal"
)

// Sweep removes what this host's runs of certbot left that have ended or died, and what runs that cannot
// be traced left more than an hour ago. It takes a few seconds at most; what it cannot do stays for the
// next time and is only warned of. The files in except are the caller's own business.
func (h *Hooks) Sweep(ctx context.Context, except ...journal.ID) {
	ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	ids, err := h.Journal.IDs()
	if err != nil {
		h.Log.Warn("the journal was not swept", "error", err)
		return
	}
	// One that hangs must not starve the same others every time.
	rand.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	for _, id := range ids {
		if ctx.Err() != nil {
			return
		}
		if slices.Contains(except, id) {
			continue
		}
		if err := h.sweep(ctx, id); err != nil && !errors.Is(err, journal.ErrBusy) {
			h.Log.Warn("a record of an earlier run is left", "error", err, "hint", fault.HintOf(err))
		}
	}
}

func (h *Hooks) sweep(ctx context.Context, id journal.ID) error {
	ctx, cancel := context.WithTimeout(ctx, sweepShare)
	defer cancel()
	f, err := h.Journal.TryLock(id)
	if err != nil {
		return err
	}
	defer f.Close()
	abandoned, live := h.abandoned(f), f.Due(lateRequest)
	if !abandoned && !f.Ended {
		return nil
	}
	if len(live) > 0 {
		if _, err := h.remove(ctx, live); err != nil {
			return errors.Join(err, f.Save())
		}
	}
	if abandoned || id.Single() {
		return h.retire(f)
	}
	if len(live) > 0 {
		return f.Save() // it still tells the later cleanup calls of its run that nothing is left to do
	}
	return nil
}

// abandoned reports whether no hook of the run will come any more.
func (h *Hooks) abandoned(f *journal.File) bool {
	switch h.Processes.Life(f.Run) {
	case certbot.Alive:
		return false
	case certbot.Dead:
		return true
	}
	for _, e := range f.Entries {
		// A clock that was set back must not keep a record for ever.
		if time.Since(e.Time).Abs() < unknownRunAge {
			return false
		}
	}
	return true
}

package challenge

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/certhook/certhook/pkg/certbot"
	"github.com/certhook/certhook/pkg/journal"
)

// Item is one record that may exist at the provider, or will be written.
type Item struct {
	Domain   string        `json:"domain"`
	Record   string        `json:"record"`
	Value    string        `json:"value"`
	Provider string        `json:"provider"`
	Zone     string        `json:"zone,omitempty"`
	State    journal.State `json:"state"`
	Since    time.Time     `json:"since"`
	PID      int           `json:"pid,omitempty"` // of certbot
	Run      string        `json:"run"`           // running, ended, dead or unknown
}

// List returns what the journal holds, the oldest first. A file that cannot be read is an error beside the
// others' items.
func (h *Hooks) List() ([]Item, error) {
	ids, err := h.Journal.IDs()
	if err != nil {
		return nil, err
	}
	items := []Item{}
	var errs []error
	for _, id := range ids {
		record, err := h.Journal.Peek(id)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, e := range record.Entries {
			if e.State == journal.Removed || e.State == journal.Refused {
				continue
			}
			items = append(items, Item{
				Domain: e.Domain, Record: e.Name, Value: e.Value, Provider: e.Provider, Zone: e.Zone.Name,
				State: e.State, Since: e.Time, PID: record.Run.PID, Run: h.runState(record),
			})
		}
	}
	slices.SortFunc(items, func(a, b Item) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Record, b.Record)) })
	return items, errors.Join(errs...)
}

func (h *Hooks) runState(r journal.Record) string {
	life := h.Processes.Life(r.Run)
	switch {
	case life == certbot.Dead:
		return "dead"
	case r.Ended:
		return "ended"
	case life == certbot.Alive:
		return "running"
	}
	return "unknown"
}

// SweepNow removes what ended and dead runs have left, whatever its age, and what runs left that cannot be
// traced if it is older than an hour. It is for an operator who asks for it.
func (h *Hooks) SweepNow(ctx context.Context) (string, error) {
	ctx, cancel := h.withProviderTime(ctx)
	defer cancel()
	ids, err := h.Journal.IDs()
	if err != nil {
		return "", err
	}
	running := 0
	var done []string
	var errs []error
	for _, id := range ids {
		f, err := h.Journal.TryLock(id)
		if errors.Is(err, journal.ErrBusy) {
			running++
			continue
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		live := f.Due(lateRequest)
		switch state := h.runState(f.Record); {
		case state == "running", state == "unknown" && !h.abandoned(f):
			running += min(1, len(live))
		case len(live) == 0 && state == "dead":
			errs = append(errs, h.retire(f))
		case len(live) > 0:
			text, err := h.remove(ctx, live)
			if err == nil {
				done = append(done, text)
				err = h.retire(f)
			} else {
				err = errors.Join(err, f.Save())
			}
			errs = append(errs, err)
		}
		f.Close()
	}
	if running > 0 {
		done = append(done, plural(running, "run")+" at work, left alone")
	}
	err = errors.Join(errs...)
	if len(done) == 0 && err == nil {
		done = []string{"nothing to sweep"}
	}
	return strings.Join(done, "; "), err
}

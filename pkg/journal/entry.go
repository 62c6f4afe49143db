package journal

import (
	"time"

	"github.com/certhook/certhook/pkg/certbot"
	"github.com/certhook/certhook/pkg/provider"
)

// State is how far one challenge record has come.
type State string

const (
	// Planned: nothing was sent to the provider yet.
	Planned State = "planned"
	// Refused: the call failed before anything was sent, and nothing will be.
	Refused State = "refused"
	// Writing: it was or is about to be sent; it may or may not exist.
	Writing State = "writing"
	// Written: the provider confirmed it.
	Written State = "written"
	// Absent: it was sent, no answer came, and it was not there when it was looked for. The request may still
	// be on its way, so it is looked for once more.
	Absent State = "absent"
	// Removed: it does not exist, and nothing is left to do.
	Removed State = "removed"
)

var states = []State{Planned, Refused, Writing, Written, Absent, Removed}

// Entry is one hook call of an order and the record that it stands for.
type Entry struct {
	Order    int           `json:"order"` // which order of the run: 1, 2, … (one for each lineage of a renew)
	Call     int           `json:"call"`  // which call of the order, from 0
	Domain   string        `json:"domain"`
	Name     string        `json:"name"`
	Value    string        `json:"value"`
	Alias    string        `json:"alias,omitempty"` // the alias zone; empty without delegation
	Provider string        `json:"provider"`
	Zone     provider.Zone `json:"zone"` // empty until the zone was found
	State    State         `json:"state"`
	Time     time.Time     `json:"time"` // when the state changed
}

// Live reports whether the record may exist at the provider.
func (e *Entry) Live() bool { return e.State == Writing || e.State == Written }

// Sent reports whether the provider was asked to change the record.
func (e *Entry) Sent() bool {
	return e.Zone.Name != "" && (e.Live() || e.State == Absent || e.State == Removed)
}

// Set moves the entry to a state.
func (e *Entry) Set(s State) {
	e.State = s
	e.Time = time.Now().UTC().Truncate(time.Millisecond)
}

// Record is everything on disk about one run of certbot. Entries of an earlier order of the same run
// stay while they are Live, and a while longer to tell when their names were changed.
type Record struct {
	Version int         `json:"version"`
	Run     certbot.Run `json:"run"` // the zero Run where certbot's process could not be told
	Order   int         `json:"order"`
	Size    int         `json:"size"`            // how many calls the current order has
	Ended   bool        `json:"ended,omitempty"` // the current order was cleaned up: nothing may be written any more
	Entries []*Entry    `json:"entries"`

	// Unlocked is what the last call of the current order has to tell of domains that no CAA locks.
	Unlocked []string `json:"unlocked,omitempty"`
}

// Begin starts the next order of the run. Entries of earlier orders are dropped unless they are Live or
// Absent, or were Sent within keep.
func (r *Record) Begin(size int, keep time.Duration) {
	r.Order++
	r.Size = size
	r.Ended = false
	r.Unlocked = nil
	r.Entries = r.pick(func(e *Entry) bool { return e.Live() || e.State == Absent || e.SentWithin(keep) })
}

// SentWithin reports whether the entry was sent and changed no longer ago than d. A time in the future, as
// from before a clock was set, says nothing.
func (e *Entry) SentWithin(d time.Duration) bool {
	age := time.Since(e.Time)
	return e.Sent() && 0 <= age && age < d
}

// Put files e as a call of the current order and returns the stored entry. Certbot repeats no call, so
// an entry of the same call is replaced unless it is Live.
func (r *Record) Put(e Entry) *Entry {
	e.Order = r.Order
	for i, old := range r.Entries {
		if old.Order == r.Order && old.Call == e.Call && !old.Live() {
			r.Entries[i] = &e
			return &e
		}
	}
	r.Entries = append(r.Entries, &e)
	return &e
}

// Current returns the entries of the current order.
func (r *Record) Current() []*Entry {
	return r.pick(func(e *Entry) bool { return e.Order == r.Order })
}

// Live returns the entries whose record may exist, of every order.
func (r *Record) Live() []*Entry { return r.pick((*Entry).Live) }

// Due returns the Live entries and the Absent ones that were last looked for longer than wait ago.
func (r *Record) Due(wait time.Duration) []*Entry {
	return r.pick(func(e *Entry) bool { return e.Live() || e.State == Absent && time.Since(e.Time).Abs() >= wait })
}

// Earlier returns the live entries of orders before the current one.
func (r *Record) Earlier() []*Entry {
	return r.pick(func(e *Entry) bool { return e.Order < r.Order && e.Live() })
}

// Complete reports whether every call of the current order before call is on record, refusals included.
func (r *Record) Complete(call int) bool {
	seen := make(map[int]bool)
	for _, e := range r.Current() {
		seen[e.Call] = true
	}
	for i := range call {
		if !seen[i] {
			return false
		}
	}
	return true
}

// Find returns the newest entry for that domain and value, or nil.
func (r *Record) Find(domain, value string) *Entry {
	for i := len(r.Entries) - 1; i >= 0; i-- {
		if e := r.Entries[i]; e.Domain == domain && e.Value == value {
			return e
		}
	}
	return nil
}

func (r *Record) pick(keep func(*Entry) bool) []*Entry {
	var out []*Entry
	for _, e := range r.Entries {
		if keep(e) {
			out = append(out, e)
		}
	}
	return out
}

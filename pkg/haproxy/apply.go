package haproxy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/haproxy/master"
)

// Bounds of one run.
const (
	maxPasses = 4               // of acting and looking again
	settle    = 1 * time.Second // after which a reload that was under way unseen shows, where nobody tells of it
)

// Apply brings HAProxy up to date with the lineages that are named, or all. What is wrong with one of them is in
// its state and stops no other; the error is for what stops all.
func (a *Applier) Apply(ctx context.Context, names ...string) ([]State, error) {
	ctx, cancel := context.WithTimeout(ctx, a.Timeout)
	defer cancel()
	if err := a.checkDir(); err != nil {
		return nil, err
	}
	unlock, err := a.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	states, err := a.lineages(ctx, names)
	if err != nil {
		return nil, err
	}
	a.choose(states)
	if err := a.converge(ctx, states); err != nil {
		for i := range states {
			if states[i].Err == nil {
				states[i].Err = err
			}
		}
		return states, nil
	}
	return states, a.then(ctx, states)
}

// converge acts and looks again until there is no difference, or no way to remove it.
func (a *Applier) converge(ctx context.Context, states []State) error {
	changed := map[string]bool{}
	settled := false // looked once more after some time
	again := false   // HAProxy may be another one by now, so that all have to be looked at
	for pass := 0; ; pass++ {
		i, err := a.look(ctx)
		if err != nil {
			return err
		}
		if err := a.recover(ctx, i); err != nil {
			return err
		}
		before, err := i.calm(ctx)
		if err != nil {
			return err
		}
		var hot, reload []*State
		due := outstanding(states, changed, pass > 0 && !again)
		if err := i.learn(ctx, due); err != nil {
			return err
		}
		for _, s := range due {
			if s.Err = a.observe(ctx, i, s, changed[s.Name]); s.Err != nil {
				continue
			}
			switch {
			case a.done(s):
			case !s.younger.IsZero() && !a.Force:
				s.Err = fault.Errorf(fault.Lineage, "HAProxy has a certificate for %q that is younger (%s) than the lineage's (%s)",
					s.Name, s.younger.Format(time.DateTime), s.desired.bundle.Leaf().NotBefore.Format(time.DateTime)).
					WithHint("--force puts the older one in its place")
			case !i.up:
				s.Action = Staged
				reload = append(reload, s)
			case changed[s.Name] && s.held() && s.Disk == Same:
				s.Err = a.shadowed(i, s)
			case a.canHot(i, s):
				s.Action = Hot
				hot = append(hot, s)
			default:
				s.Action = Reload
				reload = append(reload, s)
			}
		}
		switch {
		case a.DryRun:
			return nil
		case len(hot)+len(reload) == 0:
			if len(changed) == 0 || settled {
				return nil
			}
			steady, err := a.steady(ctx, i, before)
			if err != nil || steady {
				return err
			}
			settled = before == nil // then one more look is all that can be done
			again = true
			continue
		case pass >= maxPasses:
			return fault.Errorf(fault.Pending, "HAProxy keeps changing: it was updated %d times and shows something else again", pass)
		}
		again = false
		for _, s := range hot {
			changed[s.Name] = true
			s.Err = a.hot(ctx, i, s)
		}
		for _, s := range reload {
			changed[s.Name] = true
		}
		if len(reload) > 0 {
			a.reload(ctx, i, reload)
		}
	}
}

// outstanding are the states to look at: all that nothing is wrong with, or only those that were changed, since the
// others were looked at before.
func outstanding(states []State, changed map[string]bool, only bool) []*State {
	var due []*State
	for n := range states {
		if s := &states[n]; s.Err == nil && (!only || changed[s.Name]) {
			due = append(due, s)
		}
	}
	return due
}

// observe looks at disk, memory and wire. changed says that we have just done something about it.
func (a *Applier) observe(ctx context.Context, i *instance, s *State, changed bool) error {
	s.younger = time.Time{}
	if err := s.observeDisk(); err != nil {
		return err
	}
	if !i.up {
		return nil
	}
	if err := a.unused(i, s.File); err != nil {
		return err
	}
	if i.admin != nil {
		s.observeMemory(i)
		for _, h := range s.Memory {
			a.managed[h.Name] = true
		}
	}
	a.observeWire(ctx, i, s, changed || s.Disk != Same || s.unseen() || len(s.Memory) > 0 && !s.held())
	return nil
}

// done reports whether nothing is to be done for a lineage.
func (a *Applier) done(s *State) bool {
	return s.Disk == Same && (len(s.Memory) == 0 || s.held()) && s.served()
}

// calm waits until no reload is under way, which would undo what we do, and remembers how it was.
func (i *instance) calm(ctx context.Context) (*master.Proc, error) {
	if i.master == nil || !i.up {
		return nil, nil
	}
	deadline := time.Now().Add(busyTime)
	for {
		p, err := i.master.Proc(ctx)
		switch {
		case err == nil:
			return &p, nil
		case !errors.Is(err, master.ErrDown):
			return nil, err
		case time.Now().After(deadline):
			return nil, fault.Errorf(fault.Pending, "HAProxy's master does not answer; a reload may be under way: %w", err)
		}
		if err := pause(ctx, busyPoll); err != nil {
			return nil, err
		}
	}
}

// steady reports whether HAProxy is still the one that was looked at: nobody has reloaded it while we were at it,
// which would bring back what it had on disk when that began. Where no master socket tells of that it waits, so
// that the caller looks once more.
func (a *Applier) steady(ctx context.Context, i *instance, before *master.Proc) (bool, error) {
	if before == nil {
		return false, pause(ctx, settle)
	}
	after, err := i.calm(ctx)
	if err != nil || after == nil {
		return false, err
	}
	return after.Reloads == before.Reloads && slices.Equal(workers(after), workers(before)), nil
}

func workers(p *master.Proc) []int {
	var pids []int
	for _, w := range p.Workers {
		pids = append(pids, w.PID)
	}
	return pids
}

// shadowed is the error where HAProxy has accepted the certificate and shows another one.
func (a *Applier) shadowed(i *instance, s *State) error {
	for _, w := range s.Wire {
		if w.State == Same || w.State == Unasked {
			continue
		}
		what := fmt.Sprintf("HAProxy has taken the certificate of %q, and at %s %s still gets another one", s.Name, w.Bind, w.Name)
		if w.State == Unseen {
			return fault.Errorf(fault.Unknown, "HAProxy has taken the certificate of %q, and whether %s shows it cannot be seen: %s", s.Name, w.Bind, w.Detail)
		}
		if store := i.culprit(w); store != "" {
			return fault.Errorf(fault.Verdict, "%s, that of %q", what, store).
				WithHint("remove that file, or the name from its certificate, and reload HAProxy")
		}
		return fault.Errorf(fault.Verdict, "%s: %s", what, w.Detail)
	}
	return nil
}

// sampleSize is how many lineages are looked at on the wire in each run although nothing has changed.
const sampleSize = 20

// choose makes the sample of this run, which goes on where that of the last one ended.
func (a *Applier) choose(states []State) {
	a.managed, a.sample = map[string]bool{}, map[string]bool{}
	m := a.recall()
	for n := range min(sampleSize, len(states)) {
		a.sample[states[(m.Sample+n)%len(states)].Name] = true
	}
	if len(states) <= sampleSize || a.DryRun {
		return
	}
	m.Sample = (m.Sample + sampleSize) % len(states)
	if err := a.save(m); err != nil {
		a.Log.Warn("the next run will look at the same certificates", "error", err)
	}
}

func (a *Applier) step(what string) {
	a.Log.Debug(what)
	if a.Observe != nil {
		a.Observe(what)
	}
}

func (a *Applier) now() time.Time {
	if a.Now != nil {
		return a.Now()
	}
	return time.Now()
}

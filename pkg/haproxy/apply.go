package haproxy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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
	if len(states) == 0 {
		a.Log.Warn("there is no lineage yet, and nothing to apply", "in", strings.Join(a.Roots, ", "))
	}
	m := a.choose(states)
	defer func() { a.remember(m, states) }()
	if err := a.converge(ctx, m, states); err != nil {
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
func (a *Applier) converge(ctx context.Context, m *memory, states []State) error {
	changed := map[string]bool{}
	reloaded := map[string]bool{} // by us, with success
	settled := false              // looked once more after some time
	again := false                // HAProxy may be another one by now, so that all have to be looked at
	for pass := 0; ; pass++ {
		i, err := a.look(ctx)
		if err != nil {
			return err
		}
		if !a.DryRun {
			if err := a.recover(ctx, i); err != nil {
				return err
			}
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
			case a.done(i, m, s):
			case !s.younger.IsZero() && !a.Force:
				s.Err = fault.Errorf(fault.Lineage, "HAProxy has a certificate for %q that is younger (%s) than the lineage's (%s)",
					s.Name, s.younger.Format(time.DateTime), s.desired.bundle.Leaf().NotBefore.Format(time.DateTime)).
					WithHint("--force puts the older one in its place")
			case !i.up:
				s.Action = Staged
				reload = append(reload, s)
			case s.Disk == Same && s.blind(i):
				s.Err = a.shadowed(i, s)
			case s.Disk == Same && (changed[s.Name] && s.held() || reloaded[s.Name] && (len(s.Memory) == 0 || s.held())):
				m.Shadowed[s.Name] = s.Fingerprint
				s.Err = a.shadowed(i, s)
			case s.Disk == Same && i.admin == nil && m.Shadowed[s.Name] == s.Fingerprint && len(s.Wire) > 0:
				// Nor would another reload help; what can be seen tells when somebody has mended it.
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
			return fault.Errorf(fault.Pending, "HAProxy keeps changing: it was updated %d times and shows something else again", pass).
				WithHint("something else updates or reloads it, too; the next run tries again")
		}
		again = false
		a.unproven(m, hot, reload)
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
		for _, s := range reload {
			reloaded[s.Name] = s.Err == nil
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
	if err := a.observeDisk(s); err != nil {
		return err
	}
	if !i.up {
		return nil
	}
	if err := a.unused(i, s.File); err != nil {
		return err
	}
	if err := a.readable(i); err != nil {
		return err
	}
	if i.admin != nil {
		s.observeMemory(i)
	}
	a.observeWire(ctx, i, s, changed || s.Disk != Same || s.unseen() || !s.held())
	return nil
}

// done reports whether nothing is to be done for a lineage: it is on disk, HAProxy holds it, and shows it. That nobody
// can look at what HAProxy holds, or shows, is no reason to do anything, unless the last run came to no good end.
func (a *Applier) done(i *instance, m *memory, s *State) bool {
	if s.Disk != Same || !s.served() {
		return false
	}
	if len(s.Memory) > 0 {
		return s.held()
	}
	if i.up && i.admin != nil {
		return false // it is asked, and has no such file
	}
	return len(s.Wire) > 0 || m.Unproven[s.Name] == ""
}

// blind reports whether all that is wrong is that the wire could not be looked at. A reload would not help.
func (s *State) blind(i *instance) bool {
	if i.admin != nil && !s.held() || len(s.Wire) == 0 {
		return false
	}
	return !slices.ContainsFunc(s.Wire, func(w Seen) bool { return w.State == Other || w.State == Absent })
}

// calm waits until no reload is under way, which would undo what we do, and remembers how it was.
func (i *instance) calm(ctx context.Context) (*master.Proc, error) {
	if i.master == nil || !i.up {
		return nil, nil
	}
	deadline := time.Now().Add(reloadTime)
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
	if i.admin != nil && len(s.Memory) == 0 {
		return fault.Errorf(fault.Verdict, "HAProxy has been reloaded, and nothing in its configuration has it load %q", s.File).
			WithHint("name it, or its folder, after crt on a bind line or in a crt-list")
	}
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

// choose makes the sample of this run, which goes on where that of the last one ended. What the last run did not bring
// to a good end is always in it.
func (a *Applier) choose(states []State) *memory {
	a.sample = map[string]bool{}
	m := a.recall()
	for n := range min(sampleSize, len(states)) {
		a.sample[states[(m.Sample+n)%len(states)].Name] = true
	}
	for name := range m.Unproven {
		a.sample[name] = true
	}
	if len(states) > sampleSize {
		m.Sample = (m.Sample + sampleSize) % len(states)
	}
	return &m
}

// unproven notes, before anything is changed, whose change is not known to have come to a good end.
func (a *Applier) unproven(m *memory, lists ...[]*State) {
	for _, list := range lists {
		for _, s := range list {
			m.Unproven[s.Name] = s.Fingerprint
		}
	}
	if err := a.save(*m); err != nil {
		a.Log.Warn("what is kept between runs cannot be written", "error", err)
	}
}

// remember notes how the run has ended.
func (a *Applier) remember(m *memory, states []State) {
	for n := range states {
		s := &states[n]
		if s.Err != nil {
			s.Problem = s.Err.Error()
			m.Unproven[s.Name] = s.Fingerprint
			continue
		}
		delete(m.Unproven, s.Name)
		delete(m.Shadowed, s.Name)
	}
	if a.DryRun {
		return
	}
	m.Then = a.recall().Then
	if err := a.save(*m); err != nil {
		a.Log.Warn("what is kept between runs cannot be written", "error", err)
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

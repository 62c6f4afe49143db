package master

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/certhook/certhook/pkg/fault"
)

// settle is how long a new worker is watched that may still be loading.
const settle = 5 * time.Second

const newWorker = "HAProxy has started a new worker, and only what it serves tells whether it has loaded its configuration"

// bySignal sends SIGUSR2 to the master and watches it through procfs.
func (how How) bySignal(ctx context.Context) (Outcome, error) {
	o := Outcome{Way: "signal"}
	p := how.Process
	var before watch
	err := poll(ctx, func() (bool, error) {
		if err := how.gone(); err != nil || !p.ready() {
			return false, err
		}
		var err error
		if before, err = p.look(ctx); err == nil {
			err = p.Reload(ctx)
		}
		if errors.Is(err, ErrBusy) {
			return false, nil
		}
		return err == nil, err
	})
	if errors.Is(err, ErrNone) {
		err = fault.Errorf(fault.Pending, "%w", err)
	}
	if err != nil {
		return o, err
	}
	var since time.Time // a new worker has been seen
	err = poll(ctx, func() (bool, error) {
		if err := how.gone(); err != nil {
			return false, err
		}
		now, err := p.look(ctx)
		if err != nil {
			return false, err
		}
		if before.settled && now.settled {
			return how.judge(ctx, before.state, now.state, &o)
		}
		fresh := without(now.workers, before.workers)
		switch {
		case len(fresh) == 0 && now.ready && now.state.Reloads > before.state.Reloads:
			return true, how.explain(ctx, "")
		case len(fresh) == 0:
			return false, nil
		case since.IsZero():
			since = time.Now()
		}
		o.Worker = fresh[0]
		if len(without(before.workers, now.workers)) == len(before.workers) {
			return true, nil // nobody else is there to serve
		}
		if time.Since(since) > settle {
			o.Doubt = newWorker
			return true, nil
		}
		return false, nil
	})
	return o, err
}

// watch is what can be seen of a master and its workers without a socket.
type watch struct {
	state   Proc // as the master has written it down; Reloads is 0 where it has not
	settled bool // nothing changes in state any more
	ready   bool // the master listens to signals
	workers []int
}

// look keeps an order: a master that starts itself anew writes down the new count and deafens itself at once, and
// listens again only when its worker is there. So who has seen the new count, and then that it listens, sees the
// worker; the other way round it may have listened before all that.
func (p Process) look(ctx context.Context) (w watch, err error) {
	w.state, w.settled = p.state()
	w.ready = p.ready()
	w.workers, err = p.workers(ctx)
	return w, err
}

func without(pids, others []int) []int {
	return slices.DeleteFunc(slices.Clone(pids), func(pid int) bool { return slices.Contains(others, pid) })
}

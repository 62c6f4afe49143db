package haproxy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/haproxy/admin"
)

const (
	// busyTime is how long somebody else's transaction or a lock is waited for.
	busyTime = 5 * time.Second
	busyPoll = 200 * time.Millisecond
	// reloadTime is how long a reload that somebody else has begun is waited for; one of 5,000 certificates has
	// taken nine seconds.
	reloadTime = 30 * time.Second
)

// canHot reports whether the lineage can get into memory without a reload.
func (a *Applier) canHot(i *instance, s *State) bool {
	if i.admin == nil || len(s.Memory) == 0 || description(s.desired.bundle.Leaf()) > maxDescription {
		return false // a new file, or one whose transaction could not be looked at
	}
	if len(i.companions(s.File)) > 0 && i.reloadable(a) == nil {
		return false // set drops what belongs to a certificate, and a .issuer that is another's keeps HAProxy from starting
	}
	for _, h := range s.Memory {
		// HAProxy keeps a .crt and its .key apart, and takes a command for neither.
		if !admin.Plain(h.Name) || strings.HasSuffix(h.Name, ".crt") || admin.Size(h.Name, s.desired.pem) >= a.maxPayload() {
			return false
		}
	}
	return true
}

func (a *Applier) maxPayload() int {
	if a.MaxPayload > 0 {
		return a.MaxPayload
	}
	return DefaultMaxPayload
}

// hot updates every store of the lineage that differs, and then the file. Memory comes first: what HAProxy has
// not accepted must never reach the folder, where it would keep the next reload and the next boot from working.
// What a crash leaves in between is an older file that is valid, and that the next run replaces.
func (a *Applier) hot(ctx context.Context, i *instance, s *State) error {
	if err := i.free(ctx, a); err != nil {
		return err
	}
	var file *staged
	if s.Disk != Same {
		a.step("stage " + s.Name)
		var err error
		if file, err = a.stage(s.File, s.desired.pem); err != nil {
			return err
		}
		defer file.drop()
	}
	for _, h := range s.Memory {
		if h.State == Same {
			continue
		}
		if err := a.update(ctx, i, s, h.Name); err != nil {
			return err
		}
	}
	if file == nil {
		return nil
	}
	a.step("install " + s.Name)
	return file.install()
}

// update replaces one store in memory: set, look whether it holds what we sent, commit.
func (a *Applier) update(ctx context.Context, i *instance, s *State, store string) error {
	a.step("set " + store)
	err := retry(ctx, func() error { return i.admin.Set(ctx, store, s.desired.pem) }, admin.ErrLocked, admin.ErrEmpty)
	if foreign, ok := errors.AsType[*admin.Foreign](err); ok {
		// HAProxy 2.6 puts what is set for one file into the open transaction of another. Committed, that would
		// serve our certificate in the other's place.
		_ = i.admin.Abort(ctx, foreign.Transaction)
		return fault.Errorf(fault.Pending, "somebody else changes %q in HAProxy at the same time, and that change was undone", foreign.Transaction)
	}
	if err != nil {
		return a.abort(ctx, i, store, err)
	}
	a.step("look at " + store)
	c, err := i.admin.Show(ctx, "*"+store)
	if err == nil && c.SHA1 != "" && c.SHA1 != s.Fingerprint {
		err = fmt.Errorf("the transaction for %q holds another certificate than was sent", store)
	}
	if err != nil {
		return a.abort(ctx, i, store, err)
	}
	a.step("commit " + store)
	// A commit that got no reply may be at work still. To touch its transaction then, even to end it, has HAProxy 2.6 crash.
	err = retry(ctx, func() error { return i.admin.Commit(ctx, store) }, admin.ErrLocked)
	if err == nil {
		return nil
	}
	if c, look := i.admin.Show(ctx, store); look == nil && c.SHA1 == s.Fingerprint {
		return nil // what was lost is the reply
	}
	if errors.Is(err, admin.ErrUnfinished) || errors.Is(err, admin.ErrNoTransaction) {
		return fault.Errorf(fault.Pending, "update %q in HAProxy: %w", store, err)
	}
	return a.abort(ctx, i, store, err)
}

// abort ends our transaction after err, so that it blocks nobody, and says what err means.
func (a *Applier) abort(ctx context.Context, i *instance, store string, err error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), busyTime)
	defer cancel()
	_ = i.admin.Abort(ctx, store) // there may be none; one that stays is aborted by the next run
	if busy(err) {
		return fault.Errorf(fault.Pending, "update %q in HAProxy: %w", store, err)
	}
	if fault.KindOf(err) != fault.Other {
		return err
	}
	return fault.Errorf(fault.Refused, "update %q in HAProxy: %w", store, err)
}

// busy reports whether HAProxy may take the same at another time.
func busy(err error) bool {
	return errors.Is(err, admin.ErrDown) || errors.Is(err, admin.ErrLocked) || errors.Is(err, admin.ErrEmpty)
}

// pending makes an error of a busy HAProxy one of kind Pending.
func pending(err error) error {
	if err != nil && busy(err) {
		return fault.Errorf(fault.Pending, "%w", err)
	}
	return err
}

// retry repeats what a busy HAProxy did not take, as one of some errors tells.
func retry(ctx context.Context, f func() error, tells ...error) error {
	deadline := time.Now().Add(busyTime)
	for {
		err := f()
		busy := slices.ContainsFunc(tells, func(t error) bool { return errors.Is(err, t) })
		if !busy || time.Now().After(deadline) || pause(ctx, busyPoll) != nil {
			return err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// free returns when no transaction is open. One that an earlier run of ours has left is aborted; somebody
// else's is waited for.
func (i *instance) free(ctx context.Context, a *Applier) error {
	deadline := time.Now().Add(busyTime)
	for {
		list, err := i.admin.List(ctx)
		if err != nil {
			return pending(err)
		}
		switch {
		case list.Transaction == "":
			return nil
		case a.ours(i, list.Transaction):
			a.step("abort " + list.Transaction)
			if err := i.admin.Abort(ctx, list.Transaction); err != nil {
				return fault.Errorf(fault.Pending, "end the transaction that an earlier run has left: %w", err)
			}
		case time.Now().After(deadline):
			return fault.Errorf(fault.Pending, "somebody else has a transaction open in HAProxy, for %q", list.Transaction).
				WithHint("the next run tries again; if nobody is at work there, a reload of HAProxy ends it")
		default:
			if err := pause(ctx, busyPoll); err != nil {
				return err
			}
		}
	}
}

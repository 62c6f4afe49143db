package challenge

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"os"
	"time"

	"github.com/certhook/certhook/pkg/certbot"
	"github.com/certhook/certhook/pkg/delegation"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/journal"
)

// Rehearse does for the domains everything that an order does, except that no CA is asked: it writes a
// random value for each, waits until it can be seen, follows the CNAME from the served domain as a CA
// would, and removes the values. Observe is told of every step. An error means that an issuance would
// fail, or that a probe value was not removed.
func (h *Hooks) Rehearse(ctx context.Context, domains []string) error {
	rehearsing := *h
	h = &rehearsing
	h.AbortOnFailure, h.Settle = false, 0 // no certbot to stop, no CA that remembers
	run, err := h.Processes.Identify(os.Getpid())
	if err != nil {
		return fault.Errorf(fault.Usage, "rehearse: %w", err)
	}
	by := Caller{Run: run, Known: true, parent: os.Getppid()}
	calls := make([]certbot.Challenge, len(domains))
	for i, domain := range domains {
		calls[i] = certbot.Challenge{
			Domain: domain, Validation: probe(), Size: len(domains), Remaining: len(domains) - 1 - i, Counted: true, Names: domains,
		}
	}
	var errs []error
	for _, c := range calls {
		_, err := h.Present(ctx, c, by)
		errs = append(errs, err)
	}
	if errors.Join(errs...) == nil {
		for _, c := range calls {
			errs = append(errs, h.through(ctx, c))
		}
	}
	// An interrupted rehearsal still takes its values away.
	ctx = context.WithoutCancel(ctx)
	_, err = h.CleanUp(ctx, calls[0], by)
	if err == nil {
		err = h.forget(ctx, by)
	}
	return errors.Join(append(errs, err)...)
}

// probe is a random value of the form that a CA asks for.
func probe() string {
	var b [32]byte
	rand.Read(b[:])
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// through follows the CNAME from the served domain once more, now that the value is there. Unlike a
// hook, which must not stop an issuance that would have worked, it takes no "cannot tell" for an answer.
func (h *Hooks) through(ctx context.Context, c certbot.Challenge) error {
	target, err := h.Targets.Target(c.Domain)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, preflightTimeout)
	defer cancel()
	began := time.Now()
	verdict := delegation.Check(ctx, h.DNS, h.Panel, target)
	s := Step{Name: StepThrough, Domain: c.Domain, Record: target.Record, Detail: target.Challenge + " leads to the value", Err: verdict.Err()}
	if verdict.Status != delegation.OK && s.Err == nil {
		s.Err = fault.Errorf(fault.Unknown, "%s: cannot tell whether a CA is led to the value: %s", c.Domain, verdict.Reason)
	}
	s.Took = time.Since(began)
	h.step(s)
	return s.Err
}

// forget retires the finished run's journal file, since no hook run will belong to it again.
func (h *Hooks) forget(ctx context.Context, by Caller) error {
	f, err := h.lock(ctx, by, journal.RunID(by.Run))
	if err != nil {
		return err
	}
	defer f.Close()
	return h.retire(f)
}

package resolver

import (
	"context"
	"errors"
	"time"

	"github.com/miekg/dns"
)

// stagger is how long the next endpoint waits for the one before.
const stagger = 400 * time.Millisecond

// Recursive asks several recursive resolvers as if they were one.
type Recursive struct {
	Endpoints []Endpoint
}

// Ask puts one question to the endpoints: to the first at once, to each further one after 400 ms or as
// soon as the one before has failed. The first answer counts. Only NOERROR and NXDOMAIN are answers; when
// there is none the error joins an *[Error] for each endpoint.
func (r Recursive) Ask(ctx context.Context, name string, qtype uint16) (*dns.Msg, error) {
	calls := make([]func(context.Context) (*dns.Msg, error), len(r.Endpoints))
	for i, e := range r.Endpoints {
		calls[i] = func(ctx context.Context) (*dns.Msg, error) { return e.ask(ctx, name, qtype) }
	}
	return First(ctx, stagger, calls)
}

func (e Endpoint) ask(ctx context.Context, name string, qtype uint16) (*dns.Msg, error) {
	m, err := Exchange(ctx, e, NewQuestion(name, qtype, true))
	if err != nil {
		return nil, err
	}
	if m.Rcode != dns.RcodeSuccess && m.Rcode != dns.RcodeNameError {
		return nil, Refusal(e.String(), name, qtype, m)
	}
	return m, nil
}

// First runs calls until one succeeds and returns its value: each starts wait after the one before, or as
// soon as a running one fails. The context of the calls ends when First returns, or with ctx, and then those
// that run must return. When all fail, the error joins theirs in their order: of those that ran, when ctx ends.
func First[T any](ctx context.Context, wait time.Duration, calls []func(context.Context) (T, error)) (T, error) {
	type result struct {
		call  int
		value T
		err   error
	}
	parent := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		zero    T
		errs    = make([]error, len(calls))
		results = make(chan result, len(calls))
		next    = 0
		running = 0
		timer   = time.NewTimer(wait)
	)
	defer timer.Stop()
	start := func() {
		if next == len(calls) {
			return
		}
		call := next
		next++
		running++
		timer.Reset(wait)
		go func() {
			value, err := calls[call](ctx)
			results <- result{call, value, err}
		}()
	}
	done := parent.Done()
	for start(); running > 0; {
		select {
		case r := <-results:
			if r.err == nil {
				return r.value, nil
			}
			running--
			errs[r.call] = r.err
			if parent.Err() == nil {
				start()
			}
		case <-timer.C:
			start()
		case <-done:
			// Each running call knows best what it was that did not come.
			done, next = nil, len(calls)
		}
	}
	if len(calls) == 0 {
		return zero, errors.New("there is no server to ask")
	}
	return zero, errors.Join(errs...)
}

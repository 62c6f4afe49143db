// Package propagation waits until what was written at a DNS provider can be seen by a CA: until every
// authoritative server shows every value.
package propagation

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/authority"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/resolver"
)

// Value is one TXT value at one name.
type Value struct {
	Name  string // canonical
	Value string // its character-strings joined
}

// Group is what the servers of one zone have to show.
type Group struct {
	Zone   authority.Zone
	Values []Value
}

// Mode is whom to ask.
type Mode string

const (
	Authoritative Mode = "authoritative" // the zone's own servers
	Resolvers     Mode = "resolvers"     // recursive resolvers
	None          Mode = "none"          // nobody: only wait
)

// DefaultTimeout bounds the asking where [Options] says nothing else.
const DefaultTimeout = 120 * time.Second

// Bounds of the way out when no authoritative server can be reached.
const (
	minBlindWait    = 30 * time.Second // before resolvers are asked, so that they do not remember an absence
	minResolverTime = 10 * time.Second // for asking them, whatever is left of the time-out
)

// Options is how to wait. The zero value asks authoritative servers for two minutes.
type Options struct {
	Mode      Mode                // "" for Authoritative
	Timeout   time.Duration       // bounds the asking; 0 for [DefaultTimeout]. Extra waits come on top
	Resolvers []resolver.Endpoint // for the mode Resolvers, and where no authoritative server can be reached
	Extra     time.Duration       // waited besides: after authoritative servers agree, before resolvers are asked
	Observe   func(Event)         // told of every event, one at a time; may be nil
}

// Event is the moment in which one address first shows one value.
type Event struct {
	Server  string // name server, or host of the resolver
	Addr    string // its address, or the resolver's URL
	Value   Value
	Elapsed time.Duration // since the wait began
}

// Querier asks one authoritative server without recursion; [authority.Client] does.
type Querier interface {
	Query(ctx context.Context, addr netip.Addr, name string, qtype uint16) (*dns.Msg, error)
}

// Wait returns when all values of all groups can be seen. An address is asked from every 250 ms to every
// two seconds until it has shown all values; of those that answer all must, and at least half of a zone's
// servers must answer. A server answers when one of its addresses does; a refusal or an answer without
// authority is none. An address has two tries before the wait goes on without it;
// one that has answered before is waited for until it has been silent for 20 seconds.
//
// If not one server of a zone answers, resolvers are asked instead, after the extra wait or 30 seconds,
// whichever is longer; servers that come to life in the meantime are believed again.
//
// The error is of kind Propagation if the time ran out; it names the last answer of every server that
// lacks a value or does not answer. The values may be visible later, so nothing is lost yet. The report is
// complete in any case. If ctx is cancelled the error is its cause.
func Wait(ctx context.Context, q Querier, groups []Group, opts Options) (Report, error) {
	w := newWaiter(opts)
	w.query = func(ctx context.Context, addr netip.Addr, name string) (*dns.Msg, error) {
		return q.Query(ctx, addr, name, dns.TypeTXT)
	}
	w.resolve = func(ctx context.Context, e resolver.Endpoint, name string) (*dns.Msg, error) {
		return resolver.Recursive{Endpoints: []resolver.Endpoint{e}}.Ask(ctx, name, dns.TypeTXT)
	}
	return w.wait(ctx, groups)
}

type waiter struct {
	Options
	began   time.Time
	query   func(ctx context.Context, addr netip.Addr, name string) (*dns.Msg, error)
	resolve func(ctx context.Context, e resolver.Endpoint, name string) (*dns.Msg, error)

	mu     sync.Mutex // guards report and serialises Observe
	report Report
}

func newWaiter(opts Options) *waiter {
	if opts.Mode == "" {
		opts.Mode = Authoritative
	}
	if opts.Timeout <= 0 {
		opts.Timeout = DefaultTimeout
	}
	return &waiter{Options: opts, began: time.Now()}
}

func (w *waiter) wait(ctx context.Context, groups []Group) (Report, error) {
	var err error
	switch w.Mode {
	case Authoritative:
		err = w.authoritative(ctx, groups)
	case Resolvers:
		if err = sleep(ctx, w.Extra); err == nil {
			err = w.resolvers(ctx, values(groups), w.Timeout)
		}
	case None:
		err = sleep(ctx, w.Extra)
	default:
		err = fault.Errorf(fault.Usage, "the propagation mode %q is unknown", w.Mode)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.report.Mode, w.report.Elapsed = w.Mode, time.Since(w.began)
	return w.report, err
}

// authoritative waits for all groups at once; the failure of one does not cut the wait for the others
// short.
func (w *waiter) authoritative(ctx context.Context, groups []Group) error {
	errs := make([]error, len(groups))
	var wg sync.WaitGroup
	for i, g := range groups {
		wg.Go(func() { errs[i] = w.group(ctx, g) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// group waits for the servers of one zone, and turns to resolvers when all of them stay silent.
func (w *waiter) group(ctx context.Context, g Group) error {
	if len(g.Values) == 0 {
		return nil
	}
	p := w.newPoll(g.Zone.Name, g.Values, half)
	for _, s := range g.Zone.Servers {
		p.addServer(s, w.query)
	}
	stop := p.start(ctx)
	defer stop()
	var blind <-chan time.Time
	for {
		silent, settled := p.state()
		if settled {
			stop()
			w.enter(p)
			return sleep(ctx, w.Extra)
		}
		if !silent {
			blind = nil
		} else if blind == nil && len(w.Resolvers) > 0 {
			blind = time.After(max(w.Extra, minBlindWait))
		}
		var deadline <-chan time.Time
		if blind == nil {
			deadline = time.After(w.left())
		}
		select {
		case <-p.changed:
		case <-blind:
			stop()
			w.enter(p)
			w.warn("no server of the zone %s can be reached from here, so resolvers are asked whether the values are visible", g.Zone.Name)
			return w.resolvers(ctx, g.Values, max(w.left(), minResolverTime))
		case <-deadline:
			return w.fail(ctx, p, stop)
		case <-ctx.Done():
			return w.fail(ctx, p, stop)
		}
	}
}

// resolvers waits until every configured resolver that answers shows the values.
func (w *waiter) resolvers(ctx context.Context, values []Value, timeout time.Duration) error {
	if len(values) == 0 {
		return nil
	}
	if len(w.Resolvers) == 0 {
		return fault.Errorf(fault.Usage, "cannot tell whether the values are visible: there is no resolver to ask")
	}
	p := w.newPoll("", values, one)
	for _, e := range w.Resolvers {
		p.addResolver(e, w.resolve)
	}
	stop := p.start(ctx)
	defer stop()
	deadline := time.After(timeout)
	for {
		if _, settled := p.state(); settled {
			stop()
			w.enter(p)
			return nil
		}
		select {
		case <-p.changed:
		case <-deadline:
			return w.fail(ctx, p, stop)
		case <-ctx.Done():
			return w.fail(ctx, p, stop)
		}
	}
}

// left is what is left of the time for asking; not negative.
func (w *waiter) left() time.Duration {
	return max(0, w.Timeout-time.Since(w.began))
}

// fail ends a poll that did not settle.
func (w *waiter) fail(ctx context.Context, p *poll, stop func()) error {
	stop()
	w.enter(p)
	if ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("wait until the values are visible: %w", context.Cause(ctx))
	}
	return p.failure(time.Since(w.began))
}

func (w *waiter) warn(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.report.Warnings = append(w.report.Warnings, fmt.Sprintf(format, args...))
}

func values(groups []Group) []Value {
	var all []Value
	for _, g := range groups {
		all = append(all, g.Values...)
	}
	return all
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait until the values are visible: %w", context.Cause(ctx))
	}
}

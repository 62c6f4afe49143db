// Package challenge is the hooks' whole use case: Present puts the dns-01 values of an order into the
// alias zone and waits until they can be seen, CleanUp takes them away, Sweep does so for runs that died,
// and Rehearse goes the same way without a CA.
//
// Certbot calls the auth hook once a name, one after the other, and asks the CA only after the last. So
// every call but the last only checks its name and leaves its value planned in the journal; the last
// writes them all in parallel and waits once. The first cleanup call removes them all.
package challenge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/certhook/certhook/pkg/authority"
	"github.com/certhook/certhook/pkg/certbot"
	"github.com/certhook/certhook/pkg/delegation"
	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/pkg/journal"
	"github.com/certhook/certhook/pkg/propagation"
	"github.com/certhook/certhook/pkg/provider"
	"github.com/certhook/certhook/pkg/resolver"
)

// Hooks does the work of auth-hook and cleanup-hook. Every field but PinnedZoneID, Panel, Observe and the
// zero-value defaults named below is required.
type Hooks struct {
	Targets         delegation.Settings
	TTL             time.Duration // of the TXT records
	Provider        provider.Provider
	ProviderName    string        // goes into the journal, so that no other provider is asked to clean up
	PinnedZoneID    string        // the id of the one zone that is written to, where its name is not given with it
	ProviderTimeout time.Duration // for all calls to the provider of one hook call
	DNS             *authority.Client
	Panel           resolver.Panel // asked where no authoritative server answers; may be empty
	Issuance        Issuance
	Propagation     propagation.Options
	Settle          time.Duration // after a change of a name by another run, until a CA may be asked about it
	AbortOnFailure  bool          // see Aborted
	Journal         *journal.Store
	Processes       certbot.Processes
	Log             *slog.Logger
	Observe         func(Step) // told of every step as it ends; may be nil
}

// Limits on what one hook call spends besides the provider's and the propagation's time.
const (
	preflightTimeout = 10 * time.Second
	sweepTimeout     = 5 * time.Second
	sweepShare       = 3 * time.Second // of it for one file
	lateRequest      = 5 * time.Minute // within which a request that got no answer may still take effect
	unknownRunAge    = time.Hour       // after which a record is swept whose run cannot be traced
	parallelCalls    = 10              // calls to the provider at a time

	parentPoll = 500 * time.Millisecond // how often a waiting hook looks whether certbot still lives
)

// StepName names what a Step was about.
type StepName string

// The steps in the order in which they happen. StepTarget to StepZone and StepWrite, StepRemove happen
// once a value, StepVisible once for each server and value.
const (
	StepTarget  StepName = "target"
	StepCNAME   StepName = "cname"
	StepZone    StepName = "zone"
	StepWrite   StepName = "write"
	StepVisible StepName = "visible"
	StepWait    StepName = "propagated"
	StepSettle  StepName = "settled"
	StepThrough StepName = "through"
	StepRemove  StepName = "remove"
)

// Step is one thing done, well or not.
type Step struct {
	Name   StepName
	Domain string
	Record string // owner name of the TXT
	Detail string // one phrase for people
	Took   time.Duration
	Err    error // why it failed
	Warn   bool  // it could not be told; the work goes on
}

func (h *Hooks) step(s Step) {
	var attrs []any
	for _, a := range []slog.Attr{slog.String("domain", s.Domain), slog.String("record", s.Record)} {
		if a.Value.String() != "" {
			attrs = append(attrs, a)
		}
	}
	attrs = append(attrs, "took", s.Took.Round(time.Millisecond))
	switch {
	case s.Err != nil:
		h.Log.Info(string(s.Name)+" failed", append(attrs, "error", s.Err)...)
	case s.Warn:
		h.Log.Warn(fmt.Sprintf("%s: %s", s.Domain, s.Detail))
	default:
		h.Log.Info(string(s.Name), append(attrs, "detail", s.Detail)...)
	}
	if h.Observe != nil {
		h.Observe(s)
	}
}

// Caller is who called a hook: the run of certbot and the processes on the way to the hook.
type Caller struct {
	Run     certbot.Run
	Known   bool        // false when the certbot process could not be told
	started certbot.Run // the process that certbot waits for
	parent  int         // the process right above
	gone    bool        // certbot was gone already when the hook looked
}

// FindCaller looks up the caller of this process. A hook that certbot did not start takes its parent
// process as the run.
func (h *Hooks) FindCaller() Caller {
	by := Caller{parent: os.Getppid()}
	run, started, err := h.Processes.CertbotRun(os.Getpid())
	switch {
	case errors.Is(err, certbot.ErrOrphan):
		by.gone = true
	case err != nil:
		h.Log.Info("certbot's process cannot be told, so values are written call by call", "error", err)
	default:
		by.Run, by.started, by.Known = run, started, true
	}
	return by
}

// errGone means that nobody waits for the hook any more.
var errGone = errors.New("certbot, which started this hook, is gone")

// waits reports whether the caller still waits for us. When certbot was killed, its hook goes on as an
// orphan; what it wrote then nobody would remove. One that is told to stop kills the process that it waits
// for first, then cleans up.
func (h *Hooks) waits(by Caller) error {
	dead := by.Known && (h.Processes.Life(by.Run) == certbot.Dead || h.Processes.Life(by.started) == certbot.Dead)
	if by.gone || dead || os.Getppid() != by.parent {
		return errGone
	}
	return nil
}

// whileWaited returns a context that ends with the cause errGone when the caller does.
func (h *Hooks) whileWaited(ctx context.Context, by Caller) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		tick := time.NewTicker(parentPoll)
		defer tick.Stop()
		for h.waits(by) == nil {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
		cancel(errGone)
	}()
	return ctx, func() { cancel(nil) }
}

// withProviderTime bounds calls to the provider.
func (h *Hooks) withProviderTime(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, h.ProviderTimeout, fmt.Errorf("the time for calls to the provider is over (PROVIDER_TIMEOUT, %v)", h.ProviderTimeout))
}

// lock opens the journal file of the order, or of the single value where calls do not form an order.
func (h *Hooks) lock(ctx context.Context, by Caller, id journal.ID) (*journal.File, error) {
	// A hook before us may be at its own calls to the provider.
	ctx, cancel := context.WithTimeout(ctx, h.ProviderTimeout+preflightTimeout)
	defer cancel()
	f, err := h.Journal.Lock(ctx, id)
	if err == nil {
		f.Run = by.Run
	}
	return f, err
}

// targetOf is the target that the entry was made for.
func targetOf(e *journal.Entry) delegation.Target {
	return delegation.Target{Domain: e.Domain, Challenge: dnsname.Challenge(e.Domain), Record: e.Name, Alias: e.Alias}
}

// each calls f for every item, a few at a time, and returns when all are done.
func each[T any](items []T, f func(int, T)) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, parallelCalls)
	for i, item := range items {
		slots <- struct{}{}
		wg.Go(func() {
			f(i, item)
			<-slots
		})
	}
	wg.Wait()
}

func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

package resolver

import (
	"context"
	"sync"
	"time"
)

// Limit is [context.WithTimeout] for who asks several questions, with a clock that stands still while one of them waits
// for its turn under [Remember]: that many others want to know something is no reason to give up. When the time is up,
// the context is cancelled, and its cause is [ErrTimeout].
func Limit(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	outer, _ := ctx.Value(clockKey{}).(*clock)
	ctx, cancel := context.WithCancelCause(ctx)
	c := &clock{outer: outer, left: limit, since: time.Now()}
	c.timer = time.AfterFunc(limit, func() { cancel(ErrTimeout) })
	return context.WithValue(ctx, clockKey{}, c), func() {
		c.timer.Stop()
		cancel(nil)
	}
}

type clockKey struct{}

// clock runs unless somebody holds it.
type clock struct {
	outer *clock // of the limit that this one is part of
	timer *time.Timer

	mu    sync.Mutex
	held  int
	left  time.Duration
	since time.Time // from which on left counts
}

func (c *clock) hold() {
	if c == nil {
		return
	}
	c.outer.hold()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held++; c.held == 1 && c.timer.Stop() {
		c.left -= time.Since(c.since)
	}
}

func (c *clock) release() {
	if c == nil {
		return
	}
	c.outer.release()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held--; c.held == 0 {
		c.since = time.Now()
		c.timer.Reset(c.left)
	}
}

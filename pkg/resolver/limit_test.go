package resolver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// To wait in line takes nothing from the time that a limit gives, for none of the limits around it.
func TestLimitIsNotForTheLine(t *testing.T) {
	t.Parallel()
	_, r, e := rememberScene(t)
	const delay, limit = 300 * time.Millisecond, 1500 * time.Millisecond
	r.SetDelay(delay)
	ctx := Remember(t.Context())
	began := time.Now()
	var wg sync.WaitGroup
	for i := range 10 * atOnce { // for twice as long as the limit
		wg.Go(func() {
			ctx, cancel := Limit(ctx, limit)
			defer cancel()
			ctx, cancel = Limit(ctx, limit)
			defer cancel()
			if _, err := Exchange(ctx, e, NewQuestion(fmt.Sprintf("n%d.example.com", i), dns.TypeA, true)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if took := time.Since(began); took < limit {
		t.Errorf("it took %v, which tries nothing", took)
	}
}

// The time does run while an answer is on its way, and before and after a question.
func TestLimitEnds(t *testing.T) {
	t.Parallel()
	_, r, e := rememberScene(t)
	r.SetDead(true)
	ctx, cancel := Limit(Remember(t.Context()), 200*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := Exchange(ctx, e, NewQuestion("www.example.com", dns.TypeA, true)); !errors.Is(err, ErrTimeout) || time.Since(began) > 2*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
	if !errors.Is(context.Cause(ctx), ErrTimeout) {
		t.Errorf("cause %v", context.Cause(ctx))
	}
	idle, cancel := Limit(t.Context(), 50*time.Millisecond)
	defer cancel()
	select {
	case <-idle.Done():
	case <-time.After(5 * time.Second):
		t.Error("it does not end")
	}
	ended, cancel := Limit(t.Context(), time.Hour)
	cancel()
	if ended.Err() == nil {
		t.Error("it cannot be ended")
	}
}

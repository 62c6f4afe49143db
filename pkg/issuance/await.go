package issuance

import (
	"context"
	"time"
)

// Pauses between two looks at the same thing. They double.
const (
	firstPause = time.Second
	mostPause  = 15 * time.Second

	leastLook = 250 * time.Millisecond // that a look is given
)

// await looks until a look says that it is done, and reports whether one did. Before each pause the deadline is looked
// at; the pause is cut to what is left, and leaves the next look the time that the one before has taken, and a little
// at least. There is one look in any case. ctx bounds a look.
func await(ctx context.Context, deadline time.Time, look func(context.Context) (done bool)) bool {
	for pause := firstPause; ; pause = min(2*pause, mostPause) {
		begun := time.Now()
		if look(ctx) {
			return true
		}
		took := max(leastLook, time.Since(begun))
		if !sleep(ctx, min(pause, time.Until(deadline)-took)) {
			return false
		}
	}
}

// sleep reports whether there was time to sleep and nothing has ended it.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 || ctx.Err() != nil {
		return false
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

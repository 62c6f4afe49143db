package issuance

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The self-check gives the CA half of the order's time at least, and says so where it was set to wait for longer.
func TestSelfCheckKeepsToHalfOfTheTime(t *testing.T) {
	for _, tc := range []struct {
		budget, patience, look time.Duration
		want                   time.Duration // at most
		lowered                string
	}{
		{10 * time.Second, 120 * time.Second, 10 * time.Millisecond, 5 * time.Second, "from 2m0s (PROPAGATION_TIMEOUT) to 5s"},
		{64 * time.Second, 120 * time.Second, 2 * time.Second, 32 * time.Second, "from 2m0s (PROPAGATION_TIMEOUT) to 30s"},
		{300 * time.Second, 120 * time.Second, 10 * time.Millisecond, 120*time.Second + 10*time.Millisecond, ""},
		{300 * time.Second, 200 * time.Second, 7 * time.Second, 150 * time.Second, "to 2m23s"},
		{10 * time.Second, 3 * time.Second, 10 * time.Millisecond, 3*time.Second + 10*time.Millisecond, ""},
		{10 * time.Second, 0, 10 * time.Millisecond, 10 * time.Millisecond, ""},
		{10 * time.Second, 120 * time.Second, time.Hour, 5 * time.Second, "to 0s"},
	} {
		t.Run(fmt.Sprint(tc.budget, tc.patience, tc.look), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var said bytes.Buffer
				i := &Issuer{Budget: tc.budget, Patience: tc.patience, Log: slog.New(slog.NewTextHandler(&said, nil))}
				start, looks := time.Now(), 0
				i.waitFor(t.Context(), start.Add(tc.budget/2), func(ctx context.Context) int {
					looks++
					sleep(ctx, tc.look) // as a look does that nobody answers
					return 1
				})
				took := time.Since(start)
				if took > tc.want {
					t.Errorf("took %v with %d looks, want %v at most", took, looks, tc.want)
				}
				if rest := tc.want - took; rest > 2*max(tc.look, leastLook) {
					t.Errorf("gave up %v before its time", rest)
				}
				if looks == 0 || (tc.lowered == "") != (said.Len() == 0) || !strings.Contains(said.String(), tc.lowered) {
					t.Errorf("%d looks, said %q, want %q", looks, said.String(), tc.lowered)
				}
			})
		})
	}
}

// A record that stands costs no time; one that appears is waited for no longer than it takes, and settles.
func TestSelfCheckEndsWithTheRecord(t *testing.T) {
	for _, tc := range []struct {
		appears, settle, least, most time.Duration
		lowered                      bool
	}{
		{0, 10 * time.Second, 0, 0, false},
		{20 * time.Second, 0, 20 * time.Second, 32 * time.Second, false},
		{20 * time.Second, 10 * time.Second, 30 * time.Second, 42 * time.Second, false},
		{20 * time.Second, 10 * time.Minute, 150 * time.Second, 150 * time.Second, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			var said bytes.Buffer
			i := &Issuer{Budget: 300 * time.Second, Patience: 120 * time.Second, Settle: tc.settle, Log: slog.New(slog.NewTextHandler(&said, nil))}
			start := time.Now()
			i.waitFor(t.Context(), start.Add(i.Budget/2), func(context.Context) int {
				if time.Since(start) >= tc.appears {
					return 0
				}
				return 1
			})
			if took := time.Since(start); took < tc.least || took > tc.most || (said.Len() > 0) != tc.lowered {
				t.Errorf("appears %v, settles %v: took %v, said %q", tc.appears, tc.settle, took, said.String())
			}
		})
	}
}

// Nothing waits on when it is told to stop.
func TestSelfCheckIsInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(3*time.Second, cancel)
		start := time.Now()
		if await(ctx, start.Add(time.Hour), func(context.Context) bool { return false }) || time.Since(start) != 3*time.Second {
			t.Errorf("took %v, want 3s", time.Since(start))
		}
	})
}

package resolver

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"
)

func TestAskTakesOnlyAnswers(t *testing.T) {
	endpoint := func(rcode int) Endpoint {
		return plain(UDP, serve(t, nil, func(w dns.ResponseWriter, m *dns.Msg) {
			r := reply(w, m)
			r.Rcode = rcode
			if !m.RecursionDesired {
				t.Error("a question without RD")
			}
			_ = w.WriteMsg(r)
		}))
	}
	servfail, refused := endpoint(dns.RcodeServerFailure), endpoint(dns.RcodeRefused)
	for _, rcode := range []int{dns.RcodeSuccess, dns.RcodeNameError} {
		r := Recursive{Endpoints: []Endpoint{servfail, refused, endpoint(rcode)}}
		if m, err := r.Ask(t.Context(), "a.example", dns.TypeTXT); err != nil || m.Rcode != rcode {
			t.Errorf("Ask = %v, %v, want %s", m, err, RcodeName(rcode))
		}
	}

	_, err := Recursive{Endpoints: []Endpoint{servfail, refused}}.Ask(t.Context(), "a.example", dns.TypeTXT)
	var rcodes []int
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		t.Fatalf("error %v, want a joined one", err)
	}
	for _, err := range joined.Unwrap() {
		if e, ok := errors.AsType[*Error](err); ok {
			rcodes = append(rcodes, e.Rcode)
		}
	}
	if !slices.Equal(rcodes, []int{dns.RcodeServerFailure, dns.RcodeRefused}) {
		t.Errorf("error %v tells of %v, want SERVFAIL and REFUSED", err, rcodes)
	}
	if _, err := (Recursive{}).Ask(t.Context(), "a.example", dns.TypeTXT); err == nil {
		t.Error("no endpoints, and no error")
	}
}

func TestAskUnreachable(t *testing.T) {
	// Nothing listens on the discard port of that address.
	e := plain(UDP, netip.MustParseAddrPort("127.255.255.254:9"))
	if _, err := (Recursive{Endpoints: []Endpoint{e}}).Ask(t.Context(), "a.example", dns.TypeTXT); err == nil {
		t.Error("no error from a closed port")
	}
}

// TestFirst runs calls that take a time and then succeed or fail, and looks at when each began.
func TestFirst(t *testing.T) {
	const wait = 400 * time.Millisecond
	errCall := errors.New("failed")
	type call struct {
		takes time.Duration
		err   error
	}
	tests := []struct {
		name   string
		calls  []call
		starts []time.Duration
		winner int // -1: none
		took   time.Duration
	}{
		{"the first is quick", []call{{takes: wait / 2}, {}}, []time.Duration{0}, 0, wait / 2},
		{"the second overtakes", []call{{takes: 10 * wait}, {takes: wait}}, []time.Duration{0, wait}, 1, 2 * wait},
		{"the first still wins", []call{{takes: wait + 1}, {takes: wait}}, []time.Duration{0, wait}, 0, wait + 1},
		{"a failure hurries the next", []call{{takes: 1, err: errCall}, {takes: wait / 2}}, []time.Duration{0, 1}, 1, wait/2 + 1},
		{"all fail", []call{{takes: wait / 4, err: errCall}, {takes: wait / 4, err: errCall}}, []time.Duration{0, wait / 4}, -1, wait / 2},
		{"the pace starts anew after a failure", []call{{takes: wait / 2, err: errCall}, {takes: 9 * wait}, {takes: 1}}, []time.Duration{0, wait / 2, wait + wait/2}, 2, wait + wait/2 + 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				var mu sync.Mutex
				var starts []time.Duration
				var calls []func(context.Context) (int, error)
				for i, c := range tt.calls {
					calls = append(calls, func(ctx context.Context) (int, error) {
						mu.Lock()
						starts = append(starts, time.Since(begin))
						mu.Unlock()
						select {
						case <-time.After(c.takes):
							return i, c.err
						case <-ctx.Done():
							return i, ctx.Err()
						}
					})
				}
				winner, err := First(t.Context(), wait, calls)
				took := time.Since(begin)
				synctest.Wait()
				if tt.winner < 0 {
					if !errors.Is(err, errCall) {
						t.Errorf("error %v, want those of the calls", err)
					}
				} else if err != nil || winner != tt.winner {
					t.Errorf("First = %d, %v, want %d", winner, err, tt.winner)
				}
				if took != tt.took || !slices.Equal(starts, tt.starts) {
					t.Errorf("took %v with starts at %v, want %v and %v", took, starts, tt.took, tt.starts)
				}
			})
		})
	}
}

func TestFirstEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		stuck := func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() }
		begin := time.Now()
		_, err := First(ctx, time.Minute, []func(context.Context) (int, error){stuck, stuck})
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != time.Second {
			t.Errorf("error %v after %v", err, time.Since(begin))
		}
	})
}

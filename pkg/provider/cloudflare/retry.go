package cloudflare

import (
	"context"
	"net/http"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// retry decides whether one request is sent again. A request that creates a record is repeated only where
// the API certainly did not carry it out, which is true of 429 alone; anything else is for [call.add],
// which looks first.
type retry struct {
	method string
	first  time.Duration // pause before the second try

	tries int
	wait  time.Duration // the pause before the next try, the API's own wish where it has one
	late  bool          // the pause would outlast the time left, so there is no next try
}

func (r *retry) check(ctx context.Context, resp *http.Response, err error) (bool, error) {
	r.tries++
	again, _ := retryablehttp.DefaultRetryPolicy(ctx, resp, err)
	if r.method == http.MethodPost && (resp == nil || resp.StatusCode != http.StatusTooManyRequests) {
		again = false
	}
	if !again {
		return false, nil
	}
	// DefaultBackoff honours Retry-After whatever its length, hence the look at the clock: to fail now and
	// say why is better than to sleep until the deadline.
	r.wait = retryablehttp.DefaultBackoff(r.first, 8*r.first, r.tries-1, resp)
	if r.wait < 0 { // a Retry-After that overflows
		r.wait = time.Hour
	}
	deadline, ok := ctx.Deadline()
	r.late = ok && time.Until(deadline) <= r.wait
	return !r.late, nil
}

func (r *retry) backoff(time.Duration, time.Duration, int, *http.Response) time.Duration {
	return r.wait
}

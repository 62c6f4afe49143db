package issuance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"golang.org/x/crypto/acme"

	"github.com/certhook/certhook/pkg/fault"
)

// requestTimeout bounds one request to the CA.
const requestTimeout = 30 * time.Second

// ca is a CA as one account sees it.
type ca struct {
	server string
	client *acme.Client
	wire   *wire
}

// dial makes a client for an account, whose URI may not be known yet. Nothing is asked.
func (i *Issuer) dial(a Account) *ca {
	client := http.Client{}
	if i.HTTP != nil {
		client = *i.HTTP
	}
	w := newWire(client.Transport)
	client.Transport, client.Timeout = w, requestTimeout
	client.CheckRedirect = func(req *http.Request, _ []*http.Request) error {
		return fmt.Errorf("the redirect to %q is refused", req.URL.Scheme+"://"+req.URL.Host)
	}
	return &ca{server: i.Server, wire: w, client: &acme.Client{
		Key: a.key, KID: acme.KeyID(a.URI), DirectoryURL: i.Server, HTTPClient: &client, UserAgent: i.UserAgent, RetryBackoff: backoff,
	}}
}

// backoff says when to ask again after a failure that may pass. It is 0, which gives up with what the CA said, where
// that would be too late: the deadline is the request's. A rate limit does not pass in time.
func backoff(n int, r *http.Request, res *http.Response) time.Duration {
	const tries = 5
	d := min(time.Second<<min(n-1, 4), 10*time.Second)
	switch {
	case res.StatusCode == http.StatusTooManyRequests || n > tries:
		return 0
	case res.StatusCode == http.StatusBadRequest: // a nonce that was too old: a fresh one comes with the refusal
		d = 10 * time.Millisecond
	default:
		d = max(d, retryAfter(res.Header))
	}
	if deadline, ok := r.Context().Deadline(); ok && time.Until(deadline) <= d {
		return 0
	}
	return d
}

// within bounds an order that began at start.
func (i *Issuer) within(ctx context.Context, start time.Time) (context.Context, context.CancelFunc) {
	return context.WithDeadlineCause(ctx, start.Add(i.Budget), &outOfTime{i.Budget})
}

// outOfTime is the cause with which the time of an order ends.
type outOfTime struct{ budget time.Duration }

func (o *outOfTime) Error() string {
	return fmt.Sprintf("not done within %v (PERSIST_BUDGET)", o.budget)
}

// failed makes an error of one that a request to the CA gave: what was to be done, and the CA's own words.
func (c *ca) failed(ctx context.Context, err error, format string, args ...any) *fault.Error {
	what := fmt.Sprintf(format, args...)
	kind := fault.Other
	if errors.Is(err, errNoBinding) {
		kind = fault.Usage
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = context.Cause(ctx)
	}
	f := fault.Errorf(kind, "%s failed: %w", what, plain(err))
	if e, ok := errors.AsType[*acme.Error](err); ok {
		if wait := retryAfter(e.Header); wait > 0 && e.StatusCode == http.StatusTooManyRequests {
			f.WithHint("the CA says when to try again: %s", time.Now().Add(wait).UTC().Format("2006-01-02 15:04 UTC"))
		}
	}
	return f
}

// plain is an error in the CA's words where it has any, and without the URL that an HTTP client puts before one.
func plain(err error) error {
	if e, ok := errors.AsType[*acme.OrderError](err); ok && e.Problem != nil {
		return &refusal{e.Problem}
	}
	if e, ok := errors.AsType[*acme.Error](err); ok {
		return &refusal{e}
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// refusal is a problem document (RFC 8555, section 6.7), told as the CA words it.
type refusal struct{ problem *acme.Error }

func (r *refusal) Unwrap() error { return r.problem }

func (r *refusal) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "the CA says: %s", said(r.problem.ProblemType, r.problem.Detail))
	for _, sub := range r.problem.Subproblems {
		name := "?"
		if sub.Identifier != nil {
			name = clean(sub.Identifier.Value)
		}
		fmt.Fprintf(&b, "\n%s: %s", name, said(sub.Type, sub.Detail))
	}
	return b.String()
}

func said(kind, detail string) string {
	return clean(cmp.Or(strings.TrimPrefix(kind, "urn:ietf:params:acme:error:"), "an error without a type")) + ": " + clean(detail)
}

// clean takes out what would do something to a terminal.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(text, "?"))
}

// checkURI refuses an account URI that would break the record that it goes into.
func (c *ca) checkURI(uri string) error {
	u, err := url.Parse(uri)
	if err != nil || u.Host == "" || strings.ContainsFunc(uri, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`;"\`, r) }) {
		return fmt.Errorf("the CA gives the account the URI %q, which no record can hold", clean(uri))
	}
	return nil
}

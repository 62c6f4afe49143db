package notify

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/certhook/certhook/pkg/fault"
)

// DefaultTimeout is how long one request may take where [Config] says nothing else.
const DefaultTimeout = 15 * time.Second

const (
	maxTries  = 3
	firstWait = 2 * time.Second
	maxWait   = time.Minute // a receiver that asks for more is given up on
)

// Config says where messages go. URL and Token are needed.
type Config struct {
	URL     string        // https, or http to this machine
	Token   string        // key of the HMAC, shared with the receiver; it is never sent
	Timeout time.Duration // for one request; 0 = [DefaultTimeout]
	Agent   Agent         // asked for an attestation

	RetryWait time.Duration // pause before the second try, doubled before the third; 0 = 2 s
	Log       *slog.Logger  // one debug line a message; nil = none
}

// Webhook sends messages to one receiver.
type Webhook struct {
	url    *url.URL
	token  string
	agent  Agent
	wait   time.Duration
	client *http.Client
	log    *slog.Logger
}

// New checks the settings; it sends nothing. Errors are of kind fault.Usage and show neither the token nor more
// of the URL than its host, for the rest may be a secret too.
func New(cfg Config) (*Webhook, error) {
	target, err := parseURL(cfg.URL)
	if err != nil {
		return nil, err
	}
	if cfg.Token == "" {
		return nil, fault.Errorf(fault.Usage, "there is no token to sign messages to the webhook with").
			WithHint("set DNS_WEBHOOK_TOKEN (or DNS_WEBHOOK_TOKEN_FILE): an unsigned message could move a hostname")
	}
	w := &Webhook{
		url: target, token: cfg.Token, agent: cfg.Agent, wait: cfg.RetryWait, log: cfg.Log,
		client: &http.Client{
			Transport: &http.Transport{
				Proxy:                  http.ProxyFromEnvironment,
				ForceAttemptHTTP2:      true,
				IdleConnTimeout:        30 * time.Second,
				MaxResponseHeaderBytes: 64 << 10,
			},
			Timeout:       cfg.Timeout,
			CheckRedirect: checkRedirect,
		},
	}
	if w.client.Timeout <= 0 {
		w.client.Timeout = DefaultTimeout
	}
	if w.wait <= 0 {
		w.wait = firstWait
	}
	if w.log == nil {
		w.log = slog.New(slog.DiscardHandler)
	}
	return w, nil
}

func parseURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	problem := ""
	switch {
	case s == "":
		problem = "is empty"
	case err != nil:
		problem = "cannot be parsed" // the error would show it
	case u.Hostname() == "":
		problem = "names no host"
	case u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())):
		problem = "is not https (http is for loopback addresses only)"
	default:
		return u, nil
	}
	return nil, fault.Errorf(fault.Usage, "the webhook's URL %s", problem).
		WithHint("set DNS_WEBHOOK_URL to the https:// URL of your own receiver")
}

func loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// checkRedirect follows a redirect only where the same message goes to the same host once more; any other one is
// left as the answer, which is then no success. A redirected POST often becomes a GET, whose 200 would look
// like one.
func checkRedirect(req *http.Request, via []*http.Request) error {
	if req.Method != http.MethodPost || req.URL.Scheme != via[0].URL.Scheme || req.URL.Host != via[0].URL.Host || len(via) > 3 {
		return http.ErrUseLastResponse
	}
	return nil
}

// Receipt is what else is to be said of a message.
type Receipt struct {
	Attested bool  // an agent's quote went with it
	Warning  error // there is an agent and it gave no quote, so that the message went without; nil otherwise
}

// Send delivers a message: it is done when the receiver answers 2xx. It tries three times, with a pause between,
// where a request gets no answer, 429 or 5xx, and honours a Retry-After of up to a minute; any other answer
// ends it at once. All tries send the same octets. The message goes out with an attestation if an agent
// gives one, and without it otherwise. The error names the receiver's host and nothing else of its URL.
func (w *Webhook) Send(ctx context.Context, m Message) (Receipt, error) {
	payload := m.Payload()
	e := envelope{Payload: payload, HMAC: sign(payload, w.token)}
	var r Receipt
	e.Attestation, r.Warning = w.agent.Quote(ctx, digest(payload))
	r.Attested = e.Attestation != nil
	body, err := json.Marshal(e)
	if err != nil {
		return r, err
	}
	if err := w.post(ctx, body); err != nil {
		return r, &fault.Error{
			Err:  fmt.Errorf("notify the webhook at %s about %q: %w", w.url.Host, m.Domain, err),
			Hint: hint(err),
		}
	}
	return r, nil
}

func (w *Webhook) post(ctx context.Context, body []byte) error {
	req, err := retryablehttp.NewRequestWithContext(ctx, http.MethodPost, w.url.String(), body)
	if err != nil {
		return errors.New("its URL cannot be requested") // err would show it
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "certhook")
	policy := &retry{first: w.wait}
	sender := &retryablehttp.Client{
		HTTPClient:   w.client,
		RetryMax:     maxTries - 1,
		CheckRetry:   policy.check,
		Backoff:      policy.backoff,
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
	start := time.Now()
	resp, err := sender.Do(req)
	f := &failure{tries: policy.tries, late: policy.late}
	if err != nil {
		f.reason = w.cause(ctx, err)
	} else {
		f.status = resp.StatusCode
		resp.Body.Close() // unread: the status says all that counts
	}
	w.log.DebugContext(ctx, "webhook", "host", w.url.Host, "status", f.status, "tries", f.tries, "took", time.Since(start))
	if f.status >= 200 && f.status <= 299 {
		return nil
	}
	return f
}

// errAnswer stands for the errors of net/http that quote what the peer sent: it could send a secret back.
var errAnswer = errors.New("the answer is no HTTP response")

// cause returns why there is no response, without the URL that net/http names and in no words of the peer's.
func (w *Webhook) cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx) // says whose time is over
	}
	wrapped, ok := errors.AsType[*url.Error](err)
	if !ok {
		return errAnswer
	}
	if wrapped.Timeout() {
		return fmt.Errorf("no answer within %v", w.client.Timeout)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the connection ended before the answer")
	}
	_, network := errors.AsType[*net.OpError](err)
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	_, noTLS := errors.AsType[tls.RecordHeaderError](err)
	if network || certificate || noTLS || errors.Is(err, http.ErrSchemeMismatch) {
		return wrapped.Err
	}
	return errAnswer
}

// retry decides whether a request is sent again.
type retry struct {
	first time.Duration // pause before the second try

	tries int
	wait  time.Duration // before the next try
	late  time.Duration // a pause that the receiver wants and that is too long; 0 = none
}

func (r *retry) check(ctx context.Context, resp *http.Response, err error) (bool, error) {
	r.tries++
	again, _ := retryablehttp.DefaultRetryPolicy(ctx, resp, err)
	if resp != nil && resp.StatusCode >= 500 && ctx.Err() == nil {
		again = true // 501 too, as from a proxy whose receiver is being replaced
	}
	if !again || r.tries == maxTries {
		return again, nil
	}
	r.wait = retryablehttp.DefaultBackoff(r.first, maxWait, r.tries-1, resp)
	if r.wait < 0 { // a Retry-After that overflows
		r.wait = 24 * time.Hour
	}
	deadline, limited := ctx.Deadline()
	if r.wait > maxWait || limited && time.Until(deadline) <= r.wait {
		r.late = r.wait
		return false, nil
	}
	return true, nil
}

func (r *retry) backoff(time.Duration, time.Duration, int, *http.Response) time.Duration {
	return r.wait
}

// failure is a message that was not accepted.
type failure struct {
	status int   // of HTTP; 0 = no answer
	reason error // where there is no status
	tries  int
	late   time.Duration
}

func (f *failure) Error() string {
	var b bytes.Buffer
	if f.reason != nil {
		fmt.Fprintf(&b, "%v", f.reason)
	} else {
		fmt.Fprintf(&b, "HTTP %d %s", f.status, http.StatusText(f.status))
	}
	switch {
	case f.late != 0:
		fmt.Fprintf(&b, " (gave up after try %d: the next is allowed in %v, which is too late)", f.tries, f.late)
	case f.tries > 1:
		fmt.Fprintf(&b, " (gave up after %d tries)", f.tries)
	}
	return b.String()
}

func (f *failure) Unwrap() error { return f.reason }

func hint(err error) string {
	f, ok := errors.AsType[*failure](err)
	switch {
	case !ok || errors.Is(err, context.Canceled):
		return ""
	case f.status == 0:
		return "check DNS_WEBHOOK_URL and that the receiver is running and can be reached from here"
	case f.status >= 300 && f.status <= 399:
		return "the webhook redirects elsewhere, which is not followed: set DNS_WEBHOOK_URL to its final address"
	case f.status == http.StatusUnauthorized, f.status == http.StatusForbidden:
		return "the receiver must check hmac_sha256 with the token in DNS_WEBHOOK_TOKEN: are the two the same?"
	}
	return "the receiver's own log says why; its answer is not shown here"
}

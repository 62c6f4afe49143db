package cloudflare

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/certhook/certhook/pkg/fault"
)

// libdns has this base URL built in.
const (
	apiHost   = "api.cloudflare.com"
	apiPrefix = "/client/v4"
)

const (
	maxAnswer = 1 << 20 // octets of a body
	tryTime   = 20 * time.Second
	firstWait = 500 * time.Millisecond
	maxTries  = 4
)

// client sends requests with the token and returns whole, successful answers or errors.
type client struct {
	base  *url.URL
	token string
	wait  time.Duration
	http  *http.Client
	log   *slog.Logger
}

func newClient(base *url.URL, token string, wait time.Duration, log *slog.Logger) *client {
	if wait == 0 {
		wait = firstWait
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	transport := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: 15 * time.Second,
		IdleConnTimeout:       30 * time.Second,
		MaxIdleConnsPerHost:   32,
		ForceAttemptHTTP2:     true,
	}
	return &client{base: base, token: token, wait: wait, log: log, http: &http.Client{
		Transport: whole{transport},
		// An API does not redirect; following would hand the token to whoever is named.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// parseBase accepts https, or http to this machine only.
func parseBase(s string) (*url.URL, error) {
	if s == "" {
		s = "https://" + apiHost
	}
	usage := func(problem string) error {
		return fault.Errorf(fault.Usage, "the Cloudflare API URL %s", problem).
			WithHint("CLOUDFLARE_API_URL is https://<host>/client/v4; leave it out for Cloudflare's own")
	}
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return nil, usage("cannot be parsed") // the error would show a password in it
	case u.Host == "" || u.Hostname() == "":
		return nil, usage("names no host")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, usage("holds more than a host and a path")
	case u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())):
		return nil, usage("is not https (http is for loopback addresses only)")
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	if u.Path == "" {
		u.Path = apiPrefix
	}
	return u, nil
}

func loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// request is one request to the API; path and query go below the base URL.
type request struct {
	method, path, query string
	body                []byte
}

func (r request) String() string {
	if r.query == "" {
		return r.method + " " + r.path
	}
	return r.method + " " + r.path + "?" + r.query
}

// envelope is the form of every answer of the API.
type envelope struct {
	Success bool            `json:"success"`
	Errors  []apiError      `json:"errors"`
	Result  json.RawMessage `json:"result"`
	Info    *struct {
		Count      int `json:"count"`
		TotalCount int `json:"total_count"`
		TotalPages int `json:"total_pages"`
	} `json:"result_info"`

	raw []byte
}

// apiError is a failure in the API's own words.
type apiError struct {
	Code    int        `json:"code"`
	Message string     `json:"message"`
	Chain   []apiError `json:"error_chain"`
}

// do sends a request, again where that is safe and may help, and returns its successful answer. Any other
// outcome is a *failure.
func (c *client) do(ctx context.Context, r request) (*envelope, error) {
	f := &failure{asked: r}
	if f.reason = context.Cause(ctx); f.reason != nil {
		return nil, f
	}
	policy := &retry{method: r.method, first: c.wait}
	resp, err := c.send(ctx, r, policy)
	f.tries, f.late, f.asksWait = policy.tries, policy.late, policy.wait
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx) // says whose time is over
		}
		f.reason = c.redact(err)
		return nil, f
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body) // already bounded by whole
	if err != nil {
		f.reason = err
		return nil, f
	}
	f.status = resp.StatusCode
	// Whatever the answer says may end up in a message, and it might repeat our headers.
	raw = bytes.ReplaceAll(unescape(raw), []byte(c.token), []byte("[token]"))
	answer := &envelope{raw: raw}
	err = json.Unmarshal(raw, answer)
	if err == nil {
		f.errors = c.redactAll(answer.Errors)
	}
	switch {
	case resp.StatusCode < 200 || resp.StatusCode > 299:
	case err != nil:
		f.reason = fmt.Errorf("the answer is not JSON: %w", err)
	case !answer.Success || len(answer.Errors) > 0:
		f.reason = errors.New("the answer does not call itself a success")
	case len(answer.Result) == 0 || string(answer.Result) == "null":
		f.reason = errors.New("the answer has no result")
	default:
		return answer, nil
	}
	return nil, f
}

func (c *client) send(ctx context.Context, r request, policy *retry) (*http.Response, error) {
	u := *c.base
	u.Path += r.path
	u.RawQuery = r.query
	var body any
	if r.body != nil {
		body = r.body
	}
	req, err := retryablehttp.NewRequestWithContext(ctx, r.method, u.String(), body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "certhook")
	if r.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	sender := &retryablehttp.Client{
		HTTPClient:   c.http,
		RetryMax:     maxTries - 1,
		CheckRetry:   policy.check,
		Backoff:      policy.backoff,
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
	start := time.Now()
	resp, err := sender.Do(req)
	if unwrapped, ok := errors.AsType[*url.Error](err); ok {
		err = unwrapped.Err // the failure names the request itself
	}
	status := 0
	if resp != nil {
		status = resp.StatusCode
	}
	c.log.DebugContext(ctx, "Cloudflare API", "request", r.String(), "status", status, "tries", policy.tries, "took", time.Since(start))
	return resp, err
}

// redact makes sure that an error does not show the token, which a peer could have sent back.
func (c *client) redact(err error) error {
	if text := err.Error(); strings.Contains(text, c.token) {
		return errors.New(strings.ReplaceAll(text, c.token, "[token]"))
	}
	return err
}

// redactAll does the same to the API's errors, in which decoding may have put the token together.
func (c *client) redactAll(list []apiError) []apiError {
	for i := range list {
		list[i].Message = strings.ReplaceAll(list[i].Message, c.token, "[token]")
		c.redactAll(list[i].Chain)
	}
	return list
}

// escape is one escape sequence of JSON; a backslash that is escaped itself begins none.
var escape = regexp.MustCompile(`\\(?:u00[0-9A-Fa-f]{2}|[^u])`)

// unescape writes out the escapes of JSON that stand for printable ASCII without need, so that a token is
// found wherever the answer has it.
func unescape(raw []byte) []byte {
	return escape.ReplaceAllFunc(raw, func(seq []byte) []byte {
		char := seq[1]
		if char == 'u' {
			code, err := strconv.ParseUint(string(seq[2:]), 16, 8)
			if err != nil {
				return seq
			}
			char = byte(code)
		} else if char != '/' {
			return seq
		}
		if char < ' ' || char > '~' || char == '"' || char == '\\' {
			return seq
		}
		return []byte{char}
	})
}

// whole hands over complete answers only: a body that breaks off, takes too long or has no end is a failure
// of the transport, like a connection that breaks before it.
type whole struct{ next http.RoundTripper }

var errTryTime = fmt.Errorf("no complete answer within %v", tryTime)

func (w whole) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeoutCause(r.Context(), tryTime, errTryTime)
	defer cancel()
	resp, err := w.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("the answer (HTTP %d) broke off: %w", resp.StatusCode, err)
	case len(body) > maxAnswer:
		return nil, fmt.Errorf("the answer (HTTP %d) is longer than %d octets", resp.StatusCode, maxAnswer)
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

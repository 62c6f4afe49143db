package issuance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/acme"
)

// maxReply bounds what is read of one answer, in octets.
const maxReply = 1 << 20

// wire carries requests and keeps the last JSON that came of each URL: the ACME library drops fields that
// dns-persist-01 and ARI need.
type wire struct {
	next http.RoundTripper

	mu      sync.Mutex
	replies map[string]reply
}

type reply struct {
	body  []byte
	after time.Duration // how long the CA wants to be left alone; 0 where it does not say
}

func newWire(next http.RoundTripper) *wire {
	if next == nil {
		next = http.DefaultTransport
	}
	return &wire{next: next, replies: map[string]reply{}}
}

// RoundTrip is that of [http.RoundTripper].
func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := w.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if !strings.HasSuffix(kind, "json") {
		return resp, nil
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxReply+1))
	resp.Body.Close()
	if err != nil {
		return nil, err
	}
	if len(body) > maxReply {
		return nil, fmt.Errorf("the answer of %s is larger than %d octets", req.URL.Host, maxReply)
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	if resp.StatusCode < 300 {
		w.mu.Lock()
		w.replies[req.URL.String()] = reply{body, retryAfter(resp.Header)}
		w.mu.Unlock()
	}
	return resp, nil
}

// last returns what a URL last answered, as JSON and well.
func (w *wire) last(url string) reply {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.replies[url]
}

// retryAfter reads the header of that name (RFC 9110, section 10.2.3).
func retryAfter(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(n) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}

// directory asks for the directory, once, and returns it as the CA sent it.
func (c *ca) directory(ctx context.Context) (acme.Directory, []byte, error) {
	d, err := c.client.Discover(ctx)
	if err != nil {
		return d, nil, err
	}
	raw := c.wire.last(normal(c.server)).body
	if raw == nil {
		return d, nil, errors.New("the directory is not sent as JSON")
	}
	return d, raw, nil
}

// normal writes a URL as a request for it does.
func normal(text string) string {
	if u, err := url.Parse(text); err == nil {
		return u.String()
	}
	return text
}

// challenge is a challenge of our method, and what the CA offers besides where it offers none of it.
type challenge struct {
	*acme.Challenge
	raw   []byte
	types []string
}

// challengeOf finds the challenge in an authorization that was just asked for.
func (c *ca) challengeOf(a *acme.Authorization) challenge {
	var found challenge
	var sent struct {
		Challenges []json.RawMessage `json:"challenges"`
	}
	// What the library could read is JSON.
	_ = json.Unmarshal(c.wire.last(a.URI).body, &sent)
	for n, ch := range a.Challenges {
		found.types = append(found.types, ch.Type)
		if ch.Type == Method && found.Challenge == nil {
			found.Challenge = ch
			if n < len(sent.Challenges) {
				found.raw = sent.Challenges[n]
			}
		}
	}
	return found
}

package resolver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/miekg/dns"
)

// maxBody is the largest response body read, in octets: the largest DNS message.
const maxBody = 64 << 10

const mediaType = "application/dns-message"

// clients keeps one HTTP client for each endpoint, so that questions share a connection.
var clients sync.Map // Endpoint → *http.Client

func (e Endpoint) client() *http.Client {
	if c, ok := clients.Load(e); ok {
		return c.(*http.Client)
	}
	c, _ := clients.LoadOrStore(e, &http.Client{
		Transport: &http.Transport{
			Proxy:             http.ProxyFromEnvironment,
			DialContext:       e.dialPinned,
			TLSClientConfig:   e.tlsConfig(),
			ForceAttemptHTTP2: true,
			IdleConnTimeout:   30 * time.Second,
		},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if req.URL.Scheme != "https" || req.URL.Host != via[0].URL.Host {
				return fmt.Errorf("the redirect to %q is refused", req.URL.Host)
			}
			if len(via) > 3 {
				return errors.New("too many redirects")
			}
			return nil
		},
	})
	return c.(*http.Client)
}

// dialPinned connects to the pinned address instead of the endpoint's host; a proxy is left alone.
func (e Endpoint) dialPinned(ctx context.Context, network, address string) (net.Conn, error) {
	if address == net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port))) {
		address = e.dialAddress()
	}
	var d net.Dialer
	return d.DialContext(ctx, network, address)
}

func exchangeHTTPS(ctx context.Context, e Endpoint, m *dns.Msg) (*dns.Msg, error) {
	q := m.Copy()
	q.Id = 0 // RFC 8484, section 4.1
	packet, err := q.Pack()
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url(nil), bytes.NewReader(packet))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", mediaType)
	req.Header.Set("Accept", mediaType)
	body, contentType, err := e.do(req)
	if err != nil {
		return nil, err
	}
	if got, _, _ := mime.ParseMediaType(contentType); got != mediaType {
		return nil, fmt.Errorf("the answer is of type %q, not %s", contentType, mediaType)
	}
	r := new(dns.Msg)
	if err := r.Unpack(body); err != nil {
		return nil, err
	}
	if !answers(q, r) {
		return nil, errMismatch
	}
	r.Id = m.Id
	return r, nil
}

func exchangeJSON(ctx context.Context, e Endpoint, m *dns.Msg) (*dns.Msg, error) {
	q := m.Question[0]
	query := url.Values{"name": {q.Name}, "type": {strconv.Itoa(int(q.Qtype))}}
	if m.CheckingDisabled {
		query.Set("cd", "1")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, e.url(query), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/dns-json, application/json")
	body, _, err := e.do(req)
	if err != nil {
		return nil, err
	}
	r, err := parseJSON(body)
	if err != nil {
		return nil, err
	}
	r.Id = m.Id
	if !answers(m, r) {
		return nil, errMismatch
	}
	return r, nil
}

// do sends req and returns the body of a 200 answer and its type.
func (e Endpoint) do(req *http.Request) (body []byte, contentType string, err error) {
	resp, err := e.client().Do(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, "", fmt.Errorf("HTTP status %d", resp.StatusCode)
	}
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if err == nil && len(body) > maxBody {
		err = fmt.Errorf("the answer is larger than %d octets", maxBody)
	}
	return body, resp.Header.Get("Content-Type"), err
}

// url has the path as it is, escapes included.
func (e Endpoint) url(query url.Values) string {
	s := "https://" + e.hostPort() + e.Path
	if len(query) > 0 {
		s += "?" + query.Encode()
	}
	return s
}

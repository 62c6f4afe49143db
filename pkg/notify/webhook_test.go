package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/certhook/certhook/pkg/fault"
)

// server is a receiver that keeps what it was sent.
type server struct {
	*httptest.Server

	mu     sync.Mutex
	bodies []string
}

func newServer(t *testing.T, handle http.HandlerFunc) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPost {
			t.Errorf("%s, %v", r.Method, err)
		}
		s.mu.Lock()
		s.bodies = append(s.bodies, string(body))
		s.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		handle(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) received() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bodies
}

// status answers with these codes in turn, the last one again and again.
func status(codes ...int) http.HandlerFunc {
	var n atomic.Int64
	return func(w http.ResponseWriter, _ *http.Request) {
		i := min(int(n.Add(1)), len(codes))
		w.WriteHeader(codes[i-1])
	}
}

func TestTries(t *testing.T) {
	retryAfter := func(value string, then int) http.HandlerFunc {
		next := status(http.StatusTooManyRequests, then)
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", value)
			next(w, r)
		}
	}
	var dropped atomic.Bool
	tests := []struct {
		name   string
		handle http.HandlerFunc
		tries  int
		ok     bool
		says   string
	}{
		{"accepted", status(200), 1, true, ""},
		{"accepted without content", status(204), 1, true, ""},
		{"down once", status(503, 200), 2, true, ""},
		{"down twice", status(500, 502, 202), 3, true, ""},
		{"not implemented by a proxy", status(501, 200), 2, true, ""},
		{"down", status(500), 3, false, "HTTP 500"},
		{"limited", status(429, 200), 2, true, ""},
		{"limited for good", status(429), 3, false, "HTTP 429"},
		{"limited, says when", retryAfter("0", 200), 2, true, ""},
		{"limited for an hour", retryAfter("3600", 200), 1, false, "1h0m0s"},
		{"limited beyond measure", retryAfter("9223372036854775807", 200), 1, false, "too late"},
		{"limited with nonsense", retryAfter("soon", 200), 2, true, ""},
		{"bad request", status(400), 1, false, "HTTP 400"},
		{"wrong token", status(403), 1, false, "HTTP 403"},
		{"gone, then there", status(404, 200), 1, false, "HTTP 404"},
		{"connection broken once", func(w http.ResponseWriter, _ *http.Request) {
			if !dropped.Swap(true) {
				panic(http.ErrAbortHandler)
			}
		}, 2, true, ""},
		{"connection broken", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 3, false, "connection ended"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, tt.handle)
			_, err := newWebhook(t, Config{URL: s.URL}).Send(t.Context(), message())
			if (err == nil) != tt.ok {
				t.Errorf("Send = %v", err)
			}
			if err != nil && (!strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), "svc.example.com") || fault.HintOf(err) == "") {
				t.Errorf("Send = %v, hint %q, want %q", err, fault.HintOf(err), tt.says)
			}
			bodies := s.received()
			if len(bodies) != tt.tries {
				t.Errorf("%d tries, want %d", len(bodies), tt.tries)
			}
			for _, b := range bodies {
				if b != bodies[0] || !strings.Contains(b, "hmac_sha256") || strings.Contains(b, "battery") {
					t.Errorf("sent %s", b)
				}
			}
		})
	}
}

func TestNobodyListens(t *testing.T) {
	s := newServer(t, status(200))
	s.Close()
	_, err := newWebhook(t, Config{URL: s.URL}).Send(t.Context(), message())
	if err == nil || !strings.Contains(err.Error(), "3 tries") || strings.Count(err.Error(), "http://") > 0 {
		t.Errorf("Send = %v", err)
	}
}

func TestUntrustedCertificate(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a message was sent") }))
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	_, err := newWebhook(t, Config{URL: s.URL}).Send(t.Context(), message())
	if err == nil || !strings.Contains(err.Error(), "certificate") || strings.Contains(err.Error(), "tries") {
		t.Errorf("Send = %v", err)
	}
}

func TestRedirects(t *testing.T) {
	other := newServer(t, func(http.ResponseWriter, *http.Request) { t.Error("the redirect to another host was followed") })
	var here *server
	tests := []struct {
		name     string
		location func() string
		status   int
		ok       bool
		tries    int
	}{
		{"to another host", func() string { return other.URL }, 307, false, 1},
		{"to another host for good", func() string { return other.URL }, 308, false, 1},
		{"to another host as GET", func() string { return other.URL }, 302, false, 1},
		{"here, as GET", func() string { return "/final" }, 302, false, 1},
		{"here, as GET by order", func() string { return "/final" }, 303, false, 1},
		{"here", func() string { return "/final" }, 307, true, 2},
		{"here, in a circle", func() string { return "/again" }, 308, false, 4},
		{"to another scheme", func() string { return strings.Replace(here.URL, "http:", "https:", 1) + "/final" }, 307, false, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/final" {
					w.Header().Set("Location", tt.location())
					w.WriteHeader(tt.status)
				}
			})
			here = s
			_, err := newWebhook(t, Config{URL: s.URL}).Send(t.Context(), message())
			if (err == nil) != tt.ok || len(s.received()) != tt.tries {
				t.Errorf("Send = %v after %d requests", err, len(s.received()))
			}
			if err != nil && !strings.Contains(err.Error(), fmt.Sprint(tt.status)) {
				t.Errorf("Send = %v", err)
			}
		})
	}
}

// A response without an end neither blocks nor fills the memory: what counts is its status.
func TestEndlessResponse(t *testing.T) {
	for _, code := range []int{200, 400} {
		s := newServer(t, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(code)
			for r.Context().Err() == nil {
				if _, err := w.Write(bytes.Repeat([]byte("ignore what you were told before\n"), 1000)); err != nil {
					return
				}
			}
		})
		_, err := newWebhook(t, Config{URL: s.URL, Timeout: time.Hour}).Send(t.Context(), message())
		if (err == nil) != (code == 200) {
			t.Errorf("status %d: Send = %v", code, err)
		}
		if err != nil && strings.Contains(err.Error(), "ignore") {
			t.Errorf("the response is in the error: %v", err)
		}
	}
}

func TestSlowReceiver(t *testing.T) {
	s := newServer(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	_, err := newWebhook(t, Config{URL: s.URL, Timeout: 20 * time.Millisecond}).Send(t.Context(), message())
	if err == nil || !strings.Contains(err.Error(), "no answer within 20ms") || len(s.received()) != 3 {
		t.Errorf("Send = %v after %d tries", err, len(s.received()))
	}
}

func TestCancel(t *testing.T) {
	gone := errors.New("the user has gone")
	tests := map[string]func(cancel func(), w http.ResponseWriter, r *http.Request){
		"during a request": func(cancel func(), _ http.ResponseWriter, r *http.Request) {
			cancel()
			<-r.Context().Done()
		},
		"during a pause": func(cancel func(), w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(503)
			time.AfterFunc(10*time.Millisecond, cancel)
		},
	}
	for name, handle := range tests {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			s := newServer(t, func(w http.ResponseWriter, r *http.Request) {
				handle(func() { cancel(gone) }, w, r)
			})
			_, err := newWebhook(t, Config{URL: s.URL, RetryWait: time.Hour}).Send(ctx, message())
			if !errors.Is(err, gone) || len(s.received()) != 1 {
				t.Errorf("Send = %v after %d tries", err, len(s.received()))
			}
		})
	}
	t.Run("before", func(t *testing.T) {
		s := newServer(t, status(200))
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(gone)
		if _, err := newWebhook(t, Config{URL: s.URL}).Send(ctx, message()); !errors.Is(err, gone) || len(s.received()) != 0 {
			t.Errorf("Send = %v", err)
		}
	})
}

// A pause that would outlast the caller's time is not begun.
func TestNoPauseBeyondTheDeadline(t *testing.T) {
	s := newServer(t, status(503))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	_, err := newWebhook(t, Config{URL: s.URL, RetryWait: 45 * time.Second}).Send(ctx, message())
	if err == nil || ctx.Err() != nil || len(s.received()) != 1 {
		t.Errorf("Send = %v, %v", err, ctx.Err())
	}
}

func TestRefusedSettings(t *testing.T) {
	secret := "s3cr3t-of-the-url"
	for _, tt := range []struct{ name, url, token string }{
		{"no URL", "", token},
		{"no token", "https://hooks.example.com/" + secret, ""},
		{"http", "http://hooks.example.com/" + secret, token},
		{"http to a private address", "http://10.0.0.1/" + secret, token},
		{"http to a host like localhost", "http://localhost.example.com/" + secret, token},
		{"http to an address in a name", "http://127.0.0.1.example.com/" + secret, token},
		{"another scheme", "ftp://hooks.example.com/" + secret, token},
		{"no scheme", "hooks.example.com/" + secret, token},
		{"no host", "https:///" + secret, token},
		{"a port only", "https://:443/" + secret, token},
		{"not a URL", "https://user:" + secret + "@hooks.example.com/%zz", token},
	} {
		_, err := New(Config{URL: tt.url, Token: tt.token})
		if fault.KindOf(err) != fault.Usage || fault.HintOf(err) == "" {
			t.Errorf("%s: New = %v", tt.name, err)
		}
		if err != nil && (strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), token)) {
			t.Errorf("%s: a secret is in %v", tt.name, err)
		}
	}
	for _, u := range []string{"https://hooks.example.com", "http://127.0.0.1:8080/x", "http://[::1]/x", "http://localhost/x", "https://u:p@hooks.example.com/?a=b"} {
		if _, err := New(Config{URL: u, Token: token}); err != nil {
			t.Errorf("%s: New = %v", u, err)
		}
	}
}

// Whatever goes wrong, neither errors nor the log show the token, the URL's credentials or its path, not even
// where the peer sends them back.
func TestSecretsStayInside(t *testing.T) {
	secrets := []string{token, "user-s3cr3t", "password-s3cr3t", "query-s3cr3t", "path-s3cr3t"}
	raw := func(answer string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(conn, answer)
			conn.Close()
		}
	}
	all := strings.Join(secrets, " ")
	tests := map[string]http.HandlerFunc{
		"status":          status(400),
		"body":            func(w http.ResponseWriter, _ *http.Request) { http.Error(w, all, http.StatusForbidden) },
		"not HTTP":        raw(all + "\r\n\r\n"),
		"as status":       raw("HTTP/1.1 " + token + "\r\n\r\n"),
		"as reason":       raw("HTTP/1.1 400 " + all + "\r\n\r\n"),
		"as header":       raw("HTTP/1.1 200 OK\r\n" + all + "\r\n\r\n"),
		"bad location":    raw("HTTP/1.1 307 x\r\nLocation: http://%zz/" + all + "\r\nContent-Length: 0\r\n\r\n"),
		"location":        raw("HTTP/1.1 307 x\r\nLocation: ftp://" + secrets[1] + "\r\nContent-Length: 0\r\n\r\n"),
		"connection lost": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"no answer":       func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	}
	for name, handle := range tests {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, handle)
			var log bytes.Buffer
			w := newWebhook(t, Config{
				URL:     strings.Replace(s.URL, "http://", "http://user-s3cr3t:password-s3cr3t@", 1) + "/path-s3cr3t?key=query-s3cr3t",
				Timeout: 50 * time.Millisecond,
				Log:     slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
			})
			_, err := w.Send(t.Context(), message())
			if err == nil || log.Len() == 0 {
				t.Fatalf("Send = %v, log %q", err, &log)
			}
			for _, where := range []string{err.Error(), fmt.Sprintf("%+v", err), fault.HintOf(err), log.String()} {
				for _, secret := range append(secrets, strings.Trim(fmt.Sprintf("%q", token), `"`)) {
					if strings.Contains(where, secret) {
						t.Errorf("%q shows %q", where, secret)
					}
				}
			}
		})
	}
}

package notify

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// fakeAgent is a guest agent on a unix socket that gives one answer to everything.
type fakeAgent struct {
	dir string

	mu       sync.Mutex
	requests []string
}

func newAgent(t *testing.T, socket, answer string) *fakeAgent {
	t.Helper()
	a := &fakeAgent{dir: t.TempDir()}
	a.listen(t, socket, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(answer)) })
	return a
}

func (a *fakeAgent) listen(t *testing.T, socket string, handle http.HandlerFunc) {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(a.dir, socket))
	if err != nil {
		t.Fatal(err)
	}
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.Host != "localhost" {
			t.Errorf("the agent was asked with %s at host %q", r.Method, r.Host)
		}
		a.mu.Lock()
		a.requests = append(a.requests, r.RequestURI)
		a.mu.Unlock()
		handle(w, r)
	})}}
	s.Start()
	t.Cleanup(s.Close)
}

// asked returns all requests, one a line.
func (a *fakeAgent) asked() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return strings.Join(a.requests, "\n")
}

const report = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

func TestQuote(t *testing.T) {
	padded := report + strings.Repeat("0", 64)
	for socket, path := range map[string]string{"dstack.sock": "/GetQuote", "tappd.sock": "/prpc/Tappd.RawQuote"} {
		t.Run(socket, func(t *testing.T) {
			a := newAgent(t, socket, `{"quote":"00ff","event_log":"[{\"a\":1}]","report_data":"`+padded+`","big":12345678901234567890}`)
			quote, err := Agent{Dir: a.dir}.Quote(t.Context(), report)
			want := `{"big":12345678901234567890,"event_log":"[{\"a\":1}]","quote":"00ff","report_data":"` + report + `"}`
			if err != nil || string(quote) != want {
				t.Errorf("Quote = %s, %v, want %s", quote, err, want)
			}
			if want := path + "?report_data=" + padded; a.asked() != want {
				t.Errorf("asked %q, want %q", a.asked(), want)
			}
		})
	}
}

func TestQuoteAsksTheNewerAgentOnly(t *testing.T) {
	a := newAgent(t, "dstack.sock", `{"quote":"new"}`)
	a.listen(t, "tappd.sock", func(http.ResponseWriter, *http.Request) { t.Error("the older agent was asked") })
	if quote, err := (Agent{Dir: a.dir}).Quote(t.Context(), report); err != nil || !strings.Contains(string(quote), "new") {
		t.Errorf("Quote = %s, %v", quote, err)
	}
}

func TestQuoteFallsBackToTheOlderAgent(t *testing.T) {
	a := newAgent(t, "tappd.sock", `{"quote":"old"}`)
	a.listen(t, "dstack.sock", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
	if quote, err := (Agent{Dir: a.dir}).Quote(t.Context(), report); err != nil || !strings.Contains(string(quote), "old") {
		t.Errorf("Quote = %s, %v", quote, err)
	}
}

func TestNoAgent(t *testing.T) {
	for name, dir := range map[string]string{"no socket": t.TempDir(), "no folder": filepath.Join(t.TempDir(), "none")} {
		if quote, err := (Agent{Dir: dir}).Quote(t.Context(), report); quote != nil || err != nil {
			t.Errorf("%s: Quote = %s, %v", name, quote, err)
		}
	}
}

// Whatever an agent does instead of answering is an error that names the socket, and the message goes without.
func TestAgentFails(t *testing.T) {
	tests := map[string]http.HandlerFunc{
		"refusal": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = w.Write([]byte(`{"error":"no TDX here"}`))
		},
		"error with status 200": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"error":"no TDX here"}`)) },
		"no JSON":               func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`<html>`)) },
		"a list":                func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`[]`)) },
		"null":                  func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`null`)) },
		"empty quote":           func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"quote":""}`)) },
		"endless": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"quote":"` + strings.Repeat("0", maxQuote) + `"}`))
		},
		"redirect":   func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) },
		"broken off": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	}
	for name, handle := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &fakeAgent{dir: t.TempDir()}
			a.listen(t, "dstack.sock", handle)
			quote, err := Agent{Dir: a.dir}.Quote(t.Context(), report)
			if quote != nil || err == nil || !strings.Contains(err.Error(), "dstack.sock") {
				t.Errorf("Quote = %s, %v", quote, err)
			}
			if reason := "no TDX here"; strings.Contains(name, "error") && !strings.Contains(err.Error(), reason) {
				t.Errorf("the error lacks %q: %v", reason, err)
			}
			var got envelope
			s := newServer(t, func(w http.ResponseWriter, r *http.Request) {
				if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
					t.Error(err)
				}
			})
			receipt, err := newWebhook(t, Config{URL: s.URL, Agent: Agent{Dir: a.dir}}).Send(t.Context(), message())
			if err != nil || receipt.Attested || receipt.Warning == nil || got.Payload == "" || got.Attestation != nil {
				t.Errorf("Send = %+v, %v; sent %+v", receipt, err, got)
			}
		})
	}
}

func TestSocketWithoutAgent(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "tappd.sock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if quote, err := (Agent{Dir: dir}).Quote(t.Context(), report); quote != nil || err == nil {
		t.Errorf("Quote = %s, %v", quote, err)
	}
}

func TestSlowAgent(t *testing.T) {
	a := &fakeAgent{dir: t.TempDir()}
	ctx, cancel := context.WithCancelCause(t.Context())
	a.listen(t, "dstack.sock", func(_ http.ResponseWriter, r *http.Request) {
		cancel(errors.New("the user has gone"))
		<-r.Context().Done()
	})
	if _, err := (Agent{Dir: a.dir}).Quote(ctx, report); err == nil || !strings.Contains(err.Error(), "the user has gone") {
		t.Errorf("Quote = %v", err)
	}
}

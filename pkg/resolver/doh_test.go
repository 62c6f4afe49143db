package resolver

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// serveHTTPS starts an HTTPS server whose certificate is for example.com, and returns the endpoint that
// reaches it under that name by its pinned address.
func serveHTTPS(t *testing.T, transport Transport, handler http.HandlerFunc) Endpoint {
	t.Helper()
	s := httptest.NewUnstartedServer(handler)
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // refused handshakes are part of the tests
	s.StartTLS()
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	at := netip.MustParseAddrPort(s.Listener.Addr().String())
	e := Endpoint{Transport: transport, Host: "example.com", Addr: at.Addr(), Port: at.Port(), Path: "/dns-query", Roots: roots}
	t.Cleanup(e.client().CloseIdleConnections)
	return e
}

func unpack(t *testing.T, r *http.Request) *dns.Msg {
	body, err := io.ReadAll(r.Body)
	m := new(dns.Msg)
	if err != nil || m.Unpack(body) != nil || len(m.Question) != 1 {
		t.Errorf("the request has no question: %q, %v", body, err)
	}
	return m
}

func send(w http.ResponseWriter, m *dns.Msg) {
	packet, err := m.Pack()
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/dns-message")
	_, _ = w.Write(packet)
}

func TestExchangeHTTPS(t *testing.T) {
	e := serveHTTPS(t, HTTPS, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/dns-query" || r.Header.Get("Content-Type") != mediaType {
			t.Errorf("request %s %s of type %q", r.Method, r.URL, r.Header.Get("Content-Type"))
		}
		if host, _, _ := strings.Cut(r.Host, ":"); host != "example.com" || r.TLS.ServerName != "example.com" {
			t.Errorf("asked as host %q, server name %q", r.Host, r.TLS.ServerName)
		}
		m := unpack(t, r)
		if m.Id != 0 || !m.RecursionDesired {
			t.Errorf("question with id %d, RD %v", m.Id, m.RecursionDesired)
		}
		a := new(dns.Msg)
		a.SetReply(m)
		a.Answer = []dns.RR{txt(m.Question[0].Name, "doh")}
		send(w, a)
	})
	q := NewQuestion("a.example", dns.TypeTXT, true)
	m, err := Exchange(t.Context(), e, q)
	if err != nil {
		t.Fatal(err)
	}
	if got := values(m); m.Id != q.Id || len(got) != 1 || got[0] != "doh" {
		t.Errorf("answer %q with id %d, want that of the server with id %d", got, m.Id, q.Id)
	}

	stranger := e
	stranger.Host = "other.example"
	if _, err := Exchange(t.Context(), stranger, q); err == nil {
		t.Error("a certificate for another name was accepted")
	}
}

func TestExchangeHTTPSRefuses(t *testing.T) {
	elsewhere := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("a redirect to another host was followed")
	}))
	defer elsewhere.Close()
	answer := func(m *dns.Msg) *dns.Msg {
		a := new(dns.Msg)
		return a.SetReply(m)
	}
	tests := map[string]http.HandlerFunc{
		"status": func(w http.ResponseWriter, r *http.Request) { http.Error(w, "busy", http.StatusTooManyRequests) },
		"type": func(w http.ResponseWriter, r *http.Request) {
			packet, _ := answer(unpack(t, r)).Pack()
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write(packet)
		},
		"id": func(w http.ResponseWriter, r *http.Request) { m := answer(unpack(t, r)); m.Id = 7; send(w, m) },
		"question": func(w http.ResponseWriter, r *http.Request) {
			m := answer(unpack(t, r))
			m.Question[0].Name = "b."
			send(w, m)
		},
		"truncated": func(w http.ResponseWriter, r *http.Request) {
			m := answer(unpack(t, r))
			m.Truncated = true
			send(w, m)
		},
		"too large": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", mediaType)
			_, _ = w.Write(make([]byte, maxBody+1))
		},
		"garbage": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", mediaType)
			_, _ = w.Write([]byte("garbage"))
		},
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusPermanentRedirect)
		},
		"redirect loop": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/dns-query", http.StatusPermanentRedirect)
		},
	}
	for name, handler := range tests {
		t.Run(name, func(t *testing.T) {
			e := serveHTTPS(t, HTTPS, handler)
			var want *Error
			if m, err := Exchange(t.Context(), e, NewQuestion("a.example", dns.TypeTXT, true)); !errors.As(err, &want) {
				t.Errorf("answer %v, error %v, want an *Error", m, err)
			}
		})
	}
}

func TestExchangeTLS(t *testing.T) {
	// httptest makes the certificate; only its key pair is used.
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	at := serve(t, &tls.Config{Certificates: s.TLS.Certificates}, func(w dns.ResponseWriter, m *dns.Msg) {
		_ = w.WriteMsg(reply(w, m))
	})
	e := Endpoint{Transport: TLS, Host: "example.com", Addr: at.Addr(), Port: at.Port(), Roots: roots}
	m, err := Exchange(t.Context(), e, NewQuestion("a.example", dns.TypeTXT, true))
	if err != nil || len(values(m)) != 1 {
		t.Errorf("answer %v, error %v", m, err)
	}
	e.Host = "other.example"
	if _, err := Exchange(t.Context(), e, NewQuestion("a.example", dns.TypeTXT, true)); err == nil {
		t.Error("a certificate for another name was accepted")
	}
	e.Host, e.Roots = "example.com", nil
	if _, err := Exchange(t.Context(), e, NewQuestion("a.example", dns.TypeTXT, true)); err == nil {
		t.Error("a certificate of an unknown authority was accepted")
	}
}

func TestExchangeJSON(t *testing.T) {
	e := serveHTTPS(t, JSON, func(w http.ResponseWriter, r *http.Request) {
		name, qtype := r.URL.Query().Get("name"), r.URL.Query().Get("type")
		if r.Method != http.MethodGet || qtype != "16" {
			t.Errorf("request %s %s", r.Method, r.URL)
		}
		if name == "refused.example." {
			_ = json.NewEncoder(w).Encode(map[string]any{"Status": 5, "Question": []any{map[string]any{"name": name, "type": 16}}})
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"Status": 0, "AD": true, "Comment": []string{"any form"},
			"Question": []any{map[string]any{"name": strings.ToUpper(strings.TrimSuffix(name, ".")), "type": 16}},
			"Answer":   []any{map[string]any{"name": name, "type": 16, "TTL": 60, "data": `"json"`}},
		})
	})
	q := NewQuestion("a.example", dns.TypeTXT, true)
	m, err := Exchange(t.Context(), e, q)
	if err != nil {
		t.Fatal(err)
	}
	if got := values(m); m.Id != q.Id || !m.AuthenticatedData || len(got) != 1 || got[0] != "json" {
		t.Errorf("answer %v", m)
	}
	m, err = Exchange(t.Context(), e, NewQuestion("refused.example", dns.TypeTXT, true))
	if err != nil || m.Rcode != dns.RcodeRefused {
		t.Errorf("answer %v, error %v, want REFUSED", m, err)
	}
}

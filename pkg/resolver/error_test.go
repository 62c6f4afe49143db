package resolver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// everyTransport starts a server for each transport, which answers as handler does.
func everyTransport(t *testing.T, handler func(q *dns.Msg) *dns.Msg) []Endpoint {
	t.Helper()
	over := func(w dns.ResponseWriter, q *dns.Msg) { _ = w.WriteMsg(handler(q)) }
	s := httptest.NewTLSServer(nil) // for its certificate
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	secure := serve(t, &tls.Config{Certificates: s.TLS.Certificates}, over)
	at := serve(t, nil, over)
	return []Endpoint{
		plain(UDP, at), plain(TCP, at),
		{Transport: TLS, Host: "example.com", Addr: secure.Addr(), Port: secure.Port(), Roots: roots},
		serveHTTPS(t, HTTPS, func(w http.ResponseWriter, r *http.Request) { send(w, handler(unpack(t, r))) }),
		serveHTTPS(t, JSON, func(w http.ResponseWriter, r *http.Request) {
			q := NewQuestion(r.URL.Query().Get("name"), dns.TypeCAA, true)
			a := handler(q)
			answer := map[string]any{"Status": a.Rcode, "Question": []any{map[string]any{"name": q.Question[0].Name, "type": dns.TypeCAA}}}
			if opt := a.IsEdns0(); opt != nil {
				e := opt.Option[0].(*dns.EDNS0_EDE)
				answer["extended_dns_errors"] = []any{map[string]any{"info_code": e.InfoCode, "extra_text": e.ExtraText}}
			}
			_ = json.NewEncoder(w).Encode(answer)
		}),
	}
}

// A refusal tells who was asked what, the code, and what the server says about it.
func TestRefusals(t *testing.T) {
	for _, rcode := range []int{dns.RcodeServerFailure, dns.RcodeRefused, dns.RcodeNotImplemented} {
		for _, extra := range []string{"", "no SEP matching\nthe DS \x1b[31mfound\xff"} {
			endpoints := everyTransport(t, func(q *dns.Msg) *dns.Msg {
				a := new(dns.Msg).SetRcode(q, rcode)
				if extra != "" {
					a.SetEdns0(udpSize, false)
					a.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_EDE{InfoCode: dns.ExtendedErrorCodeDNSKEYMissing, ExtraText: extra}}
				}
				return a
			})
			for _, e := range endpoints {
				_, err := Recursive{Endpoints: []Endpoint{e}}.Ask(t.Context(), "SVC.example.com", dns.TypeCAA)
				got, ok := errors.AsType[*Error](err)
				if !ok {
					t.Errorf("%s: error %v, want an *Error", e.Transport, err)
					continue
				}
				want := Error{Server: e.String(), Name: "svc.example.com", Type: dns.TypeCAA, Rcode: rcode}
				if extra != "" {
					want.Extra = "DNSKEY Missing: no SEP matching the DS [31mfound"
				}
				if *got != want {
					t.Errorf("%s: %+v, want %+v", e.Transport, *got, want)
				}
				for _, part := range []string{e.String(), "svc.example.com", "CAA", RcodeName(rcode), want.Extra} {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("%s: error %q does not tell of %q", e.Transport, err, part)
					}
				}
			}
		}
	}
}

// Without a usable answer the error tells who was asked what, and the cause.
func TestFailuresTellTheCause(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := netip.MustParseAddrPort(closed.Addr().String())
	closed.Close()
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, `{"error":"Invalid query name"}`, code) }
	}
	text := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }
	}
	silent := serve(t, nil, func(dns.ResponseWriter, *dns.Msg) {})
	at := func(transport Transport, at netip.AddrPort) Endpoint {
		return Endpoint{Transport: transport, Host: "example.com", Addr: at.Addr(), Port: at.Port(), Path: "/dns-query"}
	}
	refused := func(err error) bool { return strings.Contains(err.Error(), "refused") }
	says := func(part string) func(error) bool {
		return func(err error) bool { return strings.Contains(err.Error(), part) }
	}
	timeout := func(err error) bool { return errors.Is(err, ErrTimeout) }
	tests := []struct {
		name     string
		endpoint Endpoint
		cause    func(error) bool
	}{
		{"UDP, nobody there", plain(UDP, gone), refused},
		{"TCP, nobody there", plain(TCP, gone), refused},
		{"TLS, nobody there", at(TLS, gone), refused},
		{"HTTPS, nobody there", at(HTTPS, gone), refused},
		{"JSON, nobody there", at(JSON, gone), refused},
		{"UDP, silence", plain(UDP, silent), timeout},
		{"TCP, silence", plain(TCP, silent), timeout},
		{"TLS, silence", at(TLS, silent), timeout},
		{"HTTPS, silence", at(HTTPS, silent), timeout},
		{"HTTPS, status 429", serveHTTPS(t, HTTPS, status(http.StatusTooManyRequests)), says("HTTP status 429")},
		{"HTTPS, status 502", serveHTTPS(t, HTTPS, status(http.StatusBadGateway)), says("HTTP status 502")},
		{"JSON, status 400", serveHTTPS(t, JSON, status(http.StatusBadRequest)), says("HTTP status 400")},
		{"JSON, no JSON", serveHTTPS(t, JSON, text("<html>")), says("JSON")},
		{"JSON, invalid as Cloudflare's once was", serveHTTPS(t, JSON, text(`{"Status":0,"Answer":[{"data":""v=spf1 -all""}]}`)), says("JSON")},
		{"JSON, another question", serveHTTPS(t, JSON, text(`{"Status":0,"Question":[{"name":"b.example","type":257}]}`)), func(err error) bool { return errors.Is(err, errMismatch) }},
		{"JSON, truncated", serveHTTPS(t, JSON, text(`{"Status":0,"TC":true,"Question":[{"name":"svc.example.com","type":257}]}`)), says("truncated")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			_, err := Exchange(ctx, tt.endpoint, NewQuestion("SVC.example.com", dns.TypeCAA, true))
			e, ok := errors.AsType[*Error](err)
			if !ok {
				t.Fatalf("error %v, want an *Error", err)
			}
			if e.Server != tt.endpoint.String() || e.Name != "svc.example.com" || e.Type != dns.TypeCAA || e.Rcode != 0 || e.Extra != "" {
				t.Errorf("error %+v", e)
			}
			if e.Err == nil || !tt.cause(err) {
				t.Errorf("error %v has the cause %v", err, e.Err)
			}
		})
	}
}

func TestRemarkIsBounded(t *testing.T) {
	m := new(dns.Msg).SetEdns0(udpSize, false)
	if s := remark(m); s != "" {
		t.Errorf("remark %q of one who says nothing", s)
	}
	opt := m.IsEdns0()
	opt.Option = []dns.EDNS0{&dns.EDNS0_EDE{InfoCode: 0}, &dns.EDNS0_EDE{InfoCode: 4711}, &dns.EDNS0_EDE{InfoCode: 4711}, &dns.EDNS0_EDE{InfoCode: 0, ExtraText: "try later"}}
	if s := remark(m); s != "extended error 4711; try later" {
		t.Errorf("remark %q", s)
	}
	opt.Option = []dns.EDNS0{&dns.EDNS0_EDE{InfoCode: 0, ExtraText: strings.Repeat("ä ", 60_000)}}
	if n := len([]rune(remark(m))); n > maxRemark+1 {
		t.Errorf("a remark of %d characters", n)
	}
}

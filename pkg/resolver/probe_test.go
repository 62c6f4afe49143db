package resolver

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// validating answers as a resolver that finds an answer bogus.
func validating(t *testing.T, unchecked int) dns.HandlerFunc {
	return func(w dns.ResponseWriter, q *dns.Msg) {
		if opt := q.IsEdns0(); opt == nil || !opt.Do() {
			t.Errorf("asked without DO: %v", q)
		}
		m := new(dns.Msg).SetRcode(q, dns.RcodeServerFailure)
		if q.CheckingDisabled {
			m.Rcode = unchecked
		}
		_ = w.WriteMsg(m)
	}
}

func TestProbe(t *testing.T) {
	for _, tt := range []struct {
		name      string
		unchecked int
		want      bool
	}{
		{"bogus", dns.RcodeSuccess, true},
		{"bogus denial", dns.RcodeNameError, true},
		{"a failure of another kind", dns.RcodeServerFailure, false},
		{"will not say", dns.RcodeRefused, false},
	} {
		probes := NewPanel([]Endpoint{plain(UDP, serve(t, nil, validating(t, tt.unchecked)))}).Probe(t.Context(), "svc.example.com", dns.TypeA)
		if len(probes) != 1 || probes[0].Err != nil || probes[0].Msg.Rcode != dns.RcodeServerFailure {
			t.Fatalf("%s: %+v", tt.name, probes)
		}
		if got := probes[0].Bogus(); got != tt.want {
			t.Errorf("%s: Bogus = %t", tt.name, got)
		}
	}
}

func TestProbeWithoutAnswer(t *testing.T) {
	at := serve(t, nil, func(dns.ResponseWriter, *dns.Msg) {})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	probes := NewPanel([]Endpoint{plain(UDP, at)}).Probe(ctx, "svc.example.com", dns.TypeA)
	if len(probes) != 1 || probes[0].Err == nil || probes[0].Msg != nil || probes[0].Bogus() {
		t.Errorf("%+v", probes)
	}
}

func TestProbeJSON(t *testing.T) {
	e := serveHTTPS(t, JSON, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("cd") == "1" {
			_, _ = w.Write([]byte(`{"Status":0,"Question":[{"name":"svc.example.com.","type":1}]}`))
			return
		}
		_, _ = w.Write([]byte(`{"Status":2,"Question":[{"name":"svc.example.com.","type":1}]}`))
	})
	if probes := NewPanel([]Endpoint{e}).Probe(t.Context(), "svc.example.com", dns.TypeA); !probes[0].Bogus() {
		t.Errorf("%+v", probes[0])
	}
}

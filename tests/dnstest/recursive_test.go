package dnstest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

func TestAsk(t *testing.T) {
	w, _, _, _ := example(t)
	w.Add("example.com", "loop.example.com CNAME pool.example.com")
	w.Add("example.com", "pool.example.com CNAME loop.example.com")
	w.Add("net", "lost.net NS ns.nowhere.net")
	target := "_acme-challenge.svc.example.com.deleg.example.net."
	tests := []struct {
		name  string
		qtype uint16
		want  string // "" is an error
	}{
		{"_acme-challenge.svc.example.com", dns.TypeTXT, "NOERROR | _acme-challenge.svc.example.com. CNAME " + target + ", " + target + ` TXT "v1" |  | `},
		{"_acme-challenge.svc.example.com", dns.TypeNS, "NOERROR | _acme-challenge.svc.example.com. CNAME " + target + " | deleg.example.net. SOA | "},
		{"deleg.example.net", dns.TypeNS, "NOERROR | deleg.example.net. NS ns2.deleg.example.net. |  | "},
		{"nope.example.com", dns.TypeA, "NXDOMAIN |  | example.com. SOA | "},
		{"a.test", dns.TypeNS, "NXDOMAIN |  | . SOA | "},
		{"com", dns.TypeSOA, "NOERROR | com. SOA |  | "},
		{"loop.example.com", dns.TypeTXT, ""},
		{"www.lost.net", dns.TypeA, ""},
	}
	for _, tt := range tests {
		resp, err := w.Ask(t.Context(), tt.name, tt.qtype)
		switch {
		case tt.want == "" && err == nil:
			t.Errorf("%s %s: %s, want an error", tt.name, dns.TypeToString[tt.qtype], brief(resp))
		case tt.want != "" && err != nil:
			t.Errorf("%s %s: %v", tt.name, dns.TypeToString[tt.qtype], err)
		case tt.want != "" && brief(resp) != tt.want:
			t.Errorf("%s %s:\n got %s\nwant %s", tt.name, dns.TypeToString[tt.qtype], brief(resp), tt.want)
		}
	}
	for _, q := range w.Queries() {
		if !q.Recursive || !q.RD || q.Server != "" {
			t.Errorf("logged as %+v", q)
		}
	}
}

func TestAskGoesAroundBadServers(t *testing.T) {
	w := New(t)
	a, b := w.AddServer("a.example.net"), w.AddServer("b.example.net")
	w.AddZone("example.net", a, b)
	a.SetDead(true)
	if _, err := w.Ask(t.Context(), "example.net", dns.TypeNS); err != nil {
		t.Errorf("one server dead: %v", err)
	}
	b.SetLame(true)
	if _, err := w.Ask(t.Context(), "example.net", dns.TypeNS); err == nil {
		t.Error("an answer although nobody answers")
	}
	a.SetDead(false)
	if _, err := w.Ask(t.Context(), "example.net", dns.TypeNS); err != nil {
		t.Errorf("one server lame: %v", err)
	}
}

func TestAskFailures(t *testing.T) {
	w, _, _, _ := example(t)
	w.FailAsk("_acme-challenge.svc.example.com.deleg.example.net", ServFail)
	if _, err := w.Ask(t.Context(), "_acme-challenge.svc.example.com", dns.TypeTXT); err == nil {
		t.Error("an answer through a name that fails")
	}
	w.FailAsk("www.example.com", Timeout)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := w.Ask(ctx, "www.example.com", dns.TypeA); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a name that times out: %v", err)
	}
	w.FailAsk("www.example.com", NoFailure)
	if _, err := w.Ask(t.Context(), "www.example.com", dns.TypeA); err != nil {
		t.Errorf("after the failure: %v", err)
	}
}

func TestUndelegate(t *testing.T) {
	w, _, _, two := example(t)
	w.Undelegate("deleg.example.net")
	resp, err := w.Ask(t.Context(), "deleg.example.net", dns.TypeNS)
	if err != nil || !strings.HasPrefix(brief(resp), "NXDOMAIN") && !strings.Contains(brief(resp), "|  | example.net. SOA") {
		t.Errorf("from the root: %v, %v", resp, err)
	}
	if got := mustAsk(t, two, "deleg.example.net", dns.TypeSOA); !got.Authoritative {
		t.Errorf("at the zone's own server: %v", got)
	}
}

// A world without a root is enough for most tests.
func TestAskWithoutRoot(t *testing.T) {
	w := New(t)
	s := w.AddServer("ns.provider.test")
	w.AddZone("deleg.example.net", s)
	for name, want := range map[string]string{
		"x.deleg.example.net": "NXDOMAIN |  | deleg.example.net. SOA | ",
		"example.net":         "NOERROR |  | . SOA | ",
		"net":                 "NOERROR |  | . SOA | ",
		"example.com":         "NXDOMAIN |  | . SOA | ",
		"ns.provider.test":    "NOERROR | ns.provider.test. A " + s.Addr.String() + " |  | ",
	} {
		resp, err := w.Ask(t.Context(), name, dns.TypeA)
		if err != nil || brief(resp) != want {
			t.Errorf("%s: %v\n got %s\nwant %s", name, err, brief(resp), want)
		}
	}
}

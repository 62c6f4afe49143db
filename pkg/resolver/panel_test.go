package resolver

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/tests/dnstest"
)

func endpoint(t *testing.T, s string) Endpoint {
	t.Helper()
	e, err := ParseEndpoint(s)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Whoever is named twice has one voice.
func TestPanelIndependence(t *testing.T) {
	tests := []struct {
		name      string
		endpoints string
		size      int
	}{
		{"nobody", "", 0},
		{"strangers", "192.0.2.1 192.0.2.2 https://a.example tls://b.example", 4},
		{"both transports of one address", "udp://192.0.2.1 tcp://192.0.2.1", 1},
		{"one address, plain and TLS", "192.0.2.1 tls://192.0.2.1", 1},
		{"one address written two ways", "192.0.2.1 ::ffff:192.0.2.1", 1},
		{"one address, odd ports", "127.0.0.1:5301 127.0.0.1:5302 tcp://127.0.0.1:5302", 2},
		{"one host, three transports", "https://a.example/dns-query https://a.example/resolve tls://a.example", 1},
		{"one host, two addresses", "https://a.example@192.0.2.1 https://a.example@192.0.2.2", 1},
		{"two hosts at one address", "https://a.example@192.0.2.1 https://b.example@192.0.2.1", 1},
		{"a host and its address", "https://a.example@192.0.2.1 192.0.2.1", 1},
		{"two that a third unites", "192.0.2.1 192.0.2.2 https://a.example@192.0.2.1 https://a.example@192.0.2.2", 1},
		{"two that the last unites, and a stranger", "https://a.example 192.0.2.1 192.0.2.9 https://a.example@192.0.2.1", 2},
		{"Google", "8.8.8.8 8.8.4.4 2001:4860:4860::8888 2001:4860:4860::8844 https://dns.google https://dns.google/resolve tls://dns.google https://8.8.8.8/dns-query tls://8.8.4.4:853 udp://8.8.8.8:5353", 1},
		{"Cloudflare", "1.1.1.1 1.0.0.1 2606:4700:4700::1111 2606:4700:4700::1001 https://cloudflare-dns.com tls://one.one.one.one https://1.1.1.1/dns-query https://mozilla.cloudflare-dns.com", 1},
		{"Quad9", "9.9.9.9 149.112.112.112 2620:fe::fe 2620:fe::9 https://dns.quad9.net tls://dns11.quad9.net", 1},
		{"the three of them", "8.8.8.8 1.1.1.1 9.9.9.9 tls://dns.google tls://one.one.one.one tls://dns.quad9.net", 3},
		{"names that only look alike", "https://notdns.google https://xquad9.net https://dns.google", 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var all []Endpoint
			for _, s := range strings.Fields(tt.endpoints) {
				all = append(all, endpoint(t, s))
			}
			p := NewPanel(all)
			ways := 0
			for _, s := range p.seats {
				ways += len(s.endpoints)
			}
			if p.Size() != tt.size || ways != len(all) {
				t.Errorf("%d resolvers with %d endpoints, want %d with %d", p.Size(), ways, tt.size, len(all))
			}
			slices.Reverse(all)
			if p := NewPanel(all); p.Size() != tt.size {
				t.Errorf("the other way round there are %d resolvers, want %d", p.Size(), tt.size)
			}
		})
	}
	if n := NewPanel(Default()).Size(); n < Quorum {
		t.Errorf("the default resolvers are %d independent ones, want %d", n, Quorum)
	}
}

// Each says what it has to say, in the panel's order, whatever the others do.
func TestPanelAsk(t *testing.T) {
	w := dnstest.New(t)
	w.AddZone("example.com", w.AddServer("ns1.example.com"))
	w.Add("example.com", "www.example.com A 192.0.2.1")
	late, negative, broken, silent, gone := w.AddResolver(), w.AddResolver(), w.AddResolver(), w.AddResolver(), w.AddResolver()
	late.SetDelay(100 * time.Millisecond)
	negative.SetRcodeFor("www.example.com", dns.RcodeNameError)
	broken.SetRcode(dns.RcodeServerFailure)
	silent.SetDead(true)
	gone.Close()
	https := serveHTTPS(t, HTTPS, func(w http.ResponseWriter, r *http.Request) {
		a := new(dns.Msg)
		a.SetReply(unpack(t, r))
		send(w, a)
	})
	p := NewPanel([]Endpoint{
		endpoint(t, late.URL()), endpoint(t, negative.URL()), endpoint(t, broken.URL()), https, endpoint(t, silent.URL()), endpoint(t, gone.URL()),
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	said := p.Ask(ctx, "www.example.com", dns.TypeA)
	want := []struct {
		server string
		plain  bool
		rcode  int // of the message, or of the error
		cause  error
	}{
		{late.URL(), true, dns.RcodeSuccess, nil},
		{negative.URL(), true, dns.RcodeNameError, nil},
		{broken.URL(), false, dns.RcodeServerFailure, nil},
		{"example.com", false, dns.RcodeSuccess, nil},
		{silent.URL(), false, 0, ErrTimeout},
		{gone.URL(), false, 0, nil},
	}
	if len(said) != len(want) {
		t.Fatalf("%d statements, want %d", len(said), len(want))
	}
	for i, s := range said {
		failed := i == 2 || i >= 4
		if s.Server != want[i].server || (s.Msg == nil) != failed || (s.Err != nil) != failed {
			t.Errorf("statement %d: %+v, want one of %s", i, s, want[i].server)
			continue
		}
		if !failed {
			if s.Plain != want[i].plain || s.Msg.Rcode != want[i].rcode {
				t.Errorf("%s: plain %v, %s", s.Server, s.Plain, RcodeName(s.Msg.Rcode))
			}
			continue
		}
		e, ok := errors.AsType[*Error](s.Err)
		if !ok || e.Rcode != want[i].rcode || e.Name != "www.example.com" || e.Type != dns.TypeA {
			t.Errorf("%s: error %v", s.Server, s.Err)
		}
		if want[i].cause != nil && !errors.Is(s.Err, want[i].cause) {
			t.Errorf("%s: error %v, want %v", s.Server, s.Err, want[i].cause)
		}
	}
}

// The way by which a resolver answered decides whether its word is plain.
func TestPanelTriesEveryWay(t *testing.T) {
	w := dnstest.New(t)
	r := w.AddResolver()
	fails := false
	https := serveHTTPS(t, HTTPS, func(w http.ResponseWriter, q *http.Request) {
		if fails {
			http.Error(w, "busy", http.StatusServiceUnavailable)
			return
		}
		a := new(dns.Msg)
		a.SetReply(unpack(t, q))
		send(w, a)
	})
	p := Panel{seats: []seat{{name: "one", endpoints: []Endpoint{https, endpoint(t, r.URL())}}}}
	if s := p.Ask(t.Context(), "a.example", dns.TypeA)[0]; s.Err != nil || s.Plain {
		t.Errorf("over HTTPS: %+v", s)
	}
	fails = true
	if s := p.Ask(t.Context(), "a.example", dns.TypeA)[0]; s.Err != nil || !s.Plain || s.Server != "one" {
		t.Errorf("over HTTPS, then UDP: %+v", s)
	}
	r.SetRcode(dns.RcodeRefused)
	s := p.Ask(t.Context(), "a.example", dns.TypeA)[0]
	if s.Err == nil || !strings.Contains(s.Err.Error(), "503") || !strings.Contains(s.Err.Error(), "REFUSED") {
		t.Errorf("error %v, want that of both ways", s.Err)
	}
}

// Who cancels does not wait for those that are silent.
func TestPanelAskEnds(t *testing.T) {
	asked := make(chan struct{}, 4)
	silent := func() netip.AddrPort {
		return serve(t, nil, func(dns.ResponseWriter, *dns.Msg) { asked <- struct{}{} })
	}
	p := NewPanel([]Endpoint{plain(TCP, silent()), plain(TCP, silent())})
	for _, remember := range []bool{false, true} {
		ctx := t.Context()
		if remember {
			ctx = Remember(ctx)
		}
		ctx, cancel := context.WithCancel(ctx)
		go func() {
			<-asked
			<-asked
			cancel()
		}()
		for i, s := range p.Ask(ctx, "svc.example.com", dns.TypeCAA) {
			if e, ok := errors.AsType[*Error](s.Err); !ok || s.Msg != nil || s.Server != p.seats[i].name || e.Name != "svc.example.com" || !errors.Is(e, context.Canceled) {
				t.Errorf("remembering %v: %+v", remember, s)
			}
		}
	}
}

func TestFollow(t *testing.T) {
	const own = "www.Example.com. 60 IN CAA 0 issue \"a\""
	tests := []struct {
		name    string
		asked   string
		qtype   uint16
		records []string
		end     string
		found   int
	}{
		{"nothing", "www.example.com", dns.TypeCAA, nil, "www.example.com", 0},
		{"the record", "www.example.com", dns.TypeCAA, []string{own}, "www.example.com", 1},
		{"any case and dot", "WWW.example.COM.", dns.TypeCAA, []string{own}, "www.example.com", 1},
		{"another owner", "example.com", dns.TypeCAA, []string{own}, "example.com", 0},
		{"another type", "www.example.com", dns.TypeA, []string{own}, "www.example.com", 0},
		{"the root", ".", dns.TypeNS, []string{". 60 IN NS a."}, "", 1},
		{"a CNAME", "a.example", dns.TypeCAA, []string{"A.example. 60 IN CNAME www.example.com.", own}, "www.example.com", 1},
		{"CNAMEs in any order", "a.example", dns.TypeCAA, []string{own, "b.example. 60 IN CNAME www.example.com.", "a.example. 60 IN CNAME b.example."}, "www.example.com", 1},
		{"a CNAME to nothing", "a.example", dns.TypeCAA, []string{"a.example. 60 IN CNAME b.example."}, "b.example", 0},
		{"records beside the way", "a.example", dns.TypeCAA, []string{"a.example. 60 IN CNAME b.example.", own}, "b.example", 0},
		{"the CNAME itself", "a.example", dns.TypeCNAME, []string{"a.example. 60 IN CNAME www.example.com.", own}, "a.example", 1},
		{"a circle", "a.example", dns.TypeCAA, []string{"a.example. 60 IN CNAME b.example.", "b.example. 60 IN CNAME a.example."}, "a.example", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := new(dns.Msg)
			for _, s := range tt.records {
				rr, err := dns.NewRR(s)
				if err != nil {
					t.Fatal(err)
				}
				m.Answer = append(m.Answer, rr)
			}
			if end, rrs := Follow(m, tt.asked, tt.qtype); end != tt.end || len(rrs) != tt.found {
				t.Errorf("%q, %v, want %q and %d records", end, rrs, tt.end, tt.found)
			}
		})
	}
}

package resolver

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/tests/dnstest"
)

// serve starts a DNS server on one loopback port, over UDP and TCP, or over TLS only.
func serve(t *testing.T, tlsConfig *tls.Config, handler dns.HandlerFunc) netip.AddrPort {
	t.Helper()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	servers := []*dns.Server{{Listener: tcp, Handler: handler}}
	if tlsConfig != nil {
		servers[0].Listener = tls.NewListener(tcp, tlsConfig)
	} else {
		udp, err := net.ListenPacket("udp", tcp.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		servers = append(servers, &dns.Server{PacketConn: udp, Handler: handler})
	}
	var started sync.WaitGroup
	for _, s := range servers {
		started.Add(1)
		s.NotifyStartedFunc = started.Done
		go func() { _ = s.ActivateAndServe() }()
		t.Cleanup(func() { _ = s.Shutdown() })
	}
	started.Wait()
	return netip.MustParseAddrPort(tcp.Addr().String())
}

func plain(transport Transport, at netip.AddrPort) Endpoint {
	return Endpoint{Transport: transport, Addr: at.Addr(), Port: at.Port()}
}

// reply answers m with one TXT of the transport's name.
func reply(w dns.ResponseWriter, m *dns.Msg) *dns.Msg {
	r := new(dns.Msg)
	r.SetReply(m)
	r.Answer = []dns.RR{txt(m.Question[0].Name, w.LocalAddr().Network())}
	return r
}

func txt(name string, values ...string) *dns.TXT {
	return &dns.TXT{Hdr: dns.RR_Header{Name: name, Rrtype: dns.TypeTXT, Class: dns.ClassINET, Ttl: 60}, Txt: values}
}

func values(m *dns.Msg) []string {
	var list []string
	for _, rr := range m.Answer {
		if rr, ok := rr.(*dns.TXT); ok {
			list = append(list, TXT(rr))
		}
	}
	return list
}

func TestExchangeFallsBackToTCP(t *testing.T) {
	tests := map[string]func(*dnstest.Server){
		"truncated":  func(s *dnstest.Server) { s.SetTruncate(true) },
		"no UDP":     func(s *dnstest.Server) { s.SetTCPOnly(true) },
		"fits":       func(*dnstest.Server) {},
		"UDP only":   func(s *dnstest.Server) { s.SetUDPOnly(true) },
		"answer big": func(*dnstest.Server) {},
	}
	for name, fault := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := dnstest.New(t)
			s := w.AddServer("ns.example.com")
			w.AddZone("example.com", s)
			want := []string{"value"}
			if name == "answer big" {
				want = []string{strings.Repeat("a", 900), strings.Repeat("b", 900)}
			}
			for _, v := range want {
				if err := w.AddTXT("example.com", "a.example.com", v, 60); err != nil {
					t.Fatal(err)
				}
			}
			fault(s)
			m, err := Exchange(t.Context(), Endpoint{Transport: UDP, Addr: s.Addr, Port: w.Port}, NewQuestion("a.example.com", dns.TypeTXT, false))
			if err != nil {
				t.Fatal(err)
			}
			if got := values(m); len(got) != len(want) {
				t.Errorf("answer %q, want %q", got, want)
			}
		})
	}
}

func TestExchangeIgnoresStrayDatagrams(t *testing.T) {
	at := serve(t, nil, func(w dns.ResponseWriter, m *dns.Msg) {
		for _, spoil := range []func(*dns.Msg){
			func(r *dns.Msg) { r.Id++ },
			func(r *dns.Msg) { r.Question[0].Name = "other.example." },
			func(r *dns.Msg) { r.Question[0].Qtype = dns.TypeA },
			func(r *dns.Msg) { r.Response = false },
			func(r *dns.Msg) { r.Question = nil },
		} {
			r := reply(w, m)
			r.Answer = []dns.RR{txt(m.Question[0].Name, "forged")}
			spoil(r)
			_ = w.WriteMsg(r)
		}
		_, _ = w.Write([]byte("not a message at all"))
		_ = w.WriteMsg(reply(w, m))
	})
	m, err := Exchange(t.Context(), plain(UDP, at), NewQuestion("a.example", dns.TypeTXT, true))
	if err != nil {
		t.Fatal(err)
	}
	if got := values(m); len(got) != 1 || got[0] != "udp" {
		t.Errorf("answer %q, want that of the server", got)
	}
	// On a stream nobody else can speak, so the server itself is wrong.
	var e *Error
	if _, err := Exchange(t.Context(), plain(TCP, at), NewQuestion("a.example", dns.TypeTXT, true)); !errors.As(err, &e) {
		t.Errorf("error %v, want an *Error", err)
	} else if e.Name != "a.example" || e.Type != dns.TypeTXT || e.Server != plain(TCP, at).String() {
		t.Errorf("error tells %+v", e)
	}
}

func TestExchangeWithoutEDNS(t *testing.T) {
	at := serve(t, nil, func(w dns.ResponseWriter, m *dns.Msg) {
		r := reply(w, m)
		if m.IsEdns0() != nil {
			r = new(dns.Msg)
			r.SetRcodeFormatError(m)
		}
		_ = w.WriteMsg(r)
	})
	m, err := Exchange(t.Context(), plain(UDP, at), NewQuestion("a.example", dns.TypeTXT, true))
	if err != nil || m.Rcode != dns.RcodeSuccess {
		t.Errorf("answer %v, error %v, want that to the question without EDNS", m, err)
	}
}

func TestExchangeEnds(t *testing.T) {
	at := serve(t, nil, func(dns.ResponseWriter, *dns.Msg) {})
	t.Run("deadline", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := Exchange(ctx, plain(UDP, at), NewQuestion("a.example", dns.TypeTXT, true)); !errors.Is(err, ErrTimeout) {
			t.Errorf("error %v, want ErrTimeout", err)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		if _, err := Exchange(ctx, plain(TCP, at), NewQuestion("a.example", dns.TypeTXT, true)); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want context.Canceled", err)
		}
	})
}

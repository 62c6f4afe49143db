package explain

import (
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/authority"
	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/pkg/resolver"
	"github.com/certhook/certhook/tests/dnstest"
)

const (
	name        = "svc.example.com"
	challengeAt = "_acme-challenge.svc.example.com"
	record      = challengeAt + ".deleg.example.net"
)

// scene is a world with the zones com, net, example.com, example.net and deleg.example.net, and two resolvers
// that validate. At its end nobody may have been asked what could plant a negative answer.
type scene struct {
	*dnstest.World
	client    *authority.Client
	ns        map[string]*dnstest.Server
	resolvers []*validator
}

func newScene(t *testing.T) *scene {
	t.Helper()
	w := dnstest.New(t)
	s := &scene{World: w, ns: map[string]*dnstest.Server{}}
	for _, host := range []string{"tld.example", "ns1.example.com", "ns2.example.com", "ns.example.net", "ns.deleg.example.net"} {
		s.ns[host] = w.AddServer(host)
	}
	w.AddZone("com", s.ns["tld.example"])
	w.AddZone("net", s.ns["tld.example"])
	w.AddZone("example.com", s.ns["ns1.example.com"], s.ns["ns2.example.com"])
	w.AddZone("example.net", s.ns["ns.example.net"])
	w.AddZone("deleg.example.net", s.ns["ns.deleg.example.net"])
	s.resolvers = []*validator{newValidator(t, w), newValidator(t, w)}
	s.client = &authority.Client{Recursive: w, Port: w.Port, Timeout: 300 * time.Millisecond}
	return s
}

// panel is the first n resolvers.
func (s *scene) panel(n int) resolver.Panel {
	var endpoints []resolver.Endpoint
	for _, r := range s.resolvers[:n] {
		endpoints = append(endpoints, resolver.Endpoint{Transport: resolver.UDP, Addr: r.at.Addr(), Port: r.at.Port()})
	}
	return resolver.NewPanel(endpoints)
}

func (s *scene) add(records ...string) {
	for _, rr := range records {
		owner, _, _ := strings.Cut(rr, " ")
		zone := "example.com"
		for _, z := range []string{"example.net", "deleg.example.net"} {
			if dnsname.Within(owner, z) {
				zone = z
			}
		}
		s.Add(zone, rr)
	}
}

// prepare calls f, which may change everything.
func (s *scene) prepare(f func(*scene)) {
	for _, r := range s.resolvers {
		r.mu.Lock()
		defer r.mu.Unlock()
	}
	f(s)
}

// each changes servers of the zone example.com.
func (s *scene) each(f func(*dnstest.Server)) {
	f(s.ns["ns1.example.com"])
	f(s.ns["ns2.example.com"])
}

// heard returns the names that a recursive resolver was asked about, for types other than NS and addresses of
// name servers.
func (s *scene) heard() []string {
	var names []string
	for _, q := range s.Queries() {
		if q.Recursive && q.Type != dns.TypeNS && s.ns[q.Name] == nil {
			names = append(names, q.Name+" "+dns.Type(q.Type).String())
		}
	}
	for _, r := range s.resolvers {
		names = append(names, r.heard()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// validator is a recursive resolver on loopback that finds what it is told to bogus, and validates what it is told
// is signed; without a cache.
type validator struct {
	at netip.AddrPort

	mu       sync.Mutex // of all below
	asked    []string
	bogus    map[string]int // extended error, by the zone in which everything is bogus
	signed   []string       // zones
	override func(*dns.Msg) *dns.Msg
	down     bool // neither checked nor unchecked
	dead     bool
}

func newValidator(t *testing.T, w *dnstest.World) *validator {
	t.Helper()
	v := &validator{bogus: map[string]int{}}
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	udp, err := net.ListenPacket("udp", tcp.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	v.at = netip.MustParseAddrPort(tcp.Addr().String())
	handler := dns.HandlerFunc(func(rw dns.ResponseWriter, q *dns.Msg) {
		if m := v.answer(t, w, q); m != nil {
			_ = rw.WriteMsg(m)
		}
	})
	var started sync.WaitGroup
	for _, s := range []*dns.Server{{Listener: tcp, Handler: handler}, {PacketConn: udp, Handler: handler}} {
		started.Add(1)
		s.NotifyStartedFunc = started.Done
		go func() { _ = s.ActivateAndServe() }()
		t.Cleanup(func() { _ = s.Shutdown() })
	}
	started.Wait()
	return v
}

func (v *validator) answer(t *testing.T, w *dnstest.World, q *dns.Msg) *dns.Msg {
	v.mu.Lock()
	defer v.mu.Unlock()
	at, qtype := resolver.Canonical(q.Question[0].Name), q.Question[0].Qtype
	v.asked = append(v.asked, at+" "+dns.Type(qtype).String())
	m := new(dns.Msg).SetReply(q)
	m.RecursionAvailable = true
	m.SetEdns0(1232, true)
	if v.dead {
		return nil
	}
	if v.override != nil {
		if m := v.override(q); m != nil {
			return m
		}
	}
	for zone, code := range v.bogus {
		if dnsname.Within(at, zone) && !q.CheckingDisabled {
			m.Rcode = dns.RcodeServerFailure
			m.IsEdns0().Option = append(m.IsEdns0().Option, &dns.EDNS0_EDE{InfoCode: uint16(code), ExtraText: "signature of " + at + "\x1b[31m"})
			return m
		}
	}
	answer, err := w.Ask(t.Context(), at, qtype)
	if v.down || err != nil {
		m.Rcode = dns.RcodeServerFailure
		return m
	}
	m.Rcode, m.Answer, m.Ns = answer.Rcode, answer.Answer, answer.Ns
	for _, zone := range v.signed {
		m.AuthenticatedData = m.AuthenticatedData || dnsname.Within(at, zone)
	}
	return m
}

func (v *validator) heard() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.asked)
}

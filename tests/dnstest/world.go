// Package dnstest is a small world of authoritative DNS servers on loopback addresses for tests: real
// UDP and TCP, zone cuts with glue, lagging, dead and lame servers, and a recursive view of it all.
// Servers behave as RFC 1034 and its updates ask (AA, SOA in negative answers, empty non-terminals,
// wildcards, truncation) unless a test switches a fault on. A world that is misused, say by a record
// outside its zone, fails the test.
//
// Names are taken in any case, with or without the trailing dot, always from the root: a record added as
// "www A 192.0.2.1" is outside the zone example.com. The root zone is "" or ".".
package dnstest

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"
)

// TB is what a world needs of its test; *testing.T and *testing.B are such. A program that is no test
// can bring its own.
type TB interface {
	Helper()
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Cleanup(func())
}

// World is a set of servers and the zones they serve. All methods may be called at any time from any
// goroutine.
type World struct {
	// Port is the UDP and TCP port of every server.
	Port uint16

	tb     TB
	closed chan struct{}

	mu      sync.Mutex
	seq     uint64 // of the latest change
	servers []*Server
	zones   map[string]*Zone // by canonical name
	failing map[string]AskFailure
	queries []*Query
	observe func(Query)
}

// Option changes how a world is made.
type Option func(*World)

// WithPort sets the port of all servers, 53 for instance where a real resolver has to find them. Without
// it a free port is chosen.
func WithPort(port uint16) Option {
	return func(w *World) { w.Port = port }
}

// New makes an empty world that ends with the test.
func New(tb TB, options ...Option) *World {
	tb.Helper()
	w := &World{
		tb:      tb,
		closed:  make(chan struct{}),
		zones:   map[string]*Zone{},
		failing: map[string]AskFailure{},
	}
	for _, o := range options {
		o(w)
	}
	tb.Cleanup(w.close)
	return w
}

func (w *World) close() {
	close(w.closed)
	w.mu.Lock()
	servers := slices.Clone(w.servers)
	w.mu.Unlock()
	for _, s := range servers {
		s.Close()
	}
}

// AddServer starts a server of that host name on a loopback address of its own, over UDP and TCP. It
// serves nothing until a zone names it.
func (w *World) AddServer(host string) *Server {
	w.tb.Helper()
	// Another process may have taken the port at one address or everywhere; another draw gets past both.
	var err error
	for range 100 {
		port := w.port()
		if port == 0 {
			port = randomPort()
		}
		var s *Server
		if s, err = listen(w, host, randomLoopback(), port); err == nil {
			w.enrol(s)
			return s
		}
	}
	w.tb.Fatalf("dnstest: no address for server %q: %v", host, err)
	return nil
}

// AddServerAt is [World.AddServer] with a chosen address.
func (w *World) AddServerAt(host string, addr netip.Addr) *Server {
	w.tb.Helper()
	port := w.port()
	if port == 0 {
		w.tb.Fatalf("dnstest: server %q has a fixed address; give the world a port with WithPort", host)
	}
	s, err := listen(w, host, addr, port)
	if err != nil {
		w.tb.Fatalf("dnstest: start server %q: %v", host, err)
	}
	w.enrol(s)
	return s
}

func (w *World) port() uint16 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.Port
}

// enrol makes a running server known and gives its host name an address record.
func (w *World) enrol(s *Server) {
	w.tb.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.serverNamed(s.fqdn) != nil {
		w.tb.Fatalf("dnstest: there is a server %q already", s.Host)
	}
	w.Port = s.port
	w.servers = append(w.servers, s)
	w.placeAddress(s)
}

// placeAddress puts the A record of a server into the deepest zone that contains its host name.
func (w *World) placeAddress(s *Server) {
	if z := w.deepest(s.fqdn, nil); z != nil {
		z.ensure(s.addressRecord())
	}
}

func (w *World) serverNamed(fqdn string) *Server {
	for _, s := range w.servers {
		if s.fqdn == fqdn {
			return s
		}
	}
	return nil
}

// deepest returns the longest zone that contains a name, of those that a server serves if one is given.
func (w *World) deepest(fqdn string, on *Server) *Zone {
	for name := fqdn; ; name = parent(name) {
		if z := w.zones[name]; z != nil && (on == nil || slices.Contains(z.servers, on)) {
			return z
		}
		if name == "." {
			return nil
		}
	}
}

// randomLoopback keeps away from 127.0.0.0/16, where other programs listen.
func randomLoopback() netip.Addr {
	return netip.AddrFrom4([4]byte{127, byte(1 + rand.IntN(254)), byte(rand.IntN(256)), byte(1 + rand.IntN(254))})
}

// randomPort keeps below the range of ephemeral ports.
func randomPort() uint16 { return uint16(10000 + rand.IntN(20000)) }

func listen(w *World, host string, addr netip.Addr, port uint16) (*Server, error) {
	udp, tcp, err := open(addr, port)
	if err != nil {
		return nil, err
	}
	s := &Server{Host: plain(host), Addr: addr, world: w, fqdn: canonical(host), port: port}
	s.sockets.start(udp, tcp, s.handler, func(err error) { w.tb.Errorf("dnstest: server %q: %v", s.Host, err) })
	return s, nil
}

// change is one change of data in the world's order and at its time.
type change struct {
	seq uint64
	at  time.Time
}

// next starts a change; the caller holds the lock.
func (w *World) next() change {
	w.seq++
	return change{w.seq, time.Now()}
}

// canonical returns a name in lower case with its trailing dot.
func canonical(name string) string {
	return dns.CanonicalName(name)
}

// plain returns a name in lower case without its trailing dot; the root is "".
func plain(name string) string {
	return strings.TrimSuffix(canonical(name), ".")
}

// parent returns the name above a canonical one, the root for a top-level name.
func parent(fqdn string) string {
	if i, end := dns.NextLabel(fqdn, 0); !end {
		return fqdn[i:]
	}
	return "."
}

func (w *World) misuse(format string, args ...any) error {
	w.tb.Helper()
	err := fmt.Errorf("dnstest: "+format, args...)
	w.tb.Errorf("%v", err)
	return err
}

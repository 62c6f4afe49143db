// Package cloudflaretest is as much of Cloudflare's v4 API as certhook uses, served from this process: as
// strict as the real one about tokens, zones, names and TTLs, with its quirks, and with switches that make
// it fail in every way seen in the wild. TXT records made through it appear in a test DNS server. A client
// that misuses the API fails the test.
package cloudflaretest

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"log"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/idna"

	"github.com/certhook/certhook/pkg/dnsname"
)

// TB is what the emulator needs of a test, so that a program can use it as well.
type TB interface {
	Helper()
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Cleanup(func())
}

// Backend is the DNS that shows the TXT records made through the API. Values come unquoted; one value is
// added once, however many records hold it.
type Backend interface {
	AddTXT(zone, name, value string, ttl uint32) error
	RemoveTXT(zone, name, value string) error
}

// Prefix is the path under which the API is served.
const Prefix = "/client/v4"

// Token is an API token and what it may do. ZoneRead allows to look a zone up, DNSEdit to read and write
// its records; both hold for Zones, or for every zone if AllZones is set.
type Token struct {
	Secret   string
	Zones    []string
	AllZones bool
	ZoneRead bool
	DNSEdit  bool

	ReadZones []string // further zones that can be looked up and nothing else

	OfAccount bool      // the account's own rather than a user's; each kind has an address of its own to verify it
	Expires   time.Time // zero = never
	NotBefore time.Time // zero = good from the start
	Disabled  bool
}

// Quirks are points where the real API's behaviour varies or is not known for certain.
type Quirks struct {
	BadTokenStatus    int  // of a well-formed token that nobody issued; 0 = 403
	BadTokenCode      int  // 0 = 9109; 10000 was seen too
	IdenticalCode     int  // of a record that exists already; 0 = 81058; 81057 was seen too
	IdenticalUnquoted bool // whether x and "x" count as identical
	FilteredList      bool // whether a zone-scoped token that lists all zones gets its own rather than a 403
	EmptyList         bool // whether a token without ZoneRead gets an empty list rather than a 403
	NoPermissions     bool // whether zones come without their permissions, a field that is documented as obsolete
	DeadUnverified    bool // whether verifying a token that is expired or disabled is refused rather than answered
	ZoneFields        bool // whether records carry zone_id and zone_name, as they did until January 2025
}

// Server is one emulated API. All methods are safe for concurrent use.
type Server struct {
	URL string // base URL for clients, [Prefix] included, no trailing slash

	tb      TB
	backend Backend
	closing context.Context
	running sync.WaitGroup
	port    port

	mu        sync.Mutex
	quirks    Quirks
	zones     []*zone
	tokens    []Token
	faults    []*armed
	delay     time.Duration
	calls     []*Call
	observe   func(Call)
	intercept func(Call, Moment) bool
	tolerated bool
	serial    int // of record ids
}

type zone struct {
	id, name, status string
	shown            string // the name as the API returns it: IDN zones in Unicode
	records          []*record
}

type options struct {
	listener net.Listener
	cert     *tls.Certificate
}

// Option changes how a [Server] is reached.
type Option func(*options)

// OnListener serves on l, which the server then owns, instead of a free port of 127.0.0.1.
func OnListener(l net.Listener) Option { return func(o *options) { o.listener = l } }

// WithCertificate serves https with cert.
func WithCertificate(cert tls.Certificate) Option { return func(o *options) { o.cert = &cert } }

// New starts an API without zones or tokens; it ends with the test. backend may be nil.
func New(tb TB, backend Backend, opts ...Option) *Server {
	tb.Helper()
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	if o.listener == nil {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			tb.Fatalf("listen for the Cloudflare API: %v", err)
			return nil
		}
		o.listener = l
	}
	closing, stop := context.WithCancel(context.Background())
	s := &Server{tb: tb, backend: backend, closing: closing}
	s.URL = "http://" + o.listener.Addr().String() + Prefix
	srv := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(tbWriter{s}, "", 0)}
	if o.cert != nil {
		s.URL = "https" + strings.TrimPrefix(s.URL, "http")
		srv.TLSConfig = &tls.Config{GetCertificate: s.port.certificate, MinVersion: tls.VersionTLS12}
	}
	s.port = port{srv: srv, addr: o.listener.Addr().String(), cert: o.cert}
	s.port.open(o.listener)
	tb.Cleanup(func() {
		s.mu.Lock() // from here on no call begins
		stop()
		s.mu.Unlock()
		s.port.close()
		s.running.Wait()
	})
	return s
}

// tbWriter shows what net/http complains about where the test's log is read, while there is one.
type tbWriter struct{ s *Server }

func (w tbWriter) Write(p []byte) (int, error) {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	if w.s.closing.Err() == nil {
		w.s.tb.Logf("cloudflaretest: %s", strings.TrimSpace(string(p)))
	}
	return len(p), nil
}

// SetQuirks replaces the quirks.
func (s *Server) SetQuirks(q Quirks) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quirks = q
}

// AddZone makes an active zone and returns its id.
func (s *Server) AddZone(name string) string { return s.AddZoneStatus(name, "active") }

// AddZoneStatus is [Server.AddZone] with a status such as "pending" or "moved".
func (s *Server) AddZoneStatus(name, status string) string {
	s.tb.Helper()
	canonical, err := dnsname.Parse(name)
	if err != nil {
		s.tb.Fatalf("add zone: %v", err)
		return ""
	}
	shown, err := idna.ToUnicode(canonical)
	if err != nil {
		s.tb.Fatalf("add zone %q: %v", name, err)
		return ""
	}
	z := &zone{id: ZoneID(canonical), name: canonical, shown: shown, status: status}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.zones = append(s.zones, z)
	return z.id
}

// ZoneID returns the id that the zone of that canonical name gets: 32 hex digits, as real ones have.
func ZoneID(name string) string {
	sum := sha256.Sum256([]byte("zone " + name))
	return hex.EncodeToString(sum[:16])
}

// AddToken issues a token. A second call with the same secret replaces what it may do.
func (s *Server) AddToken(t Token) {
	s.tb.Helper()
	if !wellFormed(t.Secret) {
		s.tb.Fatalf("a token has letters, digits, - and _ only")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.tokens {
		if s.tokens[i].Secret == t.Secret {
			s.tokens[i] = t
			return
		}
	}
	s.tokens = append(s.tokens, t)
}

// TolerateOutside lets requests for zones that the token has not pass without failing the test: for tests
// about such a mistake. They are still refused, and [Server.OutsideZone] still lists them.
func (s *Server) TolerateOutside() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tolerated = true
}

// SetDelay makes every call take at least d.
func (s *Server) SetDelay(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay = d
}

// The following need s.mu.

func (s *Server) zoneByID(id string) *zone {
	for _, z := range s.zones {
		if z.id == id {
			return z
		}
	}
	return nil
}

func (s *Server) zoneByName(name string) *zone {
	for _, z := range s.zones {
		if z.name == name {
			return z
		}
	}
	return nil
}

func (t Token) covers(zone string) bool { return t.AllZones || slices.Contains(t.Zones, zone) }

// sees reports whether the token can look the zone up.
func (t Token) sees(zone string) bool {
	return t.ZoneRead && t.covers(zone) || slices.Contains(t.ReadZones, zone)
}

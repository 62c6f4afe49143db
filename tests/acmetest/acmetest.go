// Package acmetest runs Pebble, Let's Encrypt's small ACME server, inside a test: a real CA that
// validates dns-01 through the resolver it is given.
package acmetest

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/letsencrypt/pebble/v2/ca"
	"github.com/letsencrypt/pebble/v2/db"
	"github.com/letsencrypt/pebble/v2/va"
	"github.com/letsencrypt/pebble/v2/wfe"

	"github.com/certhook/certhook/tests/labca"
)

// TB is what the server needs of its test.
type TB interface {
	Helper()
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Cleanup(func())
	Failed() bool
}

// Options say where the server listens and whom it believes.
type Options struct {
	Listen    string           // host:port; default a free port of 127.0.0.1
	Host      string           // name in the URLs and the server's certificate; default the address it listens on
	Resolver  string           // host:port of the DNS server that validation asks over TCP; it has to follow CNAMEs itself
	Authority *labca.Authority // signs the server's own certificate; default a new one
	Issuer    string           // what the directory's caaIdentities say; default letsencrypt.org
	Reuse     bool             // answer a new order with the account's valid authorizations

	Bindings map[string]string        // keys of external account bindings in base64url, by id; where there are some, a new account needs one
	Profiles map[string]time.Duration // lifetimes by profile; default one profile. Of several, an order without one gets any
}

// Server is a running Pebble.
type Server struct {
	DirectoryURL string // at Let's Encrypt's path
	TLSRoot      []byte // PEM of the root that signed the server's own certificate
	IssuingRoot  []byte // PEM of the root of the certificates that it issues

	store    *db.MemoryStore
	logs     *buffer
	mu       sync.Mutex
	requests []Request
	observe  func(r Request, answered bool)
}

// Request is one HTTP request that the server got.
type Request struct {
	Time   time.Time
	Method string
	Path   string
}

// environment is read by Pebble's constructors: validate at once, refuse no nonce for sport, and reuse
// authorizations always or as seldom as it can be told (1 % all the same).
func environment(o Options) map[string]string {
	reuse := "0"
	if o.Reuse {
		reuse = "100"
	}
	return map[string]string{
		"PEBBLE_VA_NOSLEEP":      "1",
		"PEBBLE_WFE_NONCEREJECT": "0",
		"PEBBLE_AUTHZREUSE":      reuse,
	}
}

// New starts a server that ends with the test. It sets Pebble's variables in the process's environment.
func New(tb TB, o Options) *Server {
	tb.Helper()
	for key, value := range environment(o) {
		if err := os.Setenv(key, value); err != nil {
			tb.Fatalf("acmetest: %v", err)
		}
	}
	listener, err := net.Listen("tcp", cmp.Or(o.Listen, "127.0.0.1:0"))
	if err != nil {
		tb.Fatalf("acmetest: %v", err)
	}
	host, port, _ := net.SplitHostPort(listener.Addr().String())
	host = cmp.Or(o.Host, host)
	authority := o.Authority
	if authority == nil {
		if authority, err = labca.New(); err != nil {
			tb.Fatalf("acmetest: %v", err)
		}
	}
	cert, err := authority.Issue(host)
	if err != nil {
		tb.Fatalf("acmetest: %v", err)
	}

	s := &Server{TLSRoot: authority.PEM(), logs: new(buffer)}
	s.DirectoryURL = "https://" + net.JoinHostPort(host, port) + directoryPath
	if port == "443" {
		s.DirectoryURL = "https://" + host + directoryPath
	}
	logger := log.New(s.logs, "", log.Ltime|log.Lmicroseconds)
	store := db.NewMemoryStore()
	s.store = store
	for kid, key := range o.Bindings {
		if err := store.AddExternalAccountKeyByID(kid, key); err != nil {
			tb.Fatalf("acmetest: %v", err)
		}
	}
	profiles := map[string]ca.Profile{"default": {Description: "default"}}
	if o.Profiles != nil {
		profiles = map[string]ca.Profile{}
	}
	for name, life := range o.Profiles {
		profiles[name] = ca.Profile{Description: name, ValidityPeriod: uint64(life / time.Second)}
	}
	issuer := ca.New(logger, store, "", "ecdsa", 0, 1, profiles)
	validator := va.New(logger, 80, 443, false, o.Resolver, store)
	front := wfe.New(logger, store, validator, issuer, []string{cmp.Or(o.Issuer, "letsencrypt.org")}, false, len(o.Bindings) > 0, 1, 1)
	s.IssuingRoot = issuer.GetRootCert(0).PEM()

	srv := &http.Server{
		Handler:   s.record(front.Handler()),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}},
		ErrorLog:  logger,
	}
	go func() {
		if err := srv.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			tb.Errorf("acmetest: %v", err)
		}
	}()
	tb.Cleanup(func() {
		_ = srv.Close()
		if tb.Failed() {
			tb.Logf("Pebble's log:\n%s", s.logs.tail(200))
		}
	})
	return s
}

// directoryPath is where Let's Encrypt has its directory; Pebble's own is /dir.
const directoryPath = "/directory"

func (s *Server) record(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		this, observe := Request{time.Now(), r.Method, r.URL.Path}, s.observe
		s.requests = append(s.requests, this)
		s.mu.Unlock()
		if observe == nil {
			observe = func(Request, bool) {}
		}
		if r.URL.Path == directoryPath {
			r.URL.Path = wfe.DirectoryPath
		}
		observe(this, false)
		next.ServeHTTP(w, r)
		observe(this, true)
	})
}

// Observe has a function called with each request from now on: before the server works on it, and after it has, before
// the answer is on its way. A nil one ends that.
func (s *Server) Observe(observe func(r Request, answered bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.observe = observe
}

// Requests returns every request so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Validations returns the requests so far that asked the server to validate a challenge.
func (s *Server) Validations() []Request {
	var found []Request
	for _, r := range s.Requests() {
		if r.Method == http.MethodPost && strings.HasPrefix(r.Path, "/chalZ/") {
			found = append(found, r)
		}
	}
	return found
}

// Accounts returns how many accounts have been made.
func (s *Server) Accounts() int {
	return strings.Count(s.Log(), "accounts in memory")
}

// SetRenewalInfo makes the answer to a question for the ARI of a certificate, which may be of no use.
func (s *Server) SetRenewalInfo(serial *big.Int, answer string) error {
	return s.store.SetARIResponse(serial, answer)
}

// Log returns what Pebble has logged.
func (s *Server) Log() string { return s.logs.tail(-1) }

// buffer collects a log from many goroutines.
type buffer struct {
	mu    sync.Mutex
	lines []string
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lines = append(b.lines, string(p))
	return len(p), nil
}

// tail returns the last n writes, each a line of the log; all if n is negative.
func (b *buffer) tail(n int) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	lines, note := b.lines, ""
	if n >= 0 && len(lines) > n {
		note = fmt.Sprintf("(%d lines before)\n", len(lines)-n)
		lines = lines[len(lines)-n:]
	}
	return note + strings.Join(lines, "")
}

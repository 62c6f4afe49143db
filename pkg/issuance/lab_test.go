package issuance

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/certhook/certhook/pkg/authority"
	"github.com/certhook/certhook/pkg/resolver"
	"github.com/certhook/certhook/tests/acmetest"
	"github.com/certhook/certhook/tests/dnstest"
)

const zone = "example.com"

// scene is a CA, the DNS that it and we ask, and an Issuer without any state.
type scene struct {
	*Issuer
	*dnstest.World
	t       *testing.T
	server  *dnstest.Server
	ca      *acmetest.Server
	network *network
	said    *syncBuffer // warnings
}

func newScene(t *testing.T, o acmetest.Options) *scene {
	t.Helper()
	w := dnstest.New(t)
	s := &scene{World: w, t: t, server: w.AddServer("ns1.example.com"), said: &syncBuffer{}}
	w.AddZone(zone, s.server)
	w.Add(zone, "p.example.com A 192.0.2.1")
	o.Resolver = w.AddResolver().Addr.String()
	s.ca = acmetest.New(t, o)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.ca.TLSRoot)
	s.network = &network{next: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	dir := t.TempDir()
	s.Issuer = &Issuer{
		Root: filepath.Join(dir, "state"), CertbotDir: filepath.Join(dir, "letsencrypt"),
		Server:  s.ca.DirectoryURL,
		Issuers: func(context.Context) ([]string, error) { return []string{"letsencrypt.org"}, nil },
		DNS:     &authority.Client{Recursive: w, Port: w.Port, Timeout: 300 * time.Millisecond},
		Panel:   resolver.NewPanel(nil),
		Budget:  30 * time.Second,
		HTTP:    &http.Client{Transport: s.network},
		Log:     slog.New(slog.NewTextHandler(s.said, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	return s
}

// again is the next run of the program.
func (s *scene) again() {
	fresh := *s.Issuer
	fresh.reached = nil
	s.Issuer = &fresh
	s.said.take()
}

// register returns the URI of the account.
func (s *scene) register() string {
	s.t.Helper()
	r, err := s.Register(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return r.URI
}

// publish creates what is prescribed.
func (s *scene) publish(names ...string) {
	s.t.Helper()
	list, err := s.Prescribe(s.t.Context(), names)
	if err != nil {
		s.t.Fatal(err)
	}
	s.create(list)
}

func (s *scene) create(list []Prescription) {
	s.t.Helper()
	for _, p := range list {
		for _, r := range p.Records {
			s.Add(zone, strings.Replace(r.String(), ". ", ". 300 IN ", 1))
		}
	}
}

func (s *scene) delete(list []Prescription) {
	s.t.Helper()
	for _, p := range list {
		for _, r := range p.Records {
			s.Remove(zone, strings.Replace(r.String(), ". ", ". 300 IN ", 1))
		}
	}
}

// issue gets a certificate and fails the test if it does not.
func (s *scene) issue(names ...string) Outcome {
	s.t.Helper()
	o, err := s.Issue(s.t.Context(), "p.example.com", names, true)
	if err != nil || !o.Issued {
		s.t.Fatalf("%+v, %v; warnings: %s", o, err, s.said.take())
	}
	return o
}

// leaf reads a lineage's certificate.
func (s *scene) leaf(lineage string) *x509.Certificate {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.Root, "live", lineage, "cert.pem"))
	if err != nil {
		s.t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		s.t.Fatal(err)
	}
	return cert
}

// network carries requests to the CA, and fails when a test says so.
type network struct {
	next http.RoundTripper

	mu      sync.Mutex
	fault   func(*http.Request) (before, after error)
	rewrite func(body string) string // what the CA answers
	answer  func(*http.Request) *http.Response
}

func (n *network) set(fault func(*http.Request) (before, after error)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fault = fault
}

func (n *network) RoundTrip(req *http.Request) (*http.Response, error) {
	n.mu.Lock()
	var before, after error
	if n.fault != nil {
		before, after = n.fault(req)
	}
	var made *http.Response
	if n.answer != nil {
		made = n.answer(req)
	}
	n.mu.Unlock()
	if made != nil {
		return made, nil
	}
	if before != nil {
		return nil, before
	}
	resp, err := n.next.RoundTrip(req)
	if err == nil && after != nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		return nil, after
	}
	if err == nil && n.rewrite != nil {
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader(n.rewrite(string(body)))), -1
		return resp, err
	}
	return resp, err
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) take() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.b.Reset()
	return s.b.String()
}

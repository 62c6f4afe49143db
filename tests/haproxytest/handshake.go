package haproxytest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"time"
)

// Handshake is one look at what a listener serves. Nothing is verified and no session resumed.
type Handshake struct {
	Addr  string
	Name  string // SNI; "" sends none
	Proxy bool   // speak the PROXY protocol first
	RSA   bool   // offer nothing but RSA, under TLS 1.2
	ECDSA bool   // offer nothing but ECDSA, under TLS 1.2
}

// Chain returns the certificates that were served, the leaf first, also where the listener would have had a
// certificate of the client's.
func (s Handshake) Chain(ctx context.Context) ([]*x509.Certificate, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.Addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	if s.Proxy {
		if _, err := conn.Write([]byte("PROXY UNKNOWN\r\n")); err != nil {
			return nil, err
		}
	}
	var chain []*x509.Certificate
	config := &tls.Config{
		ServerName:         s.Name,
		InsecureSkipVerify: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			chain = state.PeerCertificates
			return nil
		},
	}
	if s.RSA {
		config.MaxVersion = tls.VersionTLS12
		config.CipherSuites = []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}
	}
	if s.ECDSA {
		config.MaxVersion = tls.VersionTLS12
		config.CipherSuites = []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}
	}
	if err := tls.Client(conn, config).HandshakeContext(ctx); err != nil && chain == nil {
		return nil, err
	}
	return chain, nil
}

// Served returns the certificates that the first listener serves for a name, the leaf first.
func (h *HAProxy) Served(name string) []*x509.Certificate {
	h.tb.Helper()
	return h.Serves(Handshake{Addr: h.Addr, Name: name})
}

// Serves is Served for other listeners and other ways.
func (h *HAProxy) Serves(s Handshake) []*x509.Certificate {
	h.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	chain, err := s.Chain(ctx)
	if err != nil {
		h.tb.Fatalf("haproxytest: %v", fmt.Errorf("look at %q for %q: %w", s.Addr, s.Name, err))
	}
	return chain
}

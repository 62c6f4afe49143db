package haproxytest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"time"
)

// Look is one look at what a bind serves. Nothing is verified and no session resumed.
type Look struct {
	Addr  string
	Name  string // "" for none
	Proxy bool   // speak the PROXY protocol first
	RSA   bool   // take nothing but RSA, under TLS 1.2
	ECDSA bool   // take nothing but ECDSA, under TLS 1.2
}

// Chain returns the certificates that are served, the leaf first, also where the server would have one of the client's.
func (l Look) Chain(ctx context.Context) ([]*x509.Certificate, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", l.Addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if l.Proxy {
		if _, err := io.WriteString(conn, "PROXY UNKNOWN\r\n"); err != nil {
			return nil, err
		}
	}
	var chain []*x509.Certificate
	config := &tls.Config{
		ServerName:         l.Name,
		InsecureSkipVerify: true, // a test's own server
		VerifyConnection: func(state tls.ConnectionState) error {
			chain = state.PeerCertificates
			return nil
		},
	}
	if l.RSA || l.ECDSA {
		config.MaxVersion = tls.VersionTLS12
		config.CipherSuites = []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}
		if l.ECDSA {
			config.CipherSuites = []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}
		}
	}
	if err := tls.Client(conn, config).HandshakeContext(ctx); err != nil && chain == nil {
		return nil, err
	}
	return chain, nil
}

// Handshake returns the certificates that a server shows for a name.
func Handshake(addr, name string) ([]*x509.Certificate, error) {
	return Look{Addr: addr, Name: name}.once()
}

func (l Look) once() ([]*x509.Certificate, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return l.Chain(ctx)
}

// Served returns the certificates that HAProxy shows for a name at Addr.
func (h *HAProxy) Served(name string) []*x509.Certificate {
	h.tb.Helper()
	return h.Shown(Look{Addr: h.Addr, Name: name})
}

// Shown is Served for other binds and other ways.
func (h *HAProxy) Shown(l Look) []*x509.Certificate {
	h.tb.Helper()
	chain, err := l.once()
	if err != nil {
		h.tb.Fatalf("haproxytest: %s at %s: %v", l.Name, l.Addr, err)
	}
	return chain
}

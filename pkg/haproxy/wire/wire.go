// Package wire looks at what a TLS server really shows for a name. It is the only proof that a certificate is
// served: HAProxy can have accepted one, and list it, and still show another to whoever asks for the name.
package wire

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"
)

// Timeout bounds one handshake, whatever the context allows.
const Timeout = 5 * time.Second

var (
	// ErrDown means that nobody listens.
	ErrDown = errors.New("nobody listens")
	// ErrTimeout means that the handshake did not end in time.
	ErrTimeout = errors.New("no handshake in time")
	// ErrNoCertificate means that the server has refused the handshake before it showed a certificate, as it does
	// for a name that it does not know (strict-sni).
	ErrNoCertificate = errors.New("the server shows no certificate")
)

// Target is where to look. It is comparable.
type Target struct {
	Address     string // host:port, or the path of a unix socket
	AcceptProxy bool   // the server waits for a PROXY line first
}

// Algorithm is which half of a server's RSA and ECDSA certificates to ask for.
type Algorithm int

const (
	Any Algorithm = iota
	RSA
	ECDSA
)

// AlgorithmOf is the algorithm by which a server that has several certificates for a name chooses this one.
func AlgorithmOf(cert *x509.Certificate) Algorithm {
	switch cert.PublicKeyAlgorithm {
	case x509.RSA:
		return RSA
	case x509.ECDSA:
		return ECDSA
	}
	return Any
}

// The suites of TLS 1.2 that only one kind of certificate can serve. TLS 1.3 leaves the choice to the server.
var suites = map[Algorithm][]uint16{
	RSA:   {tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256},
	ECDSA: {tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256},
}

// Answer is what the server shows.
type Answer struct {
	Chain   [][]byte // certificates in DER, the leaf first
	Version uint16   // of TLS
}

// Probe makes a handshake for a name, which may be a wildcard, and returns the certificates that the server shows.
// They are not verified. With an algorithm it asks by TLS 1.2 for the certificate of that kind, and where the server
// has no TLS 1.2 it takes what there is.
func Probe(ctx context.Context, t Target, name string, alg Algorithm) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	answer, err := probe(ctx, t, name, suites[alg])
	if errors.Is(err, ErrNoCertificate) && alg != Any {
		if without, err2 := probe(ctx, t, name, nil); err2 == nil {
			return without, nil
		}
	}
	return answer, err
}

func probe(ctx context.Context, t Target, name string, only []uint16) (Answer, error) {
	network := "tcp"
	if strings.HasPrefix(t.Address, "/") {
		network = "unix"
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, t.Address)
	if err != nil {
		return Answer{}, failed(ctx, t, err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	if t.AcceptProxy {
		if _, err := io.WriteString(conn, "PROXY UNKNOWN\r\n"); err != nil {
			return Answer{}, failed(ctx, t, err)
		}
	}
	var answer Answer
	config := &tls.Config{
		ServerName: concrete(name),
		//nolint:gosec // what is shown is compared, not trusted
		InsecureSkipVerify: true,
		// Taken here and not from the end of the handshake, which fails where the server wants a certificate of ours.
		VerifyConnection: func(s tls.ConnectionState) error {
			answer.Version = s.Version
			for _, cert := range s.PeerCertificates {
				answer.Chain = append(answer.Chain, cert.Raw)
			}
			return nil
		},
	}
	if only != nil {
		config.MaxVersion, config.CipherSuites = tls.VersionTLS12, only
	}
	err = tls.Client(conn, config).HandshakeContext(ctx)
	if len(answer.Chain) > 0 {
		return answer, nil
	}
	if err == nil {
		err = ErrNoCertificate
	}
	return Answer{}, failed(ctx, t, err)
}

// concrete is a name that a wildcard covers and that nobody has.
func concrete(name string) string {
	if base, ok := strings.CutPrefix(name, "*."); ok {
		return "certhook-probe." + base
	}
	return name
}

func failed(ctx context.Context, t Target, err error) error {
	timeout, isTimeout := errors.AsType[net.Error](err)
	_, alert := errors.AsType[tls.AlertError](err)
	var record tls.RecordHeaderError
	switch {
	case errors.Is(err, ErrNoCertificate):
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOENT):
		err = fmt.Errorf("%w: %w", ErrDown, err)
	case ctx.Err() != nil, isTimeout && timeout.Timeout():
		err = ErrTimeout
	case alert, strings.Contains(err.Error(), "remote error: tls:"):
		err = fmt.Errorf("%w: %w", ErrNoCertificate, err)
	case errors.As(err, &record):
		err = fmt.Errorf("this is not TLS: %w", err)
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		err = fmt.Errorf("%w: the connection ended", ErrNoCertificate)
	}
	return fmt.Errorf("look at %s: %w", t.Address, err)
}

// Same reports whether the server shows exactly these certificates.
func Same(chain [][]byte, want []*x509.Certificate) bool {
	if len(chain) != len(want) {
		return false
	}
	for i, der := range chain {
		if !bytes.Equal(der, want[i].Raw) {
			return false
		}
	}
	return true
}

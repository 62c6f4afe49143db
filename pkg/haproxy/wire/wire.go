// Package wire looks at what a TLS server really shows for a name. It is the only proof that a certificate is
// served: HAProxy can have accepted one, and list it, and still show another to whoever asks for the name.
package wire

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// Timeout bounds one look, whatever the context allows.
const Timeout = 5 * time.Second

// Target is where to look. It is comparable.
type Target struct {
	Address     string // host:port, the path of a unix socket, or abns@name as HAProxy binds it
	AcceptProxy bool   // the server waits for a PROXY line first
}

// Answer is what the server shows.
type Answer struct {
	Chain   [][]byte // certificates in DER, the leaf first
	Version uint16   // of TLS
}

// Probe makes a handshake for a name and returns the certificates that the server shows. They are not verified. The
// name may be a wildcard, which stands for a name below it, or "", which asks for the server's default.
//
// Of a server that has a certificate of each algorithm for the name, TLS 1.2 can ask for one. TLS 1.3 cannot, since
// this client accepts both: where the server has nothing else and shows the other one, the error is ErrUnasked and
// comes with the answer. Every other error comes without.
func Probe(ctx context.Context, t Target, name string, alg Algorithm) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	answer, err := probe(ctx, t, name, alg)
	refused, ok := errors.AsType[*refusal](err)
	if alg == Any || !ok || refused.alert == alertName {
		return answer, err
	}
	// It has no such certificate, or no TLS 1.2.
	answer, err = probe(ctx, t, name, Any)
	if err == nil && refused.alert == alertVersion && !answer.has(alg) {
		err = failed(ctx, t, fmt.Errorf("%w for the %s of %s", ErrUnasked, alg, name))
	}
	return answer, err
}

func probe(ctx context.Context, t Target, name string, alg Algorithm) (Answer, error) {
	conn, err := dial(ctx, t.Address)
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
		ServerName:   concrete(name),
		CipherSuites: suites(alg),
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
	if alg != Any {
		config.MaxVersion = tls.VersionTLS12
	}
	client := tls.Client(conn, config)
	err = client.HandshakeContext(ctx)
	if len(answer.Chain) == 0 {
		return Answer{}, failed(ctx, t, cmp.Or(err, ErrNoCertificate))
	}
	if err == nil {
		_ = client.Close() // an end that the server does not log as broken
	}
	return answer, nil
}

// concrete is a name that a wildcard covers and that nobody has.
func concrete(name string) string {
	if base, ok := strings.CutPrefix(name, "*."); ok {
		return "certhook-probe." + base
	}
	return name
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

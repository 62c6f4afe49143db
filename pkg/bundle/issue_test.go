package bundle_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"
)

// now is when the tests take place; all certificates are good a day before and after unless they say otherwise.
var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// pair is a certificate and its key.
type pair struct {
	cert *x509.Certificate
	key  crypto.Signer
}

func (p pair) certPEM() []byte { return block("CERTIFICATE", p.cert.Raw) }

func (p pair) keyPEM(tb testing.TB) []byte {
	tb.Helper()
	return block("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(p.key))(tb))
}

func block(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(tb testing.TB) T {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		return v
	}
}

// issue makes a certificate with a key, signed by another or, without one, by itself.
func issue(tb testing.TB, by *pair, key crypto.Signer, template x509.Certificate) pair {
	tb.Helper()
	if template.SerialNumber == nil {
		template.SerialNumber = new(big.Int).SetBytes(must(randomOctets(8))(tb))
	}
	if template.NotAfter.IsZero() {
		template.NotBefore, template.NotAfter = now.AddDate(0, 0, -1), now.AddDate(0, 0, 1)
	}
	template.BasicConstraintsValid = true
	parent := pair{&template, key}
	if by != nil {
		parent = *by
	}
	der := must(x509.CreateCertificate(rand.Reader, &template, parent.cert, key.Public(), parent.key))(tb)
	return pair{must(x509.ParseCertificate(der))(tb), key}
}

func randomOctets(n int) ([]byte, error) {
	b := make([]byte, n)
	_, err := rand.Read(b)
	b[0] = b[0]&0x3f | 0x40
	return b, err
}

func p256(tb testing.TB) *ecdsa.PrivateKey {
	tb.Helper()
	return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(tb)
}

func authority(name string) x509.Certificate {
	return x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, KeyUsage: x509.KeyUsageCertSign}
}

func server(names ...string) x509.Certificate {
	return x509.Certificate{DNSNames: names, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
}

// estate is a root, two intermediates below each other, and a leaf.
type estate struct{ root, upper, lower, leaf pair }

func newEstate(tb testing.TB) estate {
	tb.Helper()
	var e estate
	e.root = issue(tb, nil, p256(tb), authority("Root"))
	e.upper = issue(tb, &e.root, p256(tb), authority("Upper"))
	e.lower = issue(tb, &e.upper, p256(tb), authority("Lower"))
	e.leaf = issue(tb, &e.lower, p256(tb), server("a.test", "*.a.test", "xn--bcher-kva.test"))
	return e
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// chain is a file of certificates in the order in which they are given.
func chain(pairs ...pair) []byte {
	var out []byte
	for _, p := range pairs {
		out = append(out, p.certPEM()...)
	}
	return out
}

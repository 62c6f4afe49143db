// Package labca is a certificate authority for the servers of a test lab: one root, made anew each time,
// that signs certificates for whatever names the lab pretends to be.
package labca

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/netip"
	"time"
)

const (
	backdate = time.Hour      // for clocks that disagree
	lifetime = 24 * time.Hour // nothing of a lab lives longer
)

// Authority is a root certificate and its key.
type Authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// New makes a root that is valid from an hour ago for a day.
func New() (*Authority, error) {
	template := newTemplate("certhook lab root")
	template.IsCA = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	der, key, err := sign(template, template, nil)
	if err != nil {
		return nil, fmt.Errorf("make the lab's root: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("make the lab's root: %w", err)
	}
	return &Authority{cert, key}, nil
}

// Issue makes a server certificate for DNS names and IP addresses.
func (a *Authority) Issue(names ...string) (tls.Certificate, error) {
	if len(names) == 0 {
		return tls.Certificate{}, fmt.Errorf("a server certificate needs a name")
	}
	template := newTemplate(names[0])
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, name := range names {
		if addr, err := netip.ParseAddr(name); err == nil {
			template.IPAddresses = append(template.IPAddresses, addr.AsSlice())
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, key, err := sign(template, a.cert, a.key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("issue a certificate for %q: %w", names, err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// PEM returns the root as a trust store holds it.
func (a *Authority) PEM() []byte {
	var b bytes.Buffer
	_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}) // a Buffer takes everything
	return b.Bytes()
}

// Pool returns a pool that holds nothing but the root.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

func newTemplate(name string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber:          new(big.Int).SetInt64(now.UnixNano()),
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(lifetime),
		BasicConstraintsValid: true,
	}
}

// sign makes a key and a certificate for it; without a signer the certificate signs itself.
func sign(template, parent *x509.Certificate, signer crypto.Signer) ([]byte, crypto.Signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if signer == nil {
		signer = key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	return der, key, err
}

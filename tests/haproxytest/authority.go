package haproxytest

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Key is a kind of key.
type Key int

// Kinds of key. Every EC key is a new one. RSA keys take long to make: each size has one, which all
// certificates of a test's process share.
const (
	EC256 Key = iota
	EC384
	RSA2048
	RSA3072
	RSA4096
)

// Issuer is who signs.
type Issuer int

// Issuers. The size of the chain depends on it.
const (
	Intermediate    Issuer = iota // EC, signed by the root
	RSAIntermediate               // RSA with 4096 bits, signed by the root: some 2 KB in a chain
	Root                          // no intermediate
)

// Opt says what is special about a certificate. The zero value is EC256, valid from an hour ago for 90 days,
// by the EC intermediate.
type Opt struct {
	Key                 Key
	Use                 crypto.Signer // in place of a key of that kind
	NotBefore, NotAfter time.Time
	By                  Issuer
}

// Authority is a CA with a root and an intermediate, each with an EC key.
type Authority struct {
	tb   TB
	root *issuer
	ec   *issuer
	rsa  func() *issuer
}

type issuer struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// NewAuthority makes a CA.
func NewAuthority(tb TB) *Authority {
	tb.Helper()
	a := &Authority{tb: tb}
	a.root = a.newIssuer("Test Root", nil, ecKey(tb, elliptic.P256()))
	a.ec = a.newIssuer("Test E1", a.root, ecKey(tb, elliptic.P256()))
	a.rsa = sync.OnceValue(func() *issuer { return a.newIssuer("Test R1", a.root, rsaKey(tb, 4096)) })
	return a
}

func (a *Authority) newIssuer(name string, by *issuer, key crypto.Signer) *issuer {
	a.tb.Helper()
	template := &x509.Certificate{
		Subject:               pkix.Name{Organization: []string{"certhook test"}, CommonName: name},
		NotBefore:             time.Now().AddDate(-5, 0, 0), // before every expired leaf
		NotAfter:              time.Now().AddDate(5, 0, 0),
		BasicConstraintsValid: true,
		IsCA:                  true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	if by == nil {
		by = &issuer{template, key}
	}
	return &issuer{a.sign(template, by, key.Public()), key}
}

// sign gives the certificate a serial of its own. It is positive and has no leading zero, as CAs do it.
func (a *Authority) sign(template *x509.Certificate, by *issuer, key crypto.PublicKey) *x509.Certificate {
	a.tb.Helper()
	serial := make([]byte, 16)
	_, _ = rand.Read(serial) // never fails
	serial[0] = serial[0]&0x3f | 0x40
	template.SerialNumber = new(big.Int).SetBytes(serial)
	der, err := x509.CreateCertificate(rand.Reader, template, by.cert, key, by.key)
	if err != nil {
		a.tb.Fatalf("haproxytest: sign a certificate: %v", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.tb.Fatalf("haproxytest: sign a certificate: %v", err)
	}
	return cert
}

// Issue makes a certificate for these names, the first of which is also its common name where it fits.
func (a *Authority) Issue(names []string, o Opt) Pair {
	a.tb.Helper()
	key := o.Use
	if key == nil {
		key = a.NewKey(o.Key)
	}
	by := map[Issuer]func() *issuer{
		Intermediate:    func() *issuer { return a.ec },
		RSAIntermediate: a.rsa,
		Root:            func() *issuer { return a.root },
	}[o.By]()
	template := &x509.Certificate{
		DNSNames:    names,
		NotBefore:   o.NotBefore,
		NotAfter:    o.NotAfter,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if len(names[0]) <= 64 { // RFC 5280, ub-common-name
		template.Subject.CommonName = names[0]
	}
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().AddDate(0, 0, 90)
	}
	if template.NotBefore.IsZero() {
		template.NotBefore = time.Now().Add(-time.Hour)
		if !template.NotBefore.Before(template.NotAfter) {
			template.NotBefore = template.NotAfter.AddDate(0, 0, -90)
		}
	}
	leaf := a.sign(template, by, key.Public())
	chain := certPEM(leaf)
	if by != a.root {
		chain = append(chain, certPEM(by.cert)...)
	}
	return Pair{Leaf: leaf, Chain: chain, Key: keyPEM(a.tb, key)}
}

// NewKey makes a key, or hands out the RSA key of that size.
func (a *Authority) NewKey(kind Key) crypto.Signer {
	a.tb.Helper()
	switch kind {
	case EC384:
		return ecKey(a.tb, elliptic.P384())
	case RSA2048:
		return rsaKey(a.tb, 2048)
	case RSA3072:
		return rsaKey(a.tb, 3072)
	case RSA4096:
		return rsaKey(a.tb, 4096)
	default:
		return ecKey(a.tb, elliptic.P256())
	}
}

// RootPEM returns the root as a trust store holds it, for "ca-file" too.
func (a *Authority) RootPEM() []byte { return certPEM(a.root.cert) }

// Pool returns a pool that holds nothing but the root.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.root.cert)
	return pool
}

// Fill writes n certificates into a folder as HAProxy reads them, c00001.pem for c00001.test and so on, all
// with one EC key; it returns their names in that order. 5,000 take about two seconds.
func (a *Authority) Fill(folder string, n int) []string {
	a.tb.Helper()
	key := a.NewKey(EC256)
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("c%05d.test", i+1)
		file := filepath.Join(folder, strings.TrimSuffix(names[i], ".test")+".pem")
		if err := os.WriteFile(file, a.Issue([]string{names[i]}, Opt{Use: key}).PEM(), 0o600); err != nil {
			a.tb.Fatalf("haproxytest: %v", err)
		}
	}
	return names
}

// SHA1 returns a certificate's fingerprint as "show ssl cert" prints it.
func SHA1(cert *x509.Certificate) string { return fmt.Sprintf("%X", sha1.Sum(cert.Raw)) }

// Serial returns a certificate's serial number as "show ssl cert" prints it.
func Serial(cert *x509.Certificate) string {
	return fmt.Sprintf("%X", cert.SerialNumber.Bytes())
}

func ecKey(tb TB, curve elliptic.Curve) crypto.Signer {
	tb.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		tb.Fatalf("haproxytest: make a key: %v", err)
	}
	return key
}

// rsaKeys are what rsaKey has made, by their bits.
var (
	rsaKeys  = map[int]crypto.Signer{}
	rsaMutex sync.Mutex
)

func rsaKey(tb TB, bits int) crypto.Signer {
	tb.Helper()
	rsaMutex.Lock()
	defer rsaMutex.Unlock()
	if rsaKeys[bits] == nil {
		key, err := rsa.GenerateKey(rand.Reader, bits)
		if err != nil {
			tb.Fatalf("haproxytest: make a key: %v", err)
		}
		rsaKeys[bits] = key
	}
	return rsaKeys[bits]
}

func certPEM(cert *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})
}

func keyPEM(tb TB, key crypto.Signer) []byte {
	tb.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		tb.Fatalf("haproxytest: %v", err)
	}
	var b bytes.Buffer
	_ = pem.Encode(&b, &pem.Block{Type: "PRIVATE KEY", Bytes: der}) // a Buffer takes everything
	return b.Bytes()
}

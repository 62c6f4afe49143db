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
	"sync"
	"time"
)

// Authority is a CA with a root and an intermediate, each with an EC key.
type Authority struct {
	tb                 TB
	root, intermediate *signer
	rsaIntermediate    func() *signer
}

type signer struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// Pair is a certificate in PEM as a CA hands it out.
type Pair struct {
	Leaf       *x509.Certificate
	Cert       []byte // the leaf
	Issuer     []byte // the intermediate
	PrivateKey []byte // PKCS#8
}

// Chain is leaf and intermediate.
func (p Pair) Chain() []byte { return append(bytes.Clone(p.Cert), p.Issuer...) }

// PEM is all of it as HAProxy reads it: leaf, intermediate, key.
func (p Pair) PEM() []byte { return append(p.Chain(), p.PrivateKey...) }

// Wish varies a certificate. Every EC key is a new one; RSA keys, which take long to make, are one of each size for all
// of a test's process.
type Wish struct {
	RSA       int           // bits; 0 for ECDSA
	Curve     string        // of ECDSA: "P-384"; default P-256
	Age       time.Duration // since notBefore; default an hour
	Left      time.Duration // until notAfter; default 90 days
	ManyNames int           // this many long names more
	Key       crypto.Signer // in place of a new one
	RSAIssuer bool          // by an intermediate with an RSA key of 4096 bits: a longer chain
	ByRoot    bool          // without an intermediate
}

// NewAuthority makes a CA.
func NewAuthority(tb TB) *Authority {
	tb.Helper()
	a := &Authority{tb: tb}
	a.root = a.newSigner("Test Root", nil, newEC(tb, elliptic.P256()))
	a.intermediate = a.newSigner("Test Intermediate", a.root, newEC(tb, elliptic.P256()))
	a.rsaIntermediate = sync.OnceValue(func() *signer {
		return a.newSigner("Test RSA Intermediate", a.root, rsaKey(tb, 4096))
	})
	return a
}

func (a *Authority) newSigner(name string, by *signer, key crypto.Signer) *signer {
	a.tb.Helper()
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: name},
		NotBefore: time.Now().AddDate(-5, 0, 0), NotAfter: time.Now().AddDate(5, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	if by == nil {
		by = &signer{template, key}
	}
	return &signer{a.sign(template, by, key.Public()), key}
}

// sign gives the certificate a serial number of its own, positive and of 16 bytes, as public CAs do.
func (a *Authority) sign(template *x509.Certificate, by *signer, public crypto.PublicKey) *x509.Certificate {
	a.tb.Helper()
	serial := make([]byte, 16)
	_, _ = rand.Read(serial) // never fails
	serial[0] = serial[0]&0x3f | 0x40
	template.SerialNumber = new(big.Int).SetBytes(serial)
	der, err := x509.CreateCertificate(rand.Reader, template, by.cert, public, by.key)
	if err != nil {
		a.tb.Fatalf("haproxytest: %v", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.tb.Fatalf("haproxytest: %v", err)
	}
	return cert
}

// Issue makes a certificate for names.
func (a *Authority) Issue(w Wish, names ...string) Pair {
	a.tb.Helper()
	key := w.Key
	if key == nil {
		key = newKey(a.tb, w)
	}
	template := &x509.Certificate{
		DNSNames:    names,
		NotBefore:   time.Now().Add(-time.Hour),
		NotAfter:    time.Now().AddDate(0, 0, 90),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if len(names[0]) <= 64 { // RFC 5280, ub-common-name
		template.Subject.CommonName = names[0]
	}
	for i := range w.ManyNames {
		template.DNSNames = append(template.DNSNames, fmt.Sprintf("a-rather-long-label-that-fills-up-the-certificate-%04d.%s", i, names[0]))
	}
	if w.Age != 0 {
		template.NotBefore = time.Now().Add(-w.Age)
	}
	if w.Left != 0 {
		template.NotAfter = time.Now().Add(w.Left)
	}
	by := a.intermediate
	switch {
	case w.ByRoot:
		by = a.root
	case w.RSAIssuer:
		by = a.rsaIntermediate()
	}
	leaf := a.sign(template, by, key.Public())
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.tb.Fatalf("haproxytest: %v", err)
	}
	p := Pair{Leaf: leaf, Cert: block("CERTIFICATE", leaf.Raw), PrivateKey: block("PRIVATE KEY", der)}
	if !w.ByRoot {
		p.Issuer = block("CERTIFICATE", by.cert.Raw)
	}
	return p
}

// RootPEM is the root as a trust store holds it, and HAProxy's ca-file.
func (a *Authority) RootPEM() []byte { return block("CERTIFICATE", a.root.cert.Raw) }

// Fill writes n certificates into a folder as HAProxy reads them, c00001.pem for c00001.test and so on, all with one EC
// key, and returns the names.
func (a *Authority) Fill(folder string, n int) []string {
	a.tb.Helper()
	key := newEC(a.tb, elliptic.P256())
	names := make([]string, n)
	for i := range names {
		stem := fmt.Sprintf("c%05d", i+1)
		names[i] = stem + ".test"
		p := a.Issue(Wish{Key: key}, names[i])
		if err := os.WriteFile(filepath.Join(folder, stem+".pem"), p.PEM(), 0o600); err != nil {
			a.tb.Fatalf("haproxytest: %v", err)
		}
	}
	return names
}

// SHA1 is a certificate's fingerprint as "show ssl cert" prints it.
func SHA1(cert *x509.Certificate) string { return fmt.Sprintf("%X", sha1.Sum(cert.Raw)) }

// Serial is a certificate's serial number as "show ssl cert" prints it.
func Serial(cert *x509.Certificate) string { return fmt.Sprintf("%X", cert.SerialNumber.Bytes()) }

func newKey(tb TB, w Wish) crypto.Signer {
	tb.Helper()
	switch {
	case w.RSA != 0:
		return rsaKey(tb, w.RSA)
	case w.Curve == "P-384":
		return newEC(tb, elliptic.P384())
	default:
		return newEC(tb, elliptic.P256())
	}
}

func newEC(tb TB, curve elliptic.Curve) *ecdsa.PrivateKey {
	tb.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		tb.Fatalf("haproxytest: %v", err)
	}
	return key
}

var (
	rsaMutex sync.Mutex
	rsaKeys  = map[int]*rsa.PrivateKey{} // by bits
)

func rsaKey(tb TB, bits int) *rsa.PrivateKey {
	tb.Helper()
	rsaMutex.Lock()
	defer rsaMutex.Unlock()
	if rsaKeys[bits] == nil {
		key, err := rsa.GenerateKey(rand.Reader, bits)
		if err != nil {
			tb.Fatalf("haproxytest: %v", err)
		}
		rsaKeys[bits] = key
	}
	return rsaKeys[bits]
}

func block(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

package haproxytest

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"sync"
	"time"
)

// Authority is a CA with a root and an intermediate.
type Authority struct {
	tb           TB
	root         *x509.Certificate
	intermediate *x509.Certificate
	key          crypto.Signer

	mu sync.Mutex
	n  int64
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

// Wish varies a certificate.
type Wish struct {
	RSA       int           // bits; 0 for ECDSA P-256
	Age       time.Duration // since notBefore; default an hour
	Left      time.Duration // until notAfter; default 90 days
	ManyNames int           // this many long names more
	Key       crypto.Signer // in place of a new one
}

// NewAuthority makes a CA.
func NewAuthority(tb TB) *Authority {
	tb.Helper()
	a := &Authority{tb: tb, n: time.Now().UnixNano()}
	rootKey, interKey := newEC(tb), newEC(tb)
	a.root = a.sign(a.template("Test Root", true), nil, rootKey.Public(), rootKey)
	a.intermediate = a.sign(a.template("Test Intermediate", true), a.root, interKey.Public(), rootKey)
	a.key = interKey
	return a
}

// RootPEM is the root's certificate.
func (a *Authority) RootPEM() []byte { return block("CERTIFICATE", a.root.Raw) }

func newEC(tb TB) *ecdsa.PrivateKey {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatalf("haproxytest: %v", err)
	}
	return key
}

func (a *Authority) template(name string, ca bool) *x509.Certificate {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.n++
	return &x509.Certificate{
		SerialNumber: big.NewInt(a.n), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(90 * 24 * time.Hour),
		IsCA: ca, BasicConstraintsValid: true,
	}
}

func (a *Authority) sign(t, parent *x509.Certificate, public crypto.PublicKey, key crypto.Signer) *x509.Certificate {
	a.tb.Helper()
	if parent == nil {
		parent = t
	}
	der, err := x509.CreateCertificate(rand.Reader, t, parent, public, key)
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
	if key == nil && w.RSA == 0 {
		key = newEC(a.tb)
	} else if key == nil {
		var err error
		if key, err = rsa.GenerateKey(rand.Reader, w.RSA); err != nil {
			a.tb.Fatalf("haproxytest: %v", err)
		}
	}
	t := a.template(names[0], false)
	t.DNSNames = names
	for i := range w.ManyNames {
		t.DNSNames = append(t.DNSNames, fmt.Sprintf("a-rather-long-label-that-fills-up-the-certificate-%04d.%s", i, names[0]))
	}
	if w.Age != 0 {
		t.NotBefore = time.Now().Add(-w.Age)
	}
	if w.Left != 0 {
		t.NotAfter = time.Now().Add(w.Left)
	}
	leaf := a.sign(t, a.intermediate, key.Public(), a.key)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.tb.Fatalf("haproxytest: %v", err)
	}
	return Pair{
		Leaf: leaf, Cert: block("CERTIFICATE", leaf.Raw), Issuer: block("CERTIFICATE", a.intermediate.Raw),
		PrivateKey: block("PRIVATE KEY", der),
	}
}

func block(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

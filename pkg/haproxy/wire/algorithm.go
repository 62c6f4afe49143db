package wire

import (
	"crypto/tls"
	"crypto/x509"
	"slices"
	"strings"
)

// Algorithm is which half of a server's RSA and ECDSA certificates to ask for.
type Algorithm int

const (
	Any Algorithm = iota
	RSA
	ECDSA
)

func (a Algorithm) String() string {
	return [...]string{"certificate of any algorithm", "RSA certificate", "ECDSA certificate"}[a]
}

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

// suites are those of TLS 1.2 that only a certificate of this algorithm can serve. The outdated are among them: a
// server that has no others shows its certificate, too.
func suites(a Algorithm) []uint16 {
	var ids []uint16
	for _, s := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
		ecdsa := strings.HasPrefix(s.Name, "TLS_ECDHE_ECDSA_")
		rsa := strings.HasPrefix(s.Name, "TLS_ECDHE_RSA_") || strings.HasPrefix(s.Name, "TLS_RSA_")
		if rsa && a != ECDSA || ecdsa && a != RSA {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

// has reports whether the server has shown a certificate of an algorithm.
func (a Answer) has(alg Algorithm) bool {
	leaf, err := x509.ParseCertificate(a.Chain[0])
	return err == nil && AlgorithmOf(leaf) == alg
}

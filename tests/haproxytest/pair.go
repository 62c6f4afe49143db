package haproxytest

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
)

// Pair is a certificate with its chain and its key, in PEM. Its methods make new pairs, most of them bad.
type Pair struct {
	Leaf  *x509.Certificate
	Chain []byte // the leaf first
	Key   []byte // PKCS #8
}

// PEM returns the pair as HAProxy reads it: leaf, chain, key.
func (p Pair) PEM() []byte { return append(bytes.Clone(p.Chain), p.Key...) }

// Cert returns the first certificate of the chain.
func (p Pair) Cert() []byte {
	block, _ := pem.Decode(p.Chain)
	return pem.EncodeToMemory(block)
}

// Issuers returns the rest of the chain.
func (p Pair) Issuers() []byte {
	_, rest := pem.Decode(p.Chain)
	return rest
}

// WithKeyOf returns the chain with another pair's key.
func (p Pair) WithKeyOf(other Pair) Pair { return Pair{p.Leaf, p.Chain, other.Key} }

// IssuerFirst returns the pair with the intermediate before the leaf.
func (p Pair) IssuerFirst() Pair {
	return Pair{p.Leaf, append(bytes.Clone(p.Issuers()), p.Cert()...), p.Key}
}

// LeafOnly returns the pair without its intermediate.
func (p Pair) LeafOnly() Pair { return Pair{p.Leaf, p.Cert(), p.Key} }

// Truncated returns the pair with a chain that ends in the middle of its last certificate.
func (p Pair) Truncated() Pair {
	return Pair{p.Leaf, bytes.Clone(p.Chain[:len(p.Chain)-200]), p.Key}
}

// BlankLines returns the pair with an empty line after every block.
func (p Pair) BlankLines() Pair {
	return p.each(func(text []byte) []byte {
		return bytes.ReplaceAll(text, []byte("-----\n-----BEGIN"), []byte("-----\n\n-----BEGIN"))
	}, "\n")
}

// CRLF returns the pair with the line ends of another world.
func (p Pair) CRLF() Pair {
	return p.each(func(text []byte) []byte { return bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n")) }, "")
}

func (p Pair) each(change func([]byte) []byte, end string) Pair {
	return Pair{p.Leaf, append(change(p.Chain), end...), append(change(p.Key), end...)}
}

// Package bundle makes of a certificate, its chain and its key the one PEM file that HAProxy loads, and
// lets through only what a TLS server can use: HAProxy itself takes an expired certificate, a chain that is cut
// short and names that are not meant, and says nothing.
package bundle

import (
	"bytes"
	"crypto"
	"crypto/sha1" //nolint:gosec // HAProxy calls certificates by it
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/certhook/certhook/pkg/fault"
)

// Bundle is a certificate that can be served.
type Bundle struct {
	Chain []*x509.Certificate // the leaf first, each signed by the next

	key []byte // DER, of the type that block names
	typ string // of the key's PEM block
}

// Parse reads a chain and a key in PEM and checks that they are of use at a time: nothing but whole blocks, the
// leaf first, each certificate signed by the next, the leaf's issuer among them, the key the leaf's, and within
// its validity. Errors are of kind Lineage.
func Parse(chain, key []byte, now time.Time) (*Bundle, error) {
	b := &Bundle{}
	var err error
	if b.Chain, err = certificates(chain); err != nil {
		return nil, fault.Errorf(fault.Lineage, "the chain cannot be used: %w", err)
	}
	private, err := b.readKey(key)
	if err != nil {
		return nil, fault.Errorf(fault.Lineage, "the key cannot be used: %w", err)
	}
	if err := b.check(private, now); err != nil {
		return nil, fault.Errorf(fault.Lineage, "%w", err)
	}
	return b, nil
}

// Read reads a file that HAProxy may have, certificates and a key in any order, without the checks of Parse. The
// leaf is the first certificate.
func Read(text []byte) (*Bundle, error) {
	b := &Bundle{}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		b.Chain = append(b.Chain, cert)
	}
	if len(b.Chain) == 0 {
		return nil, errors.New("it has no certificate")
	}
	return b, nil
}

// blocks takes PEM apart. Blank lines between blocks are let pass; anything else between them is junk, of which
// nobody can tell what it was meant to be.
func blocks(text []byte) ([]*pem.Block, error) {
	var all []*pem.Block
	rest := text
	for {
		rest = bytes.TrimSpace(rest)
		if len(rest) == 0 {
			break
		}
		if !bytes.HasPrefix(rest, []byte("-----BEGIN ")) {
			line, _, _ := bytes.Cut(rest, []byte("\n"))
			return nil, fmt.Errorf("there is something else than PEM in it, %d octets of text after %d blocks", len(bytes.TrimSpace(line)), len(all))
		}
		end := bytes.Index(rest, []byte("\n-----END "))
		if end < 0 {
			return nil, fmt.Errorf("its block %d has no end", len(all)+1)
		}
		stop := bytes.IndexByte(rest[end+1:], '\n')
		one := rest
		if stop >= 0 {
			one = rest[:end+1+stop+1]
		}
		// Blank lines within a block are none of PEM's, and to HAProxy the end of what it is sent.
		block, more := pem.Decode(withoutBlankLines(one))
		if block == nil || len(bytes.TrimSpace(more)) > 0 {
			return nil, fmt.Errorf("its block %d is damaged", len(all)+1)
		}
		all = append(all, block)
		rest = rest[len(one):]
	}
	if len(all) == 0 {
		return nil, errors.New("it is empty")
	}
	return all, nil
}

func withoutBlankLines(text []byte) []byte {
	var out []byte
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			out = append(append(out, line...), '\n')
		}
	}
	return out
}

func certificates(text []byte) ([]*x509.Certificate, error) {
	all, err := blocks(text)
	if err != nil {
		return nil, err
	}
	var chain []*x509.Certificate
	for i, block := range all {
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("its block %d is a %s", i+1, block.Type)
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("its certificate %d: %w", i+1, err)
		}
		chain = append(chain, cert)
	}
	return chain, nil
}

// readKey reads the one private key; PKCS#8, PKCS#1 and SEC 1 are what there is. Errors show none of it.
func (b *Bundle) readKey(text []byte) (crypto.Signer, error) {
	all, err := blocks(text)
	if err != nil {
		return nil, err
	}
	if all[0].Type == "EC PARAMETERS" { // openssl ecparam writes them first, and nobody needs them
		all = all[1:]
	}
	if len(all) != 1 || !strings.HasSuffix(all[0].Type, "PRIVATE KEY") {
		return nil, errors.New("one private key is expected, and nothing else")
	}
	block := all[0]
	if strings.Contains(block.Type, "ENCRYPTED") || block.Headers["Proc-Type"] != "" {
		return nil, errors.New("it is encrypted, and HAProxy would ask for its password")
	}
	b.key, b.typ = block.Bytes, block.Type
	if key, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		signer, ok := key.(crypto.Signer)
		if !ok {
			return nil, errors.New("it cannot sign")
		}
		return signer, nil
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	if key, err := x509.ParseECPrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	return nil, errors.New("it is damaged, or of a kind that is not known")
}

// check holds chain and key against each other and against the time.
func (b *Bundle) check(key crypto.Signer, now time.Time) error {
	leaf := b.Leaf()
	switch {
	case leaf.IsCA && len(b.Chain) > 1 && leaf.CheckSignature(b.Chain[1].SignatureAlgorithm, b.Chain[1].RawTBSCertificate, b.Chain[1].Signature) == nil:
		return fmt.Errorf("the chain begins with its issuer (%s); the certificate itself has to come first", leaf.Subject)
	case !samePublicKey(leaf.PublicKey, key.Public()):
		return fmt.Errorf("the key does not belong to the certificate (serial %s)", b.Serial())
	case now.After(leaf.NotAfter):
		return fmt.Errorf("the certificate has expired, on %s", leaf.NotAfter.Format(time.DateTime))
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("the certificate is not valid before %s; is this machine's clock right?", leaf.NotBefore.Format(time.DateTime))
	case len(leaf.DNSNames) == 0 && len(leaf.IPAddresses) == 0:
		return errors.New("the certificate is for no name")
	}
	for i, cert := range b.Chain[:len(b.Chain)-1] {
		if err := cert.CheckSignatureFrom(b.Chain[i+1]); err != nil {
			return fmt.Errorf("certificate %d of the chain (%s) is not signed by the one after it (%s): %w", i+1, cert.Subject, b.Chain[i+1].Subject, err)
		}
	}
	if len(b.Chain) == 1 && leaf.CheckSignature(leaf.SignatureAlgorithm, leaf.RawTBSCertificate, leaf.Signature) != nil {
		return fmt.Errorf("the chain is cut short: the certificate of its issuer (%s) is missing", leaf.Issuer)
	}
	return nil
}

func samePublicKey(a, b any) bool {
	key, ok := a.(interface{ Equal(crypto.PublicKey) bool })
	return ok && key.Equal(b)
}

// Leaf is the certificate that a server shows for itself.
func (b *Bundle) Leaf() *x509.Certificate { return b.Chain[0] }

// Serial is the leaf's serial number as HAProxy writes it: hexadecimal, upper case, whole octets.
func (b *Bundle) Serial() string {
	if raw := b.Leaf().SerialNumber.Bytes(); len(raw) > 0 {
		return fmt.Sprintf("%X", raw)
	}
	return "00"
}

// Fingerprint is the leaf's SHA-1 as HAProxy writes it.
func (b *Bundle) Fingerprint() string { return Fingerprint(b.Leaf().Raw) }

// Fingerprint is the SHA-1 of a certificate in DER, as HAProxy writes it.
func Fingerprint(der []byte) string { return fmt.Sprintf("%X", sha1.Sum(der)) }

// PEM is the file for HAProxy: leaf, chain, key, and nothing else. Equal bundles make equal files. There is no blank
// line, which would end what the runtime API reads.
func (b *Bundle) PEM() []byte {
	var out bytes.Buffer
	for _, cert := range b.Chain {
		_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}) // to memory
	}
	_ = pem.Encode(&out, &pem.Block{Type: b.typ, Bytes: b.key})
	return out.Bytes()
}

// Covers is an error where the leaf is not for one of the names, wildcards as they stand in certificates.
func (b *Bundle) Covers(names []string) error {
	for _, name := range names {
		found := false
		for _, has := range b.Leaf().DNSNames {
			found = found || strings.EqualFold(has, name)
		}
		if !found && (strings.HasPrefix(name, "*.") || b.Leaf().VerifyHostname(name) != nil) {
			return fmt.Errorf("the certificate is not for %s", name)
		}
	}
	return nil
}

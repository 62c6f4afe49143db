// Package bundle makes of a certificate, its chain and its key the one PEM file that HAProxy loads, and
// lets through only what a TLS server can use: HAProxy itself takes an expired certificate, a chain that is cut
// short and names that are not meant, and says nothing.
package bundle

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // HAProxy calls certificates by it
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"github.com/certhook/certhook/pkg/fault"
)

// Bundle is a certificate that can be served.
type Bundle struct {
	Chain []*x509.Certificate // the leaf first, each signed by the next

	key []byte // PKCS#8, DER; nil in one that Read has found no key for
}

// Parse reads a chain and a key in PEM, certbot's fullchain.pem and privkey.pem, and checks that they are of use
// at a time:
//   - There is nothing but whole blocks of PEM, blank lines and comments, which begin with "#". Other text, such as
//     openssl x509 -text puts in front of a block, is refused: it may be a block that has lost its first line.
//   - The leaf comes first, is for a server and no CA's, and each certificate is signed by the next. The issuer has
//     to be there unless the leaf has signed itself.
//   - The key is the leaf's: RSA, ECDSA or Ed25519, in PKCS#8, PKCS#1 or SEC 1.
//   - The leaf is valid, and so are the others, but for a root at the end, whose dates no client looks at.
//
// Errors are of kind Lineage and show nothing of the key.
func Parse(chain, key []byte, now time.Time) (*Bundle, error) {
	certs, err := readChain(chain)
	if err != nil {
		return nil, fault.Errorf(fault.Lineage, "fullchain.pem: %w", err).WithHint(reissue)
	}
	private, err := readKey(key)
	if err != nil {
		return nil, fault.Errorf(fault.Lineage, "privkey.pem: %w", err).WithHint(reissue)
	}
	if err := check(certs, private.Public(), now); err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, fault.Errorf(fault.Lineage, "privkey.pem: %w", err).WithHint(reissue)
	}
	return &Bundle{Chain: certs, key: der}, nil
}

// Read reads a file that HAProxy may have, certificates and a key in any order with any text around them, without
// the checks of Parse. The leaf is the first certificate.
func Read(text []byte) (*Bundle, error) {
	b := &Bundle{}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == typeCertificate {
			cert, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				return nil, fmt.Errorf("certificate %d: %w", len(b.Chain)+1, err)
			}
			b.Chain = append(b.Chain, cert)
		} else if key, err := parseKey(block.Bytes); err == nil && b.key == nil {
			if b.key, err = x509.MarshalPKCS8PrivateKey(key); err != nil {
				return nil, err
			}
		}
	}
	if len(b.Chain) == 0 {
		return nil, errors.New("there is no certificate in it")
	}
	return b, nil
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

// PEM is the file for HAProxy: leaf, chain, key, and nothing else. Whatever the files looked like from which they
// were read, the same certificates and key make the same file. There is no blank line, which would end what the
// runtime API reads.
func (b *Bundle) PEM() []byte {
	var out bytes.Buffer
	for _, cert := range b.Chain {
		_ = pem.Encode(&out, &pem.Block{Type: typeCertificate, Bytes: cert.Raw}) // to memory
	}
	if b.key != nil {
		_ = pem.Encode(&out, &pem.Block{Type: typeKey, Bytes: b.key})
	}
	return out.Bytes()
}

// Format writes the leaf's serial number, whatever the verb, so that no message shows the key.
func (b *Bundle) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "certificate %s", b.Serial()) }

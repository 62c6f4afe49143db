package bundle

import (
	"crypto"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// Types of PEM blocks (RFC 7468), and how their lines begin.
const (
	typeCertificate = "CERTIFICATE"
	typeKey         = "PRIVATE KEY" // PKCS#8; also the end of the other keys' types

	begin = "-----BEGIN "
	end   = "-----END "
	edge  = "-----"
)

var errEncrypted = errors.New("the key is encrypted, and HAProxy would ask for its password")

// block is one block of PEM.
type block struct {
	kind string
	line int // of its first line
	der  []byte
}

// blocks takes PEM apart. Blank lines, white space around a line and comments between blocks do not count. Errors
// name lines, and nothing of what is in them, which may be a key.
func blocks(text []byte) ([]block, error) {
	var all []block
	var body strings.Builder
	var open *block // the one that has no end yet
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		line = strings.TrimSpace(line)
		kind, begins := marked(line, begin)
		switch {
		case line == "" || open == nil && line[0] == '#':
		case open == nil && begins:
			open = &block{kind: kind, line: number}
			body.Reset()
		case open == nil:
			return nil, fmt.Errorf("line %d is neither PEM nor a comment", number)
		case line == end+open.kind+edge:
			var err error
			if open.der, err = base64.StdEncoding.DecodeString(body.String()); err != nil {
				return nil, fmt.Errorf("the block that begins in line %d is damaged", open.line)
			}
			all, open = append(all, *open), nil
		case strings.HasPrefix(line, "-"):
			return nil, fmt.Errorf("the block that begins in line %d has no end of its own before line %d", open.line, number)
		case strings.HasPrefix(line, "Proc-Type:") && strings.HasSuffix(line, "ENCRYPTED"): // RFC 1421
			return nil, errEncrypted
		default:
			body.WriteString(line)
		}
	}
	switch {
	case open != nil:
		return nil, fmt.Errorf("the block that begins in line %d has no end", open.line)
	case len(all) == 0:
		return nil, errors.New("the file is empty")
	}
	return all, nil
}

// marked takes the type from a line that begins or ends a block.
func marked(line, mark string) (kind string, ok bool) {
	kind, ok = strings.CutPrefix(line, mark)
	kind, closed := strings.CutSuffix(kind, edge)
	return kind, ok && closed
}

func readChain(text []byte) ([]*x509.Certificate, error) {
	all, err := blocks(text)
	if err != nil {
		return nil, err
	}
	var chain []*x509.Certificate
	for _, b := range all {
		if b.kind != typeCertificate {
			return nil, fmt.Errorf("the block that begins in line %d is no certificate, but %q", b.line, b.kind)
		}
		cert, err := x509.ParseCertificate(b.der)
		if err != nil {
			return nil, fmt.Errorf("the certificate that begins in line %d: %w", b.line, err)
		}
		chain = append(chain, cert)
	}
	return chain, nil
}

// readKey reads the one private key of a file.
func readKey(text []byte) (crypto.Signer, error) {
	all, err := blocks(text)
	if err != nil {
		return nil, err
	}
	if all[0].kind == "EC PARAMETERS" { // openssl ecparam writes them first, and nobody needs them
		all = all[1:]
	}
	switch {
	case len(all) != 1 || !strings.HasSuffix(all[0].kind, typeKey):
		return nil, errors.New("one private key is expected, and nothing else")
	case strings.Contains(all[0].kind, "ENCRYPTED"):
		return nil, errEncrypted
	}
	return parseKey(all[0].der)
}

// parseKey reads a key in DER. Errors show nothing of it.
func parseKey(der []byte) (crypto.Signer, error) {
	if key, err := x509.ParsePKCS8PrivateKey(der); err == nil {
		if signer, ok := key.(crypto.Signer); ok {
			return signer, nil
		}
		return nil, errors.New("the key cannot sign")
	}
	if key, err := x509.ParsePKCS1PrivateKey(der); err == nil {
		return key, nil
	}
	if key, err := x509.ParseECPrivateKey(der); err == nil {
		return key, nil
	}
	return nil, errors.New("the key is damaged, or of a kind that is not known")
}

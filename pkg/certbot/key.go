package certbot

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"path/filepath"

	"github.com/certhook/certhook/pkg/fault"
)

// AccountKey reads the private key of one of the [Accounts] at an ACME server, given by its directory URL: RSA or
// ECDSA. The error is of kind Usage and shows nothing of the key.
func AccountKey(configDir, server string, a Account) (crypto.Signer, error) {
	path := filepath.Join(accountsDir(configDir, server), a.ID, "private_key.json")
	text, err := readFile(path)
	if err != nil {
		return nil, unreadable(err, "read the key of certbot's account: %w", err)
	}
	key, err := parseJWK(text)
	if err != nil {
		return nil, fault.Errorf(fault.Usage, "read the key of certbot's account: %q: %w", path, err)
	}
	return key, nil
}

// jwk is a private key as certbot keeps it (RFC 7518, section 6). Most of what can be computed is left out.
type jwk struct {
	Type  string  `json:"kty"`
	Curve string  `json:"crv"`
	D     integer `json:"d"`
	N     integer `json:"n"`
	E     integer `json:"e"`
	P     integer `json:"p"`
	Q     integer `json:"q"`
}

// integer is a number in base64url, big-endian.
type integer struct{ n big.Int }

func (i *integer) UnmarshalText(text []byte) error {
	raw, err := base64.RawURLEncoding.DecodeString(string(text))
	if err != nil {
		return errors.New("a number in it is not base64url") // the decoder's own words would quote it
	}
	i.n.SetBytes(raw)
	return nil
}

func parseJWK(text []byte) (crypto.Signer, error) {
	var k jwk
	if err := json.Unmarshal(text, &k); err != nil {
		return nil, errors.New("it is no JSON Web Key")
	}
	switch k.Type {
	case "RSA":
		return k.rsa()
	case "EC":
		return k.ecdsa()
	}
	return nil, fmt.Errorf("its type is %q, which is not known here: RSA and EC are", k.Type)
}

func (k jwk) rsa() (crypto.Signer, error) {
	if !k.E.n.IsInt64() || k.E.n.Int64() > 1<<31-1 {
		return nil, errors.New("its exponent is out of range")
	}
	key := &rsa.PrivateKey{
		PublicKey: rsa.PublicKey{N: &k.N.n, E: int(k.E.n.Int64())},
		D:         &k.D.n,
		Primes:    []*big.Int{&k.P.n, &k.Q.n},
	}
	if err := key.Validate(); err != nil {
		return nil, errors.New("its numbers are not those of an RSA key")
	}
	key.Precompute()
	return key, nil
}

func (k jwk) ecdsa() (crypto.Signer, error) {
	curves := map[string]elliptic.Curve{"P-256": elliptic.P256(), "P-384": elliptic.P384(), "P-521": elliptic.P521()}
	curve := curves[k.Curve]
	if curve == nil {
		return nil, fmt.Errorf("its curve is %q, which is not known here", k.Curve)
	}
	size := (curve.Params().BitSize + 7) / 8
	if k.D.n.BitLen() > 8*size {
		return nil, errors.New("its numbers are not those of a key on its curve")
	}
	key, err := ecdsa.ParseRawPrivateKey(curve, k.D.n.FillBytes(make([]byte, size)))
	if err != nil {
		return nil, errors.New("its numbers are not those of a key on its curve")
	}
	return key, nil
}

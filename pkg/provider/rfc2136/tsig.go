package rfc2136

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/pkg/fault"
)

// hashes are the algorithms of a TSIG key (RFC 8945, section 6) without MD5. SHA-1 is sound as HMAC.
var hashes = map[string]func() hash.Hash{
	"hmac-sha1":   sha1.New,
	"hmac-sha224": sha256.New224,
	"hmac-sha256": sha256.New,
	"hmac-sha384": sha512.New384,
	"hmac-sha512": sha512.New,
}

// fudge is how many seconds the clocks may differ (RFC 8945, section 10).
const fudge = 300

// key is a TSIG key. It implements [dns.TsigProvider].
type key struct {
	name      string // canonical with its trailing dot, as in DNS
	algorithm string // the same
	hash      func() hash.Hash
	secret    []byte
}

// newKey makes the key of the settings, nil without one. No error has the secret.
func newKey(cfg Config) (*key, error) {
	usage := func(problem string, args ...any) error {
		return fault.Errorf(fault.Usage, "the key for DNS updates: "+problem, args...).
			WithHint("set RFC2136_TSIG_NAME, RFC2136_TSIG_SECRET and RFC2136_TSIG_ALGORITHM to what the server's key statement has; tsig-keygen makes one")
	}
	if cfg.KeyName == "" && cfg.KeySecret == "" {
		return nil, nil
	}
	name, err := dnsname.Parse(cfg.KeyName)
	if err != nil {
		return nil, usage("its name: %w", err)
	}
	algorithm := cfg.KeyAlgorithm
	if algorithm == "" {
		algorithm = "hmac-sha256"
	}
	algorithm = strings.ToLower(algorithm)
	if hashes[algorithm] == nil {
		return nil, usage("the algorithm %q is not known", cfg.KeyAlgorithm)
	}
	secret, err := base64.StdEncoding.DecodeString(cfg.KeySecret)
	if err != nil || len(secret) == 0 {
		return nil, usage("the secret is empty or not base64")
	}
	return &key{name: dns.Fqdn(name), algorithm: dns.Fqdn(algorithm), hash: hashes[algorithm], secret: secret}, nil
}

// String names the key as an operator knows it.
func (k *key) String() string { return strings.TrimSuffix(k.name, ".") }

// sign asks for m to be signed when it is sent.
func (k *key) sign(m *dns.Msg, now time.Time) {
	m.SetTsig(k.name, k.algorithm, fudge, now.Unix())
}

func (k *key) Generate(msg []byte, _ *dns.TSIG) ([]byte, error) {
	mac := hmac.New(k.hash, k.secret)
	mac.Write(msg)
	return mac.Sum(nil), nil
}

// Verify takes the signature of this key only, in full length.
func (k *key) Verify(msg []byte, t *dns.TSIG) error {
	if dns.CanonicalName(t.Hdr.Name) != k.name || dns.CanonicalName(t.Algorithm) != k.algorithm {
		return dns.ErrKey
	}
	got, err := hex.DecodeString(t.MAC)
	if err != nil {
		return err
	}
	if want, _ := k.Generate(msg, t); !hmac.Equal(got, want) {
		return dns.ErrSig
	}
	return nil
}

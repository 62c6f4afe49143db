package certbot

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/certhook/certhook/pkg/fault"
)

const keyServer = "https://ca.example/directory"

// putKey writes a key as certbot does and returns its account and the configuration directory.
func putKey(t *testing.T, content string) (string, Account) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "accounts/ca.example/directory/0123")
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(path, "private_key.json"), []byte(content), 0o400); err != nil {
		t.Fatal(err)
	}
	return dir, Account{ID: "0123", URI: "https://ca.example/acct/1"}
}

func number(n *big.Int) string { return base64.RawURLEncoding.EncodeToString(n.Bytes()) }

func asJSON(t *testing.T, v map[string]string) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestAccountKey(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ecKey, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := ecKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		text string
		want interface{ Equal(crypto.PrivateKey) bool }
	}{
		"RSA": {asJSON(t, map[string]string{
			"kty": "RSA", "n": number(rsaKey.N), "e": "AQAB", "d": number(rsaKey.D),
			"p": number(rsaKey.Primes[0]), "q": number(rsaKey.Primes[1]), "qi": number(rsaKey.Precomputed.Qinv),
		}), rsaKey},
		"EC": {asJSON(t, map[string]string{"kty": "EC", "crv": "P-384", "d": base64.RawURLEncoding.EncodeToString(raw)}), ecKey},
	} {
		dir, account := putKey(t, tc.text)
		if got, err := AccountKey(dir, keyServer, account); err != nil || !tc.want.Equal(got) {
			t.Errorf("%s: %v, another key than was written", name, err)
		}
	}
}

func TestAccountKeyOfNoUse(t *testing.T) {
	const secret = "c2VjcmV0LXNlY3JldC1zZWNyZXQ"
	for _, text := range []string{
		"", "x", `{"kty":"RSA"}`, `{"kty":"RSA","n":"` + secret + `","e":"AQAB","d":"` + secret + `","p":"Aw","q":"BQ"}`,
		`{"kty":"EC","crv":"P-256"}`, `{"kty":"EC","crv":"P-256","d":"` + strings.Repeat(secret, 4) + `"}`,
		`{"kty":"EC","crv":"secp256k1","d":"` + secret + `"}`, `{"kty":"oct","k":"` + secret + `"}`, `{"kty":"EC","crv":"P-256","d":"` + secret + `+"}`,
	} {
		dir, account := putKey(t, text)
		_, err := AccountKey(dir, keyServer, account)
		if err == nil || fault.KindOf(err) != fault.Usage {
			t.Errorf("%s: error %v, want one of kind Usage", text, err)
		} else if strings.Contains(err.Error(), secret) {
			t.Errorf("the key is shown: %v", err)
		}
	}
	dir, _ := putKey(t, "")
	if _, err := AccountKey(dir, keyServer, Account{ID: "none"}); err == nil {
		t.Error("a key that is not there is read")
	}
}

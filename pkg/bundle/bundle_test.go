package bundle_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"github.com/certhook/certhook/pkg/bundle"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/tests/haproxytest"
)

func TestParse(t *testing.T) {
	ca := haproxytest.NewAuthority(t)
	good := ca.Issue(haproxytest.Wish{}, "a.test", "*.a.test")
	rsa := ca.Issue(haproxytest.Wish{RSA: 2048}, "r.test")
	expired := ca.Issue(haproxytest.Wish{Age: 48 * time.Hour, Left: -time.Hour}, "a.test")
	early := ca.Issue(haproxytest.Wish{Age: -time.Hour}, "a.test")
	other := ca.Issue(haproxytest.Wish{}, "b.test")
	stranger := haproxytest.NewAuthority(t).Issue(haproxytest.Wish{}, "a.test")
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	crlf := func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n")) }
	blank := func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\n"), []byte("\n\n")) }
	tests := []struct {
		name       string
		chain, key []byte
		says       string // of the fault; "" for none
	}{
		{name: "good", chain: good.Chain(), key: good.PrivateKey},
		{name: "RSA", chain: rsa.Chain(), key: rsa.PrivateKey},
		{name: "SEC 1", chain: good.Chain(), key: sec1(t, good.PrivateKey)},
		{name: "with EC PARAMETERS", chain: good.Chain(), key: join(params, sec1(t, good.PrivateKey))},
		{name: "CRLF", chain: crlf(good.Chain()), key: crlf(good.PrivateKey)},
		{name: "blank lines", chain: blank(good.Chain()), key: blank(good.PrivateKey)},
		{name: "no line feed at the end", chain: bytes.TrimSpace(good.Chain()), key: bytes.TrimSpace(good.PrivateKey)},

		{name: "nothing", says: "empty"},
		{name: "no key", chain: good.Chain(), says: "key"},
		{name: "another's key", chain: good.Chain(), key: other.PrivateKey, says: "does not belong"},
		{name: "two keys", chain: good.Chain(), key: join(good.PrivateKey, good.PrivateKey), says: "one private key"},
		{name: "a certificate for a key", chain: good.Chain(), key: good.Cert, says: "one private key"},
		{name: "encrypted key", chain: good.Chain(), key: bytes.ReplaceAll(good.PrivateKey, []byte("PRIVATE KEY"), []byte("ENCRYPTED PRIVATE KEY")), says: "encrypted"},
		{name: "damaged key", chain: good.Chain(), key: bytes.Replace(good.PrivateKey, []byte("MI"), []byte("!!"), 1), says: "damaged"},
		{name: "key in the chain", chain: join(good.Chain(), good.PrivateKey), key: good.PrivateKey, says: "PRIVATE KEY"},
		{name: "intermediate first", chain: join(good.Issuer, good.Cert), key: good.PrivateKey, says: "come first"},
		{name: "cut short", chain: good.Cert, key: good.PrivateKey, says: "cut short"},
		{name: "cut within a block", chain: good.Chain()[:len(good.Chain())-100], key: good.PrivateKey, says: "no end"},
		{name: "another CA's intermediate", chain: join(good.Cert, stranger.Issuer), key: good.PrivateKey, says: "not signed by"},
		{name: "text between", chain: join(good.Cert, []byte("hello\n"), good.Issuer), key: good.PrivateKey, says: "something else than PEM"},
		{name: "text in front", chain: join([]byte("Certificate:\n  Data:\n"), good.Chain()), key: good.PrivateKey, says: "something else than PEM"},
		{name: "expired", chain: expired.Chain(), key: expired.PrivateKey, says: "expired"},
		{name: "not valid yet", chain: early.Chain(), key: early.PrivateKey, says: "clock"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b, err := bundle.Parse(tt.chain, tt.key, time.Now())
			if tt.says != "" {
				if err == nil || fault.KindOf(err) != fault.Lineage || !strings.Contains(err.Error(), tt.says) {
					t.Errorf("error %v of kind %v, want %q", err, fault.KindOf(err), tt.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			checkPEM(t, b)
		})
	}
	b, err := bundle.Parse(good.Chain(), good.PrivateKey, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	same, err := bundle.Parse(blank(crlf(good.Chain())), crlf(good.PrivateKey), time.Now())
	if err != nil || !bytes.Equal(b.PEM(), same.PEM()) {
		t.Errorf("the same certificate makes another file (%v)", err)
	}
	if b.Fingerprint() != haproxytest.SHA1(good.Leaf) || b.Serial() != haproxytest.Serial(good.Leaf) {
		t.Errorf("fingerprint %s, serial %s", b.Fingerprint(), b.Serial())
	}
	for names, covered := range map[string]bool{
		"a.test": true, "A.TEST": true, "*.a.test": true, "x.a.test": true, "x.y.a.test": false, "b.test": false, "*.test": false, "a.test b.test": false,
	} {
		if err := b.Covers(strings.Fields(names)); (err == nil) != covered {
			t.Errorf("%s: %v", names, err)
		}
	}
}

// checkPEM holds the file to what the runtime API needs, and to being the same certificate.
func checkPEM(t *testing.T, b *bundle.Bundle) {
	t.Helper()
	text := b.PEM()
	if bytes.Contains(text, []byte("\n\n")) || bytes.Contains(text, []byte("\r")) || !bytes.HasSuffix(text, []byte("-----\n")) {
		t.Errorf("not canonical:\n%s", text)
	}
	again, err := bundle.Read(text)
	if err != nil || !again.Leaf().Equal(b.Leaf()) || len(again.Chain) != len(b.Chain) {
		t.Errorf("read again: %+v, %v", again, err)
	}
}

var params = []byte("-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n")

// sec1 writes a PKCS#8 key as openssl ec does.
func sec1(t *testing.T, pkcs8 []byte) []byte {
	t.Helper()
	block, _ := pem.Decode(pkcs8)
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key.(*ecdsa.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}

// Whatever is in the files: no panic, and what is let through makes a file that HAProxy can be sent.
func FuzzParse(f *testing.F) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		f.Fatal(err)
	}
	p := haproxytest.NewAuthority(f).Issue(haproxytest.Wish{Key: key}, "a.test")
	f.Add(p.Chain(), p.PrivateKey)
	f.Add(append([]byte("text\n"), p.Chain()...), p.PrivateKey)
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"), params)
	f.Add([]byte("-----BEGIN X-----\n\n-----END X-----"), []byte{})
	f.Fuzz(func(t *testing.T, chain, key []byte) {
		b, err := bundle.Parse(chain, key, time.Now())
		if err != nil {
			return
		}
		text := b.PEM()
		if bytes.Contains(text, []byte("\n\n")) || bytes.Contains(text, []byte("\r")) {
			t.Errorf("not canonical:\n%s", text)
		}
		if _, err := bundle.Read(text); err != nil {
			t.Error(err)
		}
	})
}

package bundle_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/certhook/certhook/pkg/bundle"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/tests/haproxytest"
)

// Keys in every form there is make the same file, and HAProxy loads it and calls the certificate what we call it.
func TestKeys(t *testing.T) {
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]crypto.Signer{
		"RSA":     must(rsa.GenerateKey(rand.Reader, 2048))(t),
		"P-256":   p256(t),
		"P-384":   must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))(t),
		"Ed25519": ed,
	} {
		t.Run(name, func(t *testing.T) {
			e := newEstate(t)
			template := server("a.test")
			template.SerialNumber = big.NewInt(0x0a0b0c) // a zero in front, which HAProxy writes
			template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
			lower := authority("Lower")
			lower.NotBefore, lower.NotAfter = template.NotBefore, template.NotAfter
			e.lower = issue(t, &e.root, p256(t), lower)
			e.leaf = issue(t, &e.lower, key, template)
			var want []byte
			for form, text := range forms(t, e.leaf) {
				b, err := bundle.Parse(chain(e.leaf, e.lower), text, time.Now())
				if err != nil {
					t.Fatalf("%s: %v", form, err)
				}
				if want == nil {
					want = b.PEM()
				}
				if !bytes.Equal(b.PEM(), want) {
					t.Errorf("%s makes another file", form)
				}
			}
			h := haproxytest.New(t, haproxytest.Options{})
			file := filepath.Join(h.CertDir, "a.test.pem")
			if err := os.WriteFile(file, want, 0o600); err != nil {
				t.Fatal(err)
			}
			h.Start()
			b := must(bundle.Read(want))(t)
			shown := h.Command("show ssl cert " + file)
			lines := []string{"Serial: " + b.Serial(), "SHA1 FingerPrint: " + b.Fingerprint()}
			if name == "Ed25519" { // of which HAProxy 2.6 tells nothing from the algorithm on
				lines = lines[:1]
			}
			for _, line := range lines {
				if !strings.Contains(shown, "\n"+line+"\n") {
					t.Errorf("HAProxy does not say %q, but\n%s", line, shown)
				}
			}
			served := h.Served("a.test")
			if len(served) != 2 || !served[0].Equal(e.leaf.cert) || !served[1].Equal(e.lower.cert) {
				t.Errorf("HAProxy serves %d certificates, or others", len(served))
			}
		})
	}
}

// forms are the ways to write a key.
func forms(t *testing.T, p pair) map[string][]byte {
	t.Helper()
	forms := map[string][]byte{"PKCS#8": p.keyPEM(t)}
	switch key := p.key.(type) {
	case *rsa.PrivateKey:
		forms["PKCS#1"] = block("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key))
	case *ecdsa.PrivateKey:
		sec1 := block("EC PRIVATE KEY", must(x509.MarshalECPrivateKey(key))(t))
		forms["SEC 1"] = sec1
		forms["SEC 1 with its curve"] = join([]byte("-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"), sec1)
	}
	return forms
}

// However the files are written, the same certificates and key make the same file, and nothing is in it that ends
// what the runtime API reads.
func TestCanonical(t *testing.T) {
	e := newEstate(t)
	certs, key := chain(e.leaf, e.lower, e.upper), e.leaf.keyPEM(t)
	want := must(bundle.Parse(certs, key, now))(t).PEM()
	if exact := join(certs, key); !bytes.Equal(want, exact) {
		t.Errorf("a canonical file becomes\n%s", want)
	}
	replace := func(old, with string) func([]byte) []byte {
		return func(text []byte) []byte { return bytes.ReplaceAll(text, []byte(old), []byte(with)) }
	}
	for name, write := range map[string]func([]byte) []byte{
		"CRLF":                        replace("\n", "\r\n"),
		"blank lines":                 replace("\n", "\n\n"),
		"white space":                 replace("\n", " \t\n  "),
		"comments":                    replace("-----BEGIN", "# subject=CN = a.test\n#\n-----BEGIN"),
		"no line feed at the end":     bytes.TrimSpace,
		"a line for each block":       oneLine,
		"in front and behind nothing": func(text []byte) []byte { return join([]byte("\n \r\n"), text, []byte("\n\n")) },
	} {
		t.Run(name, func(t *testing.T) {
			b, err := bundle.Parse(write(certs), write(key), now)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(b.PEM(), want) {
				t.Errorf("another file:\n%s", b.PEM())
			}
		})
	}
}

// oneLine writes the body of each block in one line.
func oneLine(text []byte) []byte {
	var out []byte
	for b, rest := pem.Decode(text); b != nil; b, rest = pem.Decode(rest) {
		lines := strings.Split(strings.TrimSpace(string(block(b.Type, b.Bytes))), "\n")
		last := len(lines) - 1
		out = fmt.Appendf(out, "%s\n%s\n%s\n", lines[0], strings.Join(lines[1:last], ""), lines[last])
	}
	return out
}

// Where a chain may end.
func TestChain(t *testing.T) {
	e := newEstate(t)
	byRoot := issue(t, &e.root, p256(t), x509.Certificate{DNSNames: []string{"a.test"}}) // its usage is open
	alone := issue(t, nil, p256(t), server("a.test"))
	oldRoot := authority("Old Root")
	oldRoot.NotBefore, oldRoot.NotAfter = now.AddDate(-9, 0, 0), now.AddDate(0, 0, -1)
	old := issue(t, nil, p256(t), oldRoot)
	byOld := issue(t, &old, p256(t), server("a.test"))
	for name, pairs := range map[string][]pair{
		"with one intermediate":  {e.leaf, e.lower},
		"with two":               {e.leaf, e.lower, e.upper},
		"with the root":          {e.leaf, e.lower, e.upper, e.root},
		"with nothing but it":    {byRoot, e.root},
		"with one that is past":  {byOld, old},
		"of one that signs self": {alone},
	} {
		b, err := bundle.Parse(chain(pairs...), pairs[0].keyPEM(t), now)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if len(b.Chain) != len(pairs) || !b.Leaf().Equal(pairs[0].cert) {
			t.Errorf("%s: %d certificates", name, len(b.Chain))
		}
	}
}

// What no server can use is refused. The error says what is wrong and, where a person can, what to do; it shows
// nothing of a key.
func TestUnusable(t *testing.T) {
	e, stranger := newEstate(t), newEstate(t)
	good, key := chain(e.leaf, e.lower, e.upper), e.leaf.keyPEM(t)
	client := issue(t, &e.lower, p256(t), x509.Certificate{DNSNames: []string{"a.test"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	nameless := issue(t, &e.lower, p256(t), server())
	ownCA := authority("a.test")
	ownCA.DNSNames = []string{"a.test"}
	ca := issue(t, nil, p256(t), ownCA)
	short := authority("Short-lived")
	short.NotBefore, short.NotAfter = now.AddDate(0, 0, -1), now.Add(-time.Second)
	past := issue(t, &e.root, p256(t), short)
	byPast := issue(t, &past, p256(t), server("a.test"))
	// One that is no CA can sign, and no client believes it.
	byLeaf := issue(t, &e.leaf, p256(t), server("b.test"))
	headless := bytes.SplitN(key, []byte("\n"), 2)[1]
	noFeed := bytes.TrimSuffix(e.leaf.certPEM(), []byte("\n"))
	tests := []struct {
		name       string
		chain, key []byte
		at         time.Time
		says       []string
	}{
		{name: "nothing", says: []string{"fullchain.pem", "empty"}},
		{name: "no key", chain: good, says: []string{"privkey.pem", "empty"}},
		{name: "blank lines for a key", chain: good, key: []byte("\n# a comment\n\n"), says: []string{"privkey.pem", "empty"}},

		{name: "another's key", chain: good, key: stranger.leaf.keyPEM(t), says: []string{"a.test", "does not belong"}},
		{name: "two keys", chain: good, key: join(key, key), says: []string{"privkey.pem", "one private key"}},
		{name: "a certificate for a key", chain: good, key: e.leaf.certPEM(), says: []string{"privkey.pem", "one private key"}},
		{name: "parameters for a key", chain: good, key: block("EC PARAMETERS", []byte{6, 0}), says: []string{"privkey.pem", "one private key"}},
		{name: "encrypted key", chain: good, key: bytes.ReplaceAll(key, []byte("PRIVATE"), []byte("ENCRYPTED PRIVATE")), says: []string{"privkey.pem", "encrypted"}},
		{name: "encrypted key of old", chain: good, key: bytes.Replace(key, []byte("KEY-----\n"), []byte("KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\n"), 1), says: []string{"privkey.pem", "encrypted"}},
		{name: "damaged key", chain: good, key: bytes.Replace(key, []byte("MI"), []byte("!!"), 1), says: []string{"privkey.pem", "line 1", "damaged"}},
		{name: "key of no kind", chain: good, key: block("PRIVATE KEY", []byte("a key")), says: []string{"privkey.pem", "kind"}},
		{name: "key cut short", chain: good, key: key[:len(key)/2], says: []string{"privkey.pem", "no end"}},
		{name: "key without its first line", chain: good, key: headless, says: []string{"privkey.pem", "line 1"}},

		{name: "key in the chain", chain: join(good, key), key: key, says: []string{"fullchain.pem", "PRIVATE KEY"}},
		{name: "key in the chain without its first line", chain: join(good, headless), key: key, says: []string{"fullchain.pem", "neither"}},
		{name: "text between", chain: join(e.leaf.certPEM(), []byte("hello\n"), e.lower.certPEM()), key: key, says: []string{"fullchain.pem", fmt.Sprintf("line %d", 1+bytes.Count(noFeed, []byte("\n"))+1)}},
		{name: "text in front", chain: join([]byte("Certificate:\n  Data:\n"), good), key: key, says: []string{"fullchain.pem", "line 1"}},
		{name: "text behind", chain: join(good, []byte("Connection closed\n")), key: key, says: []string{"fullchain.pem", "neither"}},
		{name: "comment in a block", chain: bytes.Replace(good, []byte("\n"), []byte("\n# hello\n"), 1), key: key, says: []string{"fullchain.pem", "line 1", "damaged"}},
		{name: "no line feed between", chain: join(noFeed, e.lower.certPEM()), key: key, says: []string{"fullchain.pem", "line 1", "no end of its own"}},
		{name: "a block within", chain: join([]byte("-----BEGIN CERTIFICATE-----\n"), good), key: key, says: []string{"fullchain.pem", "line 1", "before line 2"}},
		{name: "another block's end", chain: bytes.Replace(good, []byte("END CERTIFICATE"), []byte("END X509 CRL"), 1), key: key, says: []string{"fullchain.pem", "line 1", "no end of its own"}},
		{name: "cut within a block", chain: good[:len(good)-100], key: key, says: []string{"fullchain.pem", "no end"}},
		{name: "no certificate in a block", chain: join(e.leaf.certPEM(), block("CERTIFICATE", []byte("hello"))), key: key, says: []string{"fullchain.pem", "x509"}},
		{name: "more than a certificate in a block", chain: join(block("CERTIFICATE", append(bytes.Clone(e.leaf.cert.Raw), 0)), e.lower.certPEM()), key: key, says: []string{"fullchain.pem", "x509"}},

		{name: "intermediate first", chain: chain(e.lower, e.leaf), key: key, says: []string{"Lower", "a.test", "first"}},
		{name: "another's leaf first", chain: chain(stranger.leaf, e.leaf, e.lower), key: key, says: []string{"first"}},
		{name: "intermediates in the wrong order", chain: chain(e.leaf, e.upper, e.lower), key: key, says: []string{"certificate 2", "Upper", "not signed"}},
		{name: "one left out", chain: chain(e.leaf, e.lower, e.root), key: key, says: []string{"certificate 3", "Root", "Lower"}},
		{name: "cut short", chain: e.leaf.certPEM(), key: key, says: []string{"cut short", "Lower"}},
		{name: "leaf twice", chain: chain(e.leaf, e.leaf, e.lower), key: key, says: []string{"certificate 2", "a.test", "not signed"}},
		{name: "another CA's intermediate of that name", chain: chain(e.leaf, stranger.lower), key: key, says: []string{"certificate 2", "Lower", "not signed"}},
		{name: "another CA's behind", chain: chain(e.leaf, e.lower, stranger.root), key: key, says: []string{"certificate 3", "Root", "not signed"}},
		{name: "signed by one that is no CA", chain: chain(byLeaf, e.leaf, e.lower), key: byLeaf.keyPEM(t), says: []string{"certificate 2", "a.test", "not signed"}},

		{name: "a CA for itself", chain: ca.certPEM(), key: ca.keyPEM(t), says: []string{"a.test", "CA's"}},
		{name: "an intermediate with its own key", chain: chain(e.lower, e.upper), key: e.lower.keyPEM(t), says: []string{"Lower", "CA's"}},
		{name: "for clients", chain: chain(client, e.lower), key: client.keyPEM(t), says: []string{"not for servers"}},
		{name: "for no name", chain: chain(nameless, e.lower), key: nameless.keyPEM(t), says: []string{"no name"}},

		{name: "expired", chain: good, key: key, at: e.leaf.cert.NotAfter.Add(time.Second), says: []string{"a.test", "expired", "2026-03-02 12:00:00 UTC"}},
		{name: "not valid yet", chain: good, key: key, at: e.leaf.cert.NotBefore.Add(-time.Second), says: []string{"a.test", "2026-02-28 12:00:00 UTC"}},
		{name: "intermediate expired", chain: chain(byPast, past), key: byPast.keyPEM(t), says: []string{"Short-lived", "expired"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.at.IsZero() {
				tt.at = now
			}
			b, err := bundle.Parse(tt.chain, tt.key, tt.at)
			if err == nil {
				t.Fatalf("it is let through: %v", b)
			}
			if fault.KindOf(err) != fault.Lineage || fault.HintOf(err) == "" {
				t.Errorf("kind %v, hint %q", fault.KindOf(err), fault.HintOf(err))
			}
			told := err.Error() + fault.HintOf(err)
			for _, part := range tt.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("it says %q, and nothing of %q", err, part)
				}
			}
			for line := range strings.Lines(string(key)) {
				if line = strings.TrimSpace(line); !strings.HasPrefix(line, "-") && strings.Contains(told, line) {
					t.Errorf("it shows the key: %q", told)
				}
			}
			if strings.Contains(told, "%!") {
				t.Errorf("it is not formatted: %q", told)
			}
		})
	}
	for _, at := range []time.Time{e.leaf.cert.NotBefore, e.leaf.cert.NotAfter} {
		if _, err := bundle.Parse(good, key, at); err != nil {
			t.Errorf("at %s: %v", at, err)
		}
	}
}

func TestCovers(t *testing.T) {
	template := server("a.test", "*.a.test", "xn--bcher-kva.test")
	template.IPAddresses = append(template.IPAddresses, []byte{192, 0, 2, 1})
	e := newEstate(t)
	e.leaf = issue(t, &e.lower, p256(t), template)
	b := must(bundle.Parse(chain(e.leaf, e.lower), e.leaf.keyPEM(t), now))(t)
	for names, missing := range map[string]string{
		"":                       "",
		"a.test":                 "",
		"A.Test":                 "",
		"*.a.test":               "",
		"*.A.TEST":               "",
		"x.a.test":               "",
		"XN--Bcher-KVA.test":     "",
		"192.0.2.1":              "",
		"a.test *.a.test":        "",
		"x.y.a.test":             "x.y.a.test",
		"*.x.a.test":             "*.x.a.test",
		"*.test":                 "*.test",
		"*.xn--bcher-kva.test":   "*.xn--bcher-kva.test",
		"ba.test":                "ba.test",
		".a.test":                ".a.test",
		"192.0.2.2":              "192.0.2.2",
		"a.test b.test c.test":   "b.test c.test",
		"b.test a.test *.b.test": "b.test *.b.test",
	} {
		err := b.Covers(strings.Fields(names))
		if (err == nil) != (missing == "") || err != nil && fault.KindOf(err) != fault.Lineage {
			t.Errorf("%q: %v", names, err)
		}
		for _, name := range strings.Fields(missing) {
			if !strings.Contains(err.Error(), `"`+name+`"`) {
				t.Errorf("%q: %v, and nothing of %q", names, err, name)
			}
		}
	}
}

// A file on disk may be anybody's: in any order, with text in it, without a key.
func TestRead(t *testing.T) {
	e := newEstate(t)
	certs, key := chain(e.leaf, e.lower), e.leaf.keyPEM(t)
	b := must(bundle.Parse(certs, key, now))(t)
	for name, text := range map[string][]byte{
		"ours":      b.PEM(),
		"key first": join(key, certs),
		"with text": join([]byte("Certificate:\n"), certs, []byte("\nhello\n"), key),
		"with more": join(certs, block("DH PARAMETERS", []byte{48, 0}), key),
		"SEC 1":     join(certs, forms(t, e.leaf)["SEC 1 with its curve"]),
	} {
		if got, err := bundle.Read(text); err != nil || !bytes.Equal(got.PEM(), b.PEM()) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if got, err := bundle.Read(certs); err != nil || got.Fingerprint() != b.Fingerprint() || !bytes.Equal(got.PEM(), certs) {
		t.Errorf("without a key: %v, %v", got, err)
	}
	for name, text := range map[string][]byte{"nothing": nil, "a key": key, "no certificate": block("CERTIFICATE", []byte("hello"))} {
		if got, err := bundle.Read(text); err == nil {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// No message shows the key of a bundle that is in it.
func TestFormat(t *testing.T) {
	e := newEstate(t)
	b := must(bundle.Parse(chain(e.leaf, e.lower), e.leaf.keyPEM(t), now))(t)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%d"} {
		if got, want := fmt.Sprintf(verb, b), "certificate "+b.Serial(); got != want {
			t.Errorf("%s: %s", verb, got)
		}
	}
}

package bundle_test

import (
	"bytes"
	"testing"

	"github.com/certhook/certhook/pkg/bundle"
	"github.com/certhook/certhook/pkg/fault"
)

// Whatever is in the files: what is let through makes a file that HAProxy can be sent, and taken apart again it is the
// same.
func FuzzParse(f *testing.F) {
	e := newEstate(f)
	certs, key := chain(e.leaf, e.lower), e.leaf.keyPEM(f)
	f.Add(certs, key)
	f.Add(join([]byte("# text\n\n"), certs), bytes.ReplaceAll(key, []byte("\n"), []byte("\r\n\r\n")))
	f.Add(certs, block("PRIVATE KEY", []byte("a key")))
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"), []byte("-----BEGIN EC PARAMETERS-----\n-----END EC PARAMETERS-----"))
	f.Add([]byte("-----BEGIN -----\n-----BEGIN-----\n-----END -----"), []byte("-----BEGIN "))
	f.Fuzz(func(t *testing.T, certs, key []byte) {
		b, err := bundle.Parse(certs, key, now)
		if err != nil {
			if fault.KindOf(err) != fault.Lineage {
				t.Errorf("an error of kind %v: %v", fault.KindOf(err), err)
			}
			return
		}
		text := b.PEM()
		if bytes.Contains(text, []byte("\n\n")) || bytes.Contains(text, []byte("\r")) || !bytes.HasSuffix(text, []byte("-----\n")) {
			t.Errorf("not canonical:\n%q", text)
		}
		at := bytes.Index(text, []byte("-----BEGIN PRIVATE KEY"))
		again, err := bundle.Parse(text[:at], text[at:], now)
		if err != nil || !bytes.Equal(again.PEM(), text) {
			t.Errorf("taken apart it is %v, %v", again, err)
		}
		read, err := bundle.Read(text)
		if err != nil || !bytes.Equal(read.PEM(), text) {
			t.Errorf("read it is %v, %v", read, err)
		}
	})
}

func FuzzRead(f *testing.F) {
	e := newEstate(f)
	f.Add(join(chain(e.leaf, e.lower), e.leaf.keyPEM(f)))
	f.Add(join([]byte("text\n"), e.leaf.keyPEM(f), chain(e.leaf)))
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		b, err := bundle.Read(text)
		if err != nil {
			return
		}
		again, err := bundle.Read(b.PEM())
		if err != nil || !bytes.Equal(again.PEM(), b.PEM()) || again.Serial() != b.Serial() {
			t.Errorf("read again: %v, %v", again, err)
		}
	})
}

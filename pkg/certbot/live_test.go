package certbot_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/certhook/certhook/pkg/bundle"
	"github.com/certhook/certhook/pkg/certbot"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/tests/haproxytest"
)

// Certbot switches the links while we read, again and again: what is read is always of one certificate.
func TestReadLiveWhileSwitching(t *testing.T) {
	ca, l := haproxytest.NewAuthority(t), haproxytest.NewLineages(t)
	renew := func() {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Error(err)
			return
		}
		l.Renew("a.test", ca.Issue(haproxytest.Wish{Key: key}, "a.test"))
	}
	renew()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				renew()
			}
		}
	})
	serials := map[string]bool{}
	for range 300 {
		m, err := certbot.ReadLive(t.Context(), l.Root, "a.test")
		if err != nil {
			t.Fatal(err)
		}
		b, err := bundle.Parse(m.Chain, m.Key, time.Now())
		if err != nil {
			t.Fatalf("a mix was read: %v", err)
		}
		serials[b.Serial()] = true
	}
	close(stop)
	wg.Wait()
	if len(serials) < 3 {
		t.Errorf("%d versions were seen", len(serials))
	}
}

func TestReadLive(t *testing.T) {
	ca, l := haproxytest.NewAuthority(t), haproxytest.NewLineages(t)
	p := ca.Issue(haproxytest.Wish{}, "a.test")
	l.Renew("a.test", p)
	l.Renew("b.test", p)
	if names, err := certbot.LiveNames(l.Root); err != nil || !slices.Equal(names, []string{"a.test", "b.test"}) {
		t.Errorf("names %q, %v", names, err)
	}
	if names, err := certbot.LiveNames(t.TempDir()); err != nil || len(names) > 0 {
		t.Errorf("names %q, %v", names, err)
	}
	m, err := certbot.ReadLive(t.Context(), l.Root, "a.test")
	if err != nil || string(m.Chain) != string(p.Chain()) || string(m.Key) != string(p.PrivateKey) || m.Dir != l.Live("a.test") {
		t.Errorf("%+v, %v", m, err)
	}

	// Plain files, as a lineage has that was copied.
	plain := filepath.Join(l.Root, "live", "plain.test")
	if err := os.Mkdir(plain, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"cert": p.Cert, "chain": p.Issuer, "fullchain": p.Chain(), "privkey": p.PrivateKey} {
		if err := os.WriteFile(filepath.Join(plain, name+".pem"), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := certbot.ReadLive(t.Context(), l.Root, "plain.test"); err != nil {
		t.Error(err)
	}

	for _, name := range []string{"a b", "a;b", `a\b`, "a<b", "a\nb", ""} {
		if _, err := certbot.ReadLive(t.Context(), l.Root, name); fault.KindOf(err) != fault.Lineage {
			t.Errorf("%q: %v", name, err)
		}
	}
	if err := os.Remove(filepath.Join(l.Live("b.test"), "privkey.pem")); err != nil {
		t.Fatal(err)
	}
	if _, err := certbot.ReadLive(t.Context(), l.Root, "b.test"); err == nil || fault.KindOf(err) != fault.Lineage {
		t.Errorf("without a key: %v", err)
	}
}

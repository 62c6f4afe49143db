package labca

import (
	"crypto/x509"
	"testing"
)

func TestIssue(t *testing.T) {
	ca, err := New()
	if err != nil {
		t.Fatal(err)
	}
	cert, err := ca.Issue("api.example.com", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(cert.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca.PEM()) {
		t.Fatalf("not PEM: %s", ca.PEM())
	}
	for _, name := range []string{"api.example.com", "127.0.0.1"} {
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: name}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"example.com", "127.0.0.2"} {
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: ca.Pool(), DNSName: name}); err == nil {
			t.Errorf("%s: the certificate is not for it", name)
		}
	}
	if _, err := ca.Issue(); err == nil {
		t.Error("a certificate for nothing")
	}
}

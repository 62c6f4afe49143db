package lab_test

import (
	"crypto/x509"
	"os"
	"testing"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/resolver"
	"github.com/certhook/certhook/tests/lab"
)

func TestDoH(t *testing.T) {
	l := lab.New(t, lab.Options{})
	d := l.StartDoH("dns.google", "127.0.0.60")
	e, err := resolver.ParseEndpoint("https://dns.google@127.0.0.60/dns-query")
	if err != nil {
		t.Fatal(err)
	}
	// This process may have read the trust store of an earlier lab.
	store, err := os.ReadFile("/etc/ssl/certs/ca-certificates.crt")
	if err != nil {
		t.Fatal(err)
	}
	e.Roots = x509.NewCertPool()
	e.Roots.AppendCertsFromPEM(store)
	for name, rcode := range map[string]int{"svc.example.com": dns.RcodeSuccess, "nope.example.com": dns.RcodeNameError} {
		m, err := resolver.Exchange(t.Context(), e, resolver.NewQuestion(name, dns.TypeA, true))
		if err != nil || m.Rcode != rcode || (len(m.Answer) == 1) != (rcode == dns.RcodeSuccess) {
			t.Errorf("%s: %v, %v", name, m, err)
		}
	}
	if n := len(d.Asked()); n != 2 {
		t.Errorf("%d questions noted", n)
	}
}

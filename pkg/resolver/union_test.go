package resolver_test

import (
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/certhook/certhook/pkg/authority"
	"github.com/certhook/certhook/pkg/caa"
	"github.com/certhook/certhook/pkg/resolver"
)

// A record that one resolver tells of in hexadecimal and another as text is one record.
func TestUnionOfEncodings(t *testing.T) {
	var all []resolver.Endpoint
	for i, file := range []string{"cloudflare-caa-generic-pair", "cloudflare-caa-text-pair", "google-caa-pair"} {
		body, err := os.ReadFile(filepath.Join("testdata", file+".json"))
		if err != nil {
			t.Fatal(err)
		}
		s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			name, qtype := r.URL.Query().Get("name"), r.URL.Query().Get("type")
			if name != "example.com." || qtype != "257" {
				_, _ = fmt.Fprintf(w, `{"Status":2,"Question":[{"name":%q,"type":%s}]}`, name, qtype)
				return
			}
			_, _ = w.Write(body)
		}))
		t.Cleanup(s.Close)
		roots := x509.NewCertPool()
		roots.AddCert(s.Certificate())
		at := netip.MustParseAddrPort(s.Listener.Addr().String())
		// Three names for which the certificate is good, so that they are three resolvers.
		host := []string{"example.com", "127.0.0.1", "www.example.com"}[i]
		all = append(all, resolver.Endpoint{Transport: resolver.JSON, Host: host, Addr: at.Addr(), Port: at.Port(), Path: "/resolve", Roots: roots})
	}
	panel := resolver.NewPanel(all)
	if panel.Size() != len(all) {
		t.Fatalf("%d resolvers, want %d", panel.Size(), len(all))
	}
	c := &authority.Client{Recursive: resolver.Recursive{Endpoints: all}, Timeout: 100 * time.Millisecond}
	set, err := caa.Lookup(t.Context(), c, panel, "example.com")
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Records) != 1 || set.Records[0].Value != "letsencrypt.org" || set.Plain {
		t.Errorf("the set is %+v, want one record, from answers over HTTPS", set)
	}
	if lag := caa.Heard(t.Context(), panel, set).Lagging; len(lag) > 0 {
		t.Errorf("those that say the same lag behind: %+v", lag)
	}
}

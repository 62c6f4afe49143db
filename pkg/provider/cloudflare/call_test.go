package cloudflare

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/certhook/certhook/pkg/provider"
)

// Whatever libdns may come to ask in a later version, only requests about this zone and value go out.
func TestCallRefuses(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("sent: %s %s", r.Method, r.URL)
	}))
	t.Cleanup(api.Close)
	base, err := url.Parse(api.URL)
	if err != nil {
		t.Fatal(err)
	}
	const root = "https://api.cloudflare.com/client/v4"
	for _, tt := range []struct{ method, url string }{
		{"GET", root + "/zones"},
		{"GET", root + "/zones?name=example.net"},
		{"GET", root + "/zones?name=deleg.example.net."},
		{"GET", root + "/zones/other/dns_records?type=TXT"},
		{"POST", root + "/zones/other/dns_records"},
		{"PUT", root + "/zones/this/dns_records/ours"},
		{"PATCH", root + "/zones/this/dns_records/ours"},
		{"DELETE", root + "/zones/this/dns_records/theirs"},
		{"DELETE", root + "/zones/this/dns_records/"},
		{"DELETE", root + "/zones/this/dns_records"},
		{"DELETE", root + "/zones/other/dns_records/ours"},
		{"DELETE", root + "/zones/this"},
		{"GET", root + "/user/tokens/verify"},
		{"GET", root + "/zones/this/dns_records/../../other/dns_records"},
		{"GET", "https://example.org/client/v4/zones/this/dns_records"},
		{"GET", "https://api.cloudflare.com/zones/this/dns_records"},
	} {
		c := &call{
			api: newClient(base, "token", 1, nil), zone: provider.Zone{Name: "deleg.example.net", ID: "this"},
			name: "x.deleg.example.net", relative: "x", value: "v", found: []record{{ID: "ours"}},
		}
		r, err := http.NewRequestWithContext(t.Context(), tt.method, tt.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.Do(r)
		if err == nil {
			resp.Body.Close()
			t.Errorf("%s %s was answered", tt.method, tt.url)
		} else if !strings.Contains(err.Error(), "refused") || c.err == nil {
			t.Errorf("%s %s: %v", tt.method, tt.url, err)
		}
	}
}

func TestRetryAfterOverflow(t *testing.T) {
	r := &retry{method: http.MethodGet, first: 1}
	resp := &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"9223372036854775807"}}}
	if _, err := r.check(t.Context(), resp, nil); err != nil || r.wait <= 0 {
		t.Errorf("wait %v, %v", r.wait, err)
	}
}

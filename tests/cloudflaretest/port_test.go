package cloudflaretest

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"syscall"
	"testing"

	"github.com/certhook/certhook/tests/labca"
)

// The call after the one that the fault names is the first that does not get through, over a connection that
// would have been kept.
func TestRefusing(t *testing.T) {
	s, a, _ := account(t, nil)
	client := &http.Client{}
	t.Cleanup(client.CloseIdleConnections)
	get := func(path string) error {
		t.Helper()
		resp, err := client.Get(s.URL + path)
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
	s.Break(Fault{Path: Zones, Then: func() { s.SetRefusing(true) }})
	if err := get("/zones/" + a + "/dns_records"); err != nil {
		t.Fatal(err)
	}
	if err := get(Zones); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := get(Zones); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("while it refuses: %v", err)
		}
		s.SetRefusing(true)
	}
	for range 2 {
		s.SetRefusing(false)
		if err := get("/zones/" + a); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	}
}

func TestSetCertificate(t *testing.T) {
	authority, err := labca.New()
	if err != nil {
		t.Fatal(err)
	}
	right, err := authority.Issue("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	wrong, err := authority.Issue("api.example.org")
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := New(t, nil, OnListener(l), WithCertificate(right))
	for _, http2 := range []bool{false, true} {
		s.SetCertificate(right)
		client := &http.Client{Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: authority.Pool(), MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: http2,
		}}
		lift := s.Break(Fault{Then: func() { s.SetCertificate(wrong) }})
		for i, want := range []bool{true, false} {
			resp, err := client.Get(s.URL + Zones)
			if _, bad := errors.AsType[x509.HostnameError](err); (err == nil) != want || bad == want {
				t.Errorf("HTTP/2 %v, call %d: %v", http2, i, err)
			}
			if err == nil {
				resp.Body.Close()
			}
		}
		lift()
	}
}

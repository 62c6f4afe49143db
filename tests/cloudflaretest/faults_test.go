package cloudflaretest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"net/http"
	"testing"
	"time"
)

func TestFaults(t *testing.T) {
	body := `{"type":"TXT","name":"_x","content":"v","ttl":60}`
	limited := RateLimited
	limited.RetryAfter = 7
	redirect := Fault{Status: 302, Location: "https://example.org/"}
	rewrite := Fault{Rewrite: func([]byte) []byte { return []byte(`{"success":true,"result":[1]}`) }}
	tests := []struct {
		name   string
		fault  Fault
		status int // 0 = no whole answer
		header string
		acted  bool
	}{
		{name: "none", fault: Fault{Method: "DELETE"}, status: 200, acted: true},
		{name: "other path", fault: HTML502.On("", Zones), status: 200, acted: true},
		{name: "HTML", fault: HTML502, status: 502},
		{name: "403", fault: Forbidden.On("POST", RecordSet), status: 403},
		{name: "429", fault: limited, status: 429, header: "Retry-After"},
		{name: "no success", fault: Unsuccessful, status: 200},
		{name: "no result", fault: NullResult, status: 200},
		{name: "redirect", fault: redirect, status: 302, header: "Location"},
		{name: "closed", fault: Fault{Drop: true}},
		{name: "lost reply", fault: LostReply, acted: true},
		{name: "502 after effect", fault: Fault{Act: true, Status: 502}, status: 502, acted: true},
		{name: "rewritten", fault: rewrite, status: 200, acted: true},
		{name: "cut off", fault: Fault{Cut: true}, acted: true},
		{name: "slow", fault: Fault{Slow: time.Microsecond}, status: 200, acted: true},
		{name: "delayed", fault: Fault{Delay: time.Millisecond}, status: 200, acted: true},
		{name: "later", fault: Fault{After: 1, Drop: true}, status: 200, acted: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, a, _ := account(t, &dnsMap{})
			lift := s.Break(tt.fault)
			path := "/zones/" + a + "/dns_records"
			got, err := try(t, s, "Bearer a-only", "POST", path, body)
			if err != nil {
				got.status = 0
			}
			if got.status != tt.status {
				t.Errorf("status %d, %v; want %d", got.status, err, tt.status)
			}
			if tt.header != "" && got.header.Get(tt.header) == "" {
				t.Errorf("no header %s", tt.header)
			}
			if acted := len(s.Records("a.example")) == 1; acted != tt.acted {
				t.Errorf("took effect: %v, want %v", acted, tt.acted)
			}
			lift()
			if got := call(t, s, "a-only", "GET", path, ""); got.status != 200 {
				t.Errorf("status %d after the fault was lifted", got.status)
			}
		})
	}
}

func TestFaultCounts(t *testing.T) {
	s, _, _ := account(t, nil)
	s.Break(Fault{After: 1, Count: 2, Status: http.StatusTeapot})
	for i, want := range []int{200, 418, 418, 200} {
		if got := call(t, s, "a-only", "GET", "/zones?name=a.example", ""); got.status != want {
			t.Errorf("call %d: status %d, want %d", i, got.status, want)
		}
	}
}

func TestTLS(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"api.cloudflare.com"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := New(t, nil, OnListener(l), WithCertificate(tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}))
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	client := http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "api.cloudflare.com", MinVersion: tls.VersionTLS12},
	}}
	if want := "https://" + l.Addr().String() + Prefix; s.URL != want {
		t.Errorf("URL %q, want %q", s.URL, want)
	}
	resp, err := client.Get(s.URL + "/zones?name=a.example")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusBadRequest { // no token
		t.Errorf("status %d", resp.StatusCode)
	}
}

// A call can be stopped before and after it takes effect.
func TestIntercept(t *testing.T) {
	for _, stop := range []Moment{"", Arrived, Decided} {
		s, a, _ := account(t, &dnsMap{})
		path := "/zones/" + a + "/dns_records"
		seen := make(chan Moment, 2)
		s.Intercept(func(c Call, m Moment) bool {
			if c.Method != "POST" || c.Zone != "a.example" || !c.End.IsZero() {
				t.Errorf("intercepted %+v", c)
			}
			if acted := len(s.Records("a.example")) == 1; acted != (m == Decided) {
				t.Errorf("%s: took effect: %v", m, acted)
			}
			seen <- m
			return m != stop
		})
		_, err := try(t, s, "Bearer a-only", "POST", path, `{"type":"TXT","name":"_x","content":"v","ttl":60}`)
		if failed := err != nil; failed != (stop != "") {
			t.Errorf("stopped at %q: %v", stop, err)
		}
		if n := len(seen); (n == 1) != (stop == Arrived) {
			t.Errorf("stopped at %q: %d moments", stop, n)
		}
		s.Intercept(nil)
		if got := call(t, s, "a-only", "GET", path, ""); got.status != 200 {
			t.Errorf("status %d afterwards", got.status)
		}
	}
}

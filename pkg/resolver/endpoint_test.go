package resolver

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/certhook/certhook/pkg/fault"
)

func TestParseEndpoint(t *testing.T) {
	addr := netip.MustParseAddr
	tests := []struct {
		in, text string
		want     Endpoint
	}{
		{"192.0.2.1", "udp://192.0.2.1", Endpoint{Transport: UDP, Addr: addr("192.0.2.1"), Port: 53}},
		{"192.0.2.1:5353", "udp://192.0.2.1:5353", Endpoint{Transport: UDP, Addr: addr("192.0.2.1"), Port: 5353}},
		{"2001:db8::1", "udp://[2001:db8::1]", Endpoint{Transport: UDP, Addr: addr("2001:db8::1"), Port: 53}},
		{"[2001:db8::1]:5353", "udp://[2001:db8::1]:5353", Endpoint{Transport: UDP, Addr: addr("2001:db8::1"), Port: 5353}},
		{"udp://192.0.2.1", "udp://192.0.2.1", Endpoint{Transport: UDP, Addr: addr("192.0.2.1"), Port: 53}},
		{"tcp://[2001:db8::1]:54/", "tcp://[2001:db8::1]:54", Endpoint{Transport: TCP, Addr: addr("2001:db8::1"), Port: 54}},
		{"tls://dns.example", "tls://dns.example", Endpoint{Transport: TLS, Host: "dns.example", Port: 853}},
		{"tls://dns.example:8853@192.0.2.1", "tls://dns.example:8853@192.0.2.1", Endpoint{Transport: TLS, Host: "dns.example", Addr: addr("192.0.2.1"), Port: 8853}},
		{"tls://192.0.2.1", "tls://192.0.2.1", Endpoint{Transport: TLS, Host: "192.0.2.1", Addr: addr("192.0.2.1"), Port: 853}},
		{"https://dns.example", "https://dns.example/dns-query", Endpoint{Transport: HTTPS, Host: "dns.example", Port: 443, Path: "/dns-query"}},
		{"https://DNS.example./q/a", "https://dns.example/q/a", Endpoint{Transport: HTTPS, Host: "dns.example", Port: 443, Path: "/q/a"}},
		{"https://dns.example@192.0.2.1/q", "https://dns.example@192.0.2.1/q", Endpoint{Transport: HTTPS, Host: "dns.example", Addr: addr("192.0.2.1"), Port: 443, Path: "/q"}},
		{"https://dns.example@[2001:db8::1]/q", "https://dns.example@[2001:db8::1]/q", Endpoint{Transport: HTTPS, Host: "dns.example", Addr: addr("2001:db8::1"), Port: 443, Path: "/q"}},
		{"https://[2001:db8::1]:444/q", "https://[2001:db8::1]:444/q", Endpoint{Transport: HTTPS, Host: "2001:db8::1", Addr: addr("2001:db8::1"), Port: 444, Path: "/q"}},
		{"https://dns.example/id/A%20B", "https://dns.example/id/A%20B", Endpoint{Transport: HTTPS, Host: "dns.example", Port: 443, Path: "/id/A%20B"}},
		{"fe80::1%eth0", "udp://[fe80::1%eth0]", Endpoint{Transport: UDP, Addr: addr("fe80::1%eth0"), Port: 53}},
		{"https://dns.google/resolve", "https://dns.google/resolve", Endpoint{Transport: JSON, Host: "dns.google", Port: 443, Path: "/resolve"}},
	}
	for _, tt := range tests {
		got, err := ParseEndpoint(tt.in)
		if err != nil || got != tt.want {
			t.Errorf("ParseEndpoint(%q) = %+v, %v, want %+v", tt.in, got, err, tt.want)
			continue
		}
		if got.String() != tt.text {
			t.Errorf("%q reads back as %q, want %q", tt.in, got, tt.text)
		}
		if again, err := ParseEndpoint(got.String()); err != nil || again != got {
			t.Errorf("ParseEndpoint(%q) = %+v, %v, want what it came from", got, again, err)
		}
	}
}

func TestParseEndpointRefuses(t *testing.T) {
	for _, in := range []string{
		"", "dns.example", "udp://dns.example", "udp://192.0.2.1@192.0.2.2", "tcp://dns.example:53", "udp://192.0.2.1/x",
		"http://dns.example/dns-query", "quic://dns.example", "https://", "https:///dns-query", "https://dns.example:0/q",
		"https://dns.example:99999/q", "https://dns.example@other.example/q", "https://dns.example/q?dns=1", "https://user:pw@192.0.2.1/q",
		"https://dns.example/%zz", "https://[fe80::1%25eth0]/q", "tls://fe80::1%eth0", "tls://dns_example", "tls://-bad.example", "192.0.2.1:", "192.0.2.256",
	} {
		if got, err := ParseEndpoint(in); err == nil || fault.KindOf(err) != fault.Usage {
			t.Errorf("ParseEndpoint(%q) = %v, %v, want an error of kind Usage", in, got, err)
		}
	}
}

func TestDefaultIsPinned(t *testing.T) {
	hosts := map[string]bool{}
	for _, e := range Default() {
		if !e.Addr.IsValid() || e.Transport != HTTPS {
			t.Errorf("%v is not HTTPS to a pinned address", e)
		}
		if again, err := ParseEndpoint(e.String()); err != nil || again != e {
			t.Errorf("ParseEndpoint(%q) = %+v, %v", e, again, err)
		}
		hosts[e.Host] = true
	}
	if len(hosts) < 2 {
		t.Errorf("the default has the hosts %v, want two independent ones", hosts)
	}
}

func TestSystemEndpoints(t *testing.T) {
	path := filepath.Join(t.TempDir(), "resolv.conf")
	write := func(s string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("search example.com\nnameserver 192.0.2.1\nnameserver 2001:db8::1\n")
	got, err := SystemEndpoints(path)
	if err != nil || len(got) != 2 || got[0].String() != "udp://192.0.2.1" || got[1].String() != "udp://[2001:db8::1]" {
		t.Errorf("SystemEndpoints = %v, %v", got, err)
	}
	write("# nothing\n")
	if got, err := SystemEndpoints(path); err == nil {
		t.Errorf("SystemEndpoints of an empty file = %v, want an error", got)
	}
	if got, err := SystemEndpoints(path + ".missing"); err == nil {
		t.Errorf("SystemEndpoints of no file = %v, want an error", got)
	}
}

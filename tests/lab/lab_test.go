package lab_test

import (
	"context"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/certhook/certhook/tests/acmetest"
	"github.com/certhook/certhook/tests/lab"
)

func TestMain(m *testing.M) { os.Exit(lab.Enter(m.Run)) }

func TestNamesLeadToTheLab(t *testing.T) {
	l := lab.New(t, lab.Options{})
	l.Delegate("svc.example.com")
	target := lab.Target("svc.example.com", lab.AliasZone)
	if err := l.World.AddTXT(lab.AliasZone, target, "hello", 60); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{lab.Resolver, lab.CAResolver} {
		r := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort(at, "53"))
		}}
		txt, err := r.LookupTXT(t.Context(), "_acme-challenge.svc.example.com")
		if err != nil || !slices.Equal(txt, []string{"hello"}) {
			t.Errorf("through %s: %q, %v", at, txt, err)
		}
	}

	// With the machine's own files alone: hosts, resolv.conf and trust store.
	client := &http.Client{Timeout: 5 * time.Second}
	t.Cleanup(client.CloseIdleConnections)
	for url, status := range map[string]int{
		"https://" + lab.CAHost + "/directory":        http.StatusOK,
		"https://" + lab.APIHost + "/client/v4/zones": http.StatusBadRequest, // no token
	} {
		resp, err := client.Get(url)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		resp.Body.Close()
		if resp.StatusCode != status {
			t.Errorf("%s: %s", url, resp.Status)
		}
	}
	if addrs, err := net.DefaultResolver.LookupHost(t.Context(), "svc.example.com"); err != nil || !slices.Equal(addrs, []string{"192.0.2.2"}) {
		t.Errorf("svc.example.com: %q, %v", addrs, err)
	}
}

func TestCAResolverForgets(t *testing.T) {
	l := lab.New(t, lab.Options{})
	ask := func() string {
		return strings.TrimSpace(l.Run("/usr/bin/python3", "-c", askTXT, lab.CAResolver).Stdout)
	}
	first := ask()
	if err := l.World.AddTXT(lab.AliasZone, lab.AliasZone, "now", 60); err != nil {
		t.Fatal(err)
	}
	time.Sleep(1100 * time.Millisecond)
	if second := ask(); first != "0" || second != "1" {
		t.Errorf("answers: %q before, %q after", first, second)
	}
}

// askTXT prints how many TXT records deleg.example.net has.
const askTXT = `
import socket, struct, sys
name = b"".join(bytes([len(l)]) + l.encode() for l in "deleg.example.net".split(".")) + b"\0"
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(3)
s.sendto(struct.pack(">HHHHHH", 1, 0x100, 1, 0, 0, 0) + name + struct.pack(">HH", 16, 1), (sys.argv[1], 53))
print(struct.unpack(">HHHHHH", s.recv(4096)[:12])[3])
`

func TestNothingGetsOut(t *testing.T) {
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range interfaces {
		if i.Flags&net.FlagLoopback == 0 && i.Flags&net.FlagUp != 0 {
			t.Errorf("interface %s is up", i.Name)
		}
	}
	conn, err := net.DialTimeout("tcp", "192.0.2.1:80", time.Second)
	if err == nil {
		conn.Close()
		t.Error("a connection out of the lab")
	}
}

func TestStateDoesNotOutliveALab(t *testing.T) {
	t.Run("first", func(t *testing.T) {
		lab.New(t, lab.Options{})
		for _, dir := range []string{lab.StateDir, lab.CertbotDir + "/live"} {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	})
	lab.New(t, lab.Options{})
	for _, path := range []string{lab.StateDir, lab.CertbotDir + "/live"} {
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%s: %v", path, err)
		}
	}
	info, err := os.Stat(lab.SettingsFile)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("settings file: %v, %v", info, err)
	}
}

func TestPlay(t *testing.T) {
	var order []string
	code := lab.Play(func(tb lab.TB) {
		tb.Cleanup(func() { order = append(order, "last") })
		tb.Cleanup(func() { order = append(order, "first") })
		tb.Fatalf("(a message that belongs here)")
		order = append(order, "never")
	})
	if code != 1 || !slices.Equal(order, []string{"first", "last"}) {
		t.Errorf("exit code %d, order %q", code, order)
	}
	if code := lab.Play(func(lab.TB) {}); code != 0 {
		t.Errorf("exit code %d without a failure", code)
	}
}

var _ acmetest.TB = lab.TB(nil)

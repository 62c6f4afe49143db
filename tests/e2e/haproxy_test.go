package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/certhook/certhook/tests/haproxytest"
	"github.com/certhook/certhook/tests/lab"
)

// served is a lab in which HAProxy runs and certbot calls haproxy-apply.
func served(t *testing.T, o haproxytest.Options) (*lab.Lab, *haproxytest.HAProxy) {
	t.Helper()
	h := haproxytest.New(t, o)
	first := haproxytest.NewAuthority(t).Issue(haproxytest.Wish{}, "default.test")
	if err := os.WriteFile(filepath.Join(h.CertDir, "000.pem"), append(first.Chain(), first.PrivateKey...), 0o600); err != nil {
		t.Fatal(err)
	}
	h.Start()
	l := lab.New(t, lab.Options{Settings: map[string]string{
		"HAPROXY_CERT_DIR": h.CertDir, "HAPROXY_CONFIG": h.Config, "HAPROXY_PIDFILE": h.PIDFile,
	}})
	l.Delegate("svc.example.com")
	return l, h
}

// onDisk fails the test unless HAProxy shows the lineage's certificate, or, if not, that it does not.
func onDisk(t *testing.T, h *haproxytest.HAProxy, want bool) {
	t.Helper()
	s := &scene{t: t}
	cert := s.checkLineage("svc.example.com", "svc.example.com", "*.svc.example.com")
	if got := h.Served("svc.example.com")[0]; got.Equal(cert) != want {
		t.Errorf("HAProxy serves serial %X, the lineage has %X", got.SerialNumber, cert.SerialNumber)
	}
}

// Certbot's deploy hook brings a new and a renewed certificate to the wire, and no connection fails.
func TestDeployHook(t *testing.T) {
	l, h := served(t, haproxytest.Options{})
	args := append(lab.IssueArgs("svc.example.com", "*.svc.example.com"), "--deploy-hook", lab.Hook("haproxy-apply"))
	if r := l.Certbot(args...); r.Code != 0 || !strings.Contains(r.Stdout+r.Stderr, "applied by reload") {
		t.Fatalf("certbot: %v", r)
	}
	onDisk(t, h, true)
	l.FreshAccount()
	probe := h.Probe("svc.example.com")
	if r := l.Renew(); r.Code != 0 || !strings.Contains(r.Stdout+r.Stderr, "applied by hot update") {
		t.Fatalf("certbot: %v", r)
	}
	onDisk(t, h, true)
	if made, failed := probe.Stop(); len(failed) > 0 || made < 100 {
		t.Errorf("%d of %d connections failed: %q", len(failed), made, failed[:min(3, len(failed))])
	}
}

// The reload fails at the moment of the renewal. Certbot ends well all the same and has nothing more to do; the next
// plain run of haproxy-apply, which no event of certbot's causes, makes up for it.
func TestDeployHookFails(t *testing.T) {
	l, h := served(t, haproxytest.Options{NoStatsSocket: true})
	args := append(lab.IssueArgs("svc.example.com", "*.svc.example.com"), "--deploy-hook", lab.Hook("haproxy-apply")+" --then 'test -e /tmp/then'")
	if err := os.RemoveAll("/tmp/then"); err != nil {
		t.Fatal(err)
	}
	if r := l.Certbot(args...); r.Code != 0 {
		t.Fatalf("certbot: %v", r)
	}
	onDisk(t, h, true)
	again := func(code int, extra ...string) {
		t.Helper()
		if r := l.Run(lab.Hook("haproxy-apply"), extra...); r.Code != code {
			t.Errorf("want exit code %d: %v", code, r)
		}
	}
	again(0)
	again(1, "--then", "test -e /tmp/then") // it has failed with certbot, too, and HAProxy serves the certificate
	if err := os.WriteFile("/tmp/then", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove("/tmp/then") })
	again(0, "--then", "test -e /tmp/then")

	l.FreshAccount()
	h.Break()
	if r := l.Renew(); r.Code != 0 {
		t.Fatalf("certbot: %v", r)
	}
	onDisk(t, h, false)
	if r := l.Certbot("renew", "--no-random-sleep-on-renew"); !strings.Contains(r.Stdout+r.Stderr, "not yet due") && !strings.Contains(r.Stdout+r.Stderr, "not due") {
		t.Errorf("certbot has something to do: %v", r)
	}
	onDisk(t, h, false)
	again(10)
	h.Mend()
	again(0)
	onDisk(t, h, true)
}

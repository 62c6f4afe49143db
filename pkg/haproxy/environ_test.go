package haproxy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/tests/haproxytest"
)

// A configuration says what it does in HAProxy's environment, of which ours, a certbot's or a shell's, tells nothing.
func TestEnvironmentOfHAProxy(t *testing.T) {
	t.Setenv("CERTS", "/none/of/ours")
	t.Setenv("ADMIN", "/none/of/ours")
	t.Setenv("WORD", "")
	s := newScene(t, haproxytest.Options{
		NoStatsSocket: true, Global: "stats socket \"${ADMIN}\" level admin",
		Certs: `crt "${CERTS}/"`, BindOptions: `"${WORD}"`,
		Env: []string{"ADMIN={dir}/s", "CERTS={certs}", "WORD=strict-sni", "API_TOKEN=hunter2hunter2"},
	})
	s.Start()
	s.renew("a.test", haproxytest.Wish{})
	if states, err := s.apply(); err != nil || states[0].Action != Reload {
		t.Fatalf("%s, %v", brief(states), err)
	}
	second := s.renew("a.test", haproxytest.Wish{})
	if states, err := s.apply(); err != nil || states[0].Action != Hot {
		t.Fatalf("%s, %v", brief(states), err)
	}
	s.serves(second)
	if strings.Contains(s.log.String(), "hunter2") {
		t.Errorf("the log has HAProxy's credential: %s", s.log.String())
	}

	// While HAProxy is down nobody knows its environment, and a check that fails for that must not keep from it what
	// it starts with.
	s.Stop()
	third := s.renew("a.test", haproxytest.Wish{})
	if err := os.Remove(filepath.Join(s.CertDir, "000-default.pem")); err != nil {
		t.Fatal(err)
	}
	states, err := s.apply()
	kind(t, err, fault.Pending)
	if states[0].Action != Staged || !strings.Contains(s.log.String(), "CERTS") {
		t.Errorf("%s, %v, log %s", brief(states), err, s.log.String())
	}
	s.Start()
	s.serves(third)
	if states, err := s.apply(); err != nil || states[0].Action != None {
		t.Errorf("%s, %v", brief(states), err)
	}
}

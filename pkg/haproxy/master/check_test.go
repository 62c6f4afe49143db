package master

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/certhook/certhook/pkg/fault"
)

const nobody = 65534

// What root may read the master's user may not.
func TestCheckAsTheMastersUser(t *testing.T) {
	h := newHAProxy(t)
	if err := os.Chown(h.dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	h.attr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody, Groups: []uint32{4, nobody}}
	p := h.start().find()
	if p.UID != nobody || p.GID != nobody || len(p.Groups) != 2 {
		t.Fatalf("%+v", p)
	}
	if err := p.Check(t.Context(), nil); err != nil {
		t.Fatalf("before: %v", err)
	}
	h.write("a.pem", certificate(t), 0o600)
	h.configure(fmt.Sprintf("bind 127.0.0.1:%d ssl crt %s", freePort(t), h.path("a.pem")))
	if err := (Process{}).Check(t.Context(), []string{h.path("h.cfg")}); err != nil {
		t.Errorf("as root: %v", err)
	}
	err := p.Check(t.Context(), nil)
	if fault.KindOf(err) != fault.Usage || !strings.Contains(err.Error(), h.path("a.pem")) {
		t.Errorf("as the master's user: %v", err)
	}
	for way, how := range ways(h) {
		if _, err := Reload(t.Context(), how); fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), h.path("a.pem")) {
			t.Errorf("reload by %s: %v", way, err)
		}
	}
	if err := os.Chmod(h.path("a.pem"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(h.path("a.pem"), 0, 4); err != nil {
		t.Fatal(err)
	}
	if err := p.Check(t.Context(), nil); err != nil {
		t.Errorf("by one of its groups: %v", err)
	}
}

func TestCheck(t *testing.T) {
	h := newHAProxy(t)
	h.args = append([]string{"-dr", "-n", "100", "-L", "-dashed"}, h.args...)
	h.env = []string{"WHERE=127.0.0.1"}
	h.configure(fmt.Sprintf(`bind "${WHERE}:%d"`, freePort(t)))
	p := h.start().find()
	t.Setenv("WHERE", "not-an-address")
	if err := p.Check(t.Context(), nil); err != nil {
		t.Errorf("with the master's environment: %v", err)
	}
	h.configure(fmt.Sprintf("bind \"${WHERE}:%d\"", freePort(t)))
	if err := (Process{}).Check(t.Context(), []string{h.path("h.cfg")}); err != nil { // unset: all addresses
		t.Errorf("without our environment: %v", err)
	}
	h.configure("bind \"${SECRET}:81\"\n    default_backend b\nbackend b\n    server s no-such-host.invalid:80")
	t.Setenv("SECRET", "127.0.0.1")
	if err := p.Check(t.Context(), nil); err != nil { // unset: all addresses
		t.Errorf("with the master's -dr: %v", err)
	}
	if err := (Process{}).Check(t.Context(), []string{h.path("h.cfg")}); err == nil {
		t.Error("without -dr an unknown host passes")
	}

	h.configure(strings.Repeat("no-such-keyword\n    ", 30))
	err := p.Check(t.Context(), nil)
	if fault.KindOf(err) != fault.Usage || strings.Count(err.Error(), "\n") != maxAlerts || strings.Contains(err.Error(), "[") && strings.Contains(err.Error(), "ALERT") {
		t.Errorf("broken configuration: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Check(ctx, nil); fault.KindOf(err) != fault.Pending {
		t.Errorf("interrupted: %v", err)
	}
	if err := (Process{}).Check(t.Context(), nil); fault.KindOf(err) != fault.Usage {
		t.Errorf("nothing to check: %v", err)
	}
	if err := (Process{}).Check(t.Context(), []string{h.path("none")}); fault.KindOf(err) != fault.Usage {
		t.Errorf("no such file: %v", err)
	}
}

// HAProxy quotes what a configuration makes of its environment. A credential in it stays there.
func TestCheckKeepsCredentialsToItself(t *testing.T) {
	h := newHAProxy(t)
	h.env = []string{"STATS_PASSWORD=hunter2hunter2", "STATS_PASSWORD_2=hunter2hunter2more", "CERT=/none/cert.pem"}
	p := h.start().find()
	h.configure("\"$STATS_PASSWORD\" x\n    \"$STATS_PASSWORD_2\" y\n    bind :1 ssl crt \"$CERT\"")
	err := p.Check(t.Context(), nil)
	_, failed := Reload(t.Context(), How{CLI: h.cli(), Process: &p})
	for _, err := range []error{err, failed} {
		if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "/none/cert.pem") ||
			!strings.Contains(err.Error(), "'${STATS_PASSWORD}'") || !strings.Contains(err.Error(), "'${STATS_PASSWORD_2}'") {
			t.Errorf("%v", err)
		}
	}
}

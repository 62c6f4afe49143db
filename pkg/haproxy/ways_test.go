package haproxy

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/certhook/certhook/pkg/bundle"
	"github.com/certhook/certhook/pkg/certbot"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/haproxy/admin"
	"github.com/certhook/certhook/tests/haproxytest"
)

// Whatever sockets HAProxy has, new and renewed certificates get there, no connection fails meanwhile, and where
// there is no way at all that is said and nothing is touched.
func TestWays(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Fatal("this needs root")
	}
	tests := []struct {
		name    string
		o       haproxytest.Options
		set     func(*scene) func(*Applier)
		renewal Action // by which the renewal comes
		none    bool   // there is no way to a reload
	}{
		{name: "both sockets", renewal: Hot},
		{name: "no master socket", o: haproxytest.Options{NoMasterSocket: true}, renewal: Hot},
		{name: "no stats socket", o: haproxytest.Options{NoStatsSocket: true}, renewal: Reload},
		{name: "signals only", o: haproxytest.Options{NoStatsSocket: true, NoMasterSocket: true}, renewal: Reload},
		{name: "operator's socket only", o: haproxytest.Options{Level: "operator"}, renewal: Reload},
		{
			name: "a command", o: haproxytest.Options{NoMaster: true}, renewal: Hot,
			set: func(s *scene) func(*Applier) {
				return func(a *Applier) {
					// As an init system would: a new process that takes the old one's place.
					a.ReloadCommand = "haproxy -D -f " + s.Config + " -p " + s.PIDFile + " -sf $(cat " + s.PIDFile + ")"
				}
			},
		},
		{name: "no master", o: haproxytest.Options{NoMaster: true}, renewal: Hot, none: true},
		{name: "no way", o: haproxytest.Options{NoMaster: true, NoStatsSocket: true}, none: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, tt.o)
			old := s.renew("old.test", haproxytest.Wish{})
			if _, err := s.apply(); err == nil {
				t.Fatal("HAProxy is down")
			}
			s.Start()
			t.Cleanup(func() { // what a command has started
				if raw, err := os.ReadFile(s.PIDFile); err == nil && tt.set != nil {
					for pid := range strings.FieldsSeq(string(raw)) {
						if p := atoi(pid); p > 1 && p != s.PID() {
							_ = syscall.Kill(p, syscall.SIGKILL)
						}
					}
				}
			})
			s.serves(old)
			change := func(*Applier) {}
			if tt.set != nil {
				change = tt.set(s)
			}
			fresh := s.renew("new.test", haproxytest.Wish{})
			probe := s.Probe("old.test")
			states, err := s.apply(change)
			if tt.none {
				kind(t, err, fault.Usage)
				if _, err := os.Stat(filepath.Join(s.CertDir, "new.test.pem")); err == nil {
					t.Error("a file was put there")
				}
			} else if err != nil {
				t.Fatalf("%s, %v, steps %q", brief(states), err, s.steps)
			} else {
				s.serves(fresh)
			}
			if tt.renewal != "" {
				renewed := s.renew("old.test", haproxytest.Wish{})
				states, err = s.apply(change)
				if (err != nil) != tt.none || states[1].Err != nil || states[1].Action != tt.renewal {
					t.Errorf("%s, %v, steps %q", brief(states), err, s.steps)
				}
				s.serves(renewed)
			}
			if made, failed := probe.Stop(); len(failed) > 0 || made < 10 {
				t.Errorf("%d of %d connections failed: %q", len(failed), made, failed[:min(3, len(failed))])
			}
			if err := s.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

func atoi(s string) int {
	n := 0
	for _, c := range s {
		n = n*10 + int(c-'0')
	}
	return n
}

// What the runtime API cannot carry goes by a reload, and not one octet of it to the socket.
func TestSizes(t *testing.T) {
	t.Parallel()
	s, tap, through := tapped(t)
	big := s.renew("a.test", haproxytest.Wish{ManyNames: 250})
	states, err := s.apply(through)
	if err != nil || states[0].Action != Reload {
		t.Fatalf("%s, %v, steps %q", brief(states), err, s.steps)
	}
	s.serves(big)
	if changes := tap.Changes(); len(changes) > 0 {
		t.Errorf("commands %q", changes)
	}
	// To the octet: what is allowed is set, one more is not.
	middle := s.renew("a.test", haproxytest.Wish{ManyNames: 40})
	a := s.applier()
	name := filepath.Join(s.CertDir, "a.test.pem")
	m, err := certbot.ReadLive(t.Context(), s.lineages.Root, "a.test")
	if err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Parse(m.Chain, m.Key, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	size := admin.Size(name, b.PEM())
	_ = a
	states, err = s.apply(through, func(a *Applier) { a.MaxPayload = size })
	if err != nil || states[0].Action != Reload {
		t.Errorf("%d octets: %s, %v", size, brief(states), err)
	}
	s.serves(middle)
	again := s.renew("a.test", haproxytest.Wish{ManyNames: 40})
	states, err = s.apply(through, func(a *Applier) { a.MaxPayload = size + 100 })
	if err != nil || states[0].Action != Hot {
		t.Errorf("%s, %v", brief(states), err)
	}
	s.serves(again)
}

// Binds that ask more of a client, or less of a name.
func TestBinds(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]string{
		"strict-sni":          "strict-sni",
		"client certificates": "verify required ca-file {dir}/ca.pem",
		"accept-proxy":        "accept-proxy",
		"TLS 1.3 only":        "ssl-min-ver TLSv1.3",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, haproxytest.Options{BindOptions: options, Files: map[string]string{"ca.pem": string(haproxytest.NewAuthority(t).RootPEM())}})
			s.renew("a.test", haproxytest.Wish{}, "a.test", "*.a.test")
			s.renew("r.test", haproxytest.Wish{RSA: 2048})
			if _, err := s.apply(); err == nil {
				t.Fatal("HAProxy is down")
			}
			s.Start()
			s.renew("a.test", haproxytest.Wish{}, "a.test", "*.a.test")
			states, err := s.apply()
			if err != nil || states[0].Action != Hot || len(states[0].Wire) != 2 {
				t.Errorf("%s, %v, steps %q", brief(states), err, s.steps)
			}
			s.renew("new.test", haproxytest.Wish{})
			if states, err := s.apply(); err != nil {
				t.Errorf("%s, %v, steps %q", brief(states), err, s.steps)
			}
		})
	}
}

// A HAProxy that does not start as root can read what we write, by its group, and nobody else can.
func TestGroup(t *testing.T) {
	t.Parallel()
	credential := &syscall.Credential{Uid: 65534, Gid: 65534}
	s := newScene(t, haproxytest.Options{Credential: credential})
	s.Start()
	s.renew("a.test", haproxytest.Wish{})
	_, err := s.apply()
	if err == nil {
		t.Error("without a group HAProxy cannot read it")
	}
	if _, err := os.Stat(filepath.Join(s.CertDir, "a.test.pem")); err == nil {
		t.Error("a file that HAProxy cannot read stays")
	}
	group := func(a *Applier) { a.Group = "nogroup" }
	states, err := s.apply(group)
	if err != nil {
		t.Fatalf("%s, %v, steps %q", brief(states), err, s.steps)
	}
	info, err := os.Stat(states[0].File)
	if err != nil || info.Mode().Perm() != 0o640 || info.Sys().(*syscall.Stat_t).Gid != 65534 || info.Sys().(*syscall.Stat_t).Uid != 0 {
		t.Errorf("%+v, %v", info, err)
	}
}

// --then has to succeed as well; until it does it is tried again, although HAProxy serves the certificate.
func TestThen(t *testing.T) {
	s := newScene(t, haproxytest.Options{})
	s.Start()
	s.renew("a.test", haproxytest.Wish{})
	t.Setenv("CLOUDFLARE_API_TOKEN", "secret")
	note := filepath.Join(t.TempDir(), "note")
	then := func(command string) func(*Applier) { return func(a *Applier) { a.Then = command } }
	_, err := s.apply(then("exit 3"))
	kind(t, err, fault.Other)
	_, err = s.apply(then("exit 4"))
	kind(t, err, fault.Other)
	good := then("env >>" + note)
	for range 3 {
		if _, err := s.apply(good); err != nil {
			t.Fatal(err)
		}
	}
	text, _ := os.ReadFile(note)
	if n := strings.Count(string(text), "CERTHOOK_LINEAGES=a.test\n"); n != 1 || strings.Contains(string(text), "secret") {
		t.Errorf("it ran %d times, with the environment %s", n, text)
	}
	s.renew("a.test", haproxytest.Wish{})
	if _, err := s.apply(good); err != nil {
		t.Fatal(err)
	}
	if text, _ = os.ReadFile(note); strings.Count(string(text), "CERTHOOK_LINEAGES") != 2 {
		t.Errorf("after a renewal: %s", text)
	}
}

// An older certificate takes a younger one's place only by force.
func TestForce(t *testing.T) {
	t.Parallel()
	s := newScene(t, haproxytest.Options{})
	s.Start()
	older := s.ca.Issue(haproxytest.Wish{Age: 100 * time.Hour}, "a.test")
	younger := s.renew("a.test", haproxytest.Wish{})
	if _, err := s.apply(); err != nil {
		t.Fatal(err)
	}
	s.lineages.Renew("a.test", older)
	_, err := s.apply()
	kind(t, err, fault.Lineage)
	s.serves(younger)
	if _, err := s.apply(func(a *Applier) { a.Force = true }); err != nil {
		t.Error(err)
	}
	s.serves(older)
}

// A dry run tells and changes nothing.
func TestDryRun(t *testing.T) {
	t.Parallel()
	s := newScene(t, haproxytest.Options{})
	s.Start()
	s.renew("a.test", haproxytest.Wish{})
	states, err := s.apply(func(a *Applier) { a.DryRun = true })
	if err != nil || states[0].Action != Reload || len(s.steps) > 0 {
		t.Errorf("%s, %v, steps %q", brief(states), err, s.steps)
	}
	if _, err := os.Stat(states[0].File); err == nil {
		t.Error("a file was written")
	}
}

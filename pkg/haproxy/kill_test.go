package haproxy

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/tests/haproxytest"
)

// killed is what a process of its own is told: to apply, and to die before one of the steps.
type killed struct {
	Root, CertDir, Config, PIDFile, State string
	Step                                  int // counted from 1; 0: at none
}

const killedEnv = "CERTHOOK_TEST_KILLED"

func TestMain(m *testing.M) {
	raw := os.Getenv(killedEnv)
	if raw == "" {
		os.Exit(m.Run())
	}
	var k killed
	if err := json.Unmarshal([]byte(raw), &k); err != nil {
		panic(err)
	}
	n := 0
	a := &Applier{
		Roots: []string{k.Root}, CertDir: k.CertDir, Config: []string{k.Config}, PIDFile: k.PIDFile,
		StateDir: k.State, Timeout: time.Minute, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Observe: func(string) {
			if n++; n == k.Step {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
		},
	}
	states, err := a.Apply(context.Background())
	if problem := Err(states); problem != nil {
		err = problem
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// inProcess applies in a process of its own, and reports whether that was killed.
func (s *scene) inProcess(step int) (killedThere bool, output string) {
	s.t.Helper()
	raw, err := json.Marshal(killed{s.lineages.Root, s.CertDir, s.Config, s.PIDFile, s.state, step})
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), killedEnv+"="+string(raw))
	out, err := cmd.CombinedOutput()
	exit, ok := err.(*exec.ExitError)
	return ok && exit.Sys().(syscall.WaitStatus).Signaled(), string(out)
}

// A run is killed before each of its steps. HAProxy goes on to serve a valid certificate, its folder always passes
// its own check, and the next plain run brings everything up to date.
func TestKilled(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]haproxytest.Options{"hot update and reload": {}, "reload alone": {NoStatsSocket: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, o)
			s.Start()
			s.renew("a.test", haproxytest.Wish{})
			if _, err := s.apply(); err != nil {
				t.Fatal(err)
			}
			for step := 1; ; step++ {
				fresh := []haproxytest.Pair{s.renew("a.test", haproxytest.Wish{}), s.renew(fmt.Sprintf("new%d.test", step), haproxytest.Wish{})}
				dead, output := s.inProcess(step)
				if err := s.Check(); err != nil {
					t.Fatalf("killed before step %d: %v", step, err)
				}
				if got := s.Served("a.test")[0]; got.VerifyHostname("a.test") != nil {
					t.Errorf("killed before step %d: it serves %q", step, got.DNSNames)
				}
				if states, err := s.apply(); err != nil {
					t.Fatalf("after step %d: %s, %v, steps %q", step, brief(states), err, s.steps)
				}
				for _, p := range fresh {
					s.serves(p)
				}
				if left, _ := filepath.Glob(filepath.Join(s.CertDir, ".*")); len(left) > 0 {
					t.Errorf("after step %d: left over are %q", step, left)
				}
				if !dead {
					if step < 6 {
						t.Errorf("only %d steps: %s", step, output)
					}
					break
				}
			}
		})
	}
}

// A run is killed before each of its steps while one lineage has what HAProxy does not take, by itself or for what lies
// beside it: that never stands in the folder, and the others' certificates arrive.
func TestKilledWithRefused(t *testing.T) {
	t.Parallel()
	for name, refused := range map[string]func(*scene){
		"a short key": func(s *scene) { s.renew("m.test", haproxytest.Wish{RSA: 1024}) },
		"another issuer's": func(s *scene) {
			s.put("m.test.pem", s.ca.Issue(haproxytest.Wish{Age: 2 * time.Hour}, "m.test"))
			s.put("m.test.pem.ocsp", haproxytest.Pair{Cert: []byte("an OCSP response")}) // or it does not look for the issuer
			s.put("m.test.pem.issuer", haproxytest.Pair{Cert: s.ca.Issue(haproxytest.Wish{}, "m.test").Issuer})
			s.lineages.Renew("m.test", haproxytest.NewAuthority(s.t).Issue(haproxytest.Wish{}, "m.test"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, haproxytest.Options{Global: "ssl-default-bind-options 'ssl-min-ver' TLSv1.2"})
			refused(s)
			s.Start()
			for step := 1; ; step++ {
				fresh := []haproxytest.Pair{s.renew(fmt.Sprintf("a%d.test", step), haproxytest.Wish{}), s.renew(fmt.Sprintf("z%d.test", step), haproxytest.Wish{})}
				dead, output := s.inProcess(step)
				if err := s.Check(); err != nil {
					t.Fatalf("killed before step %d: %v", step, err)
				}
				states, err := s.apply()
				kind(t, err, fault.Refused)
				for _, st := range states {
					if (st.Err != nil) != (st.Name == "m.test") {
						t.Errorf("after step %d: %s", step, brief(states))
					}
				}
				if err := s.Check(); err != nil {
					t.Fatalf("after step %d: %v", step, err)
				}
				for _, p := range fresh {
					s.serves(p)
				}
				if left, _ := filepath.Glob(filepath.Join(s.CertDir, ".*")); len(left) > 0 {
					t.Errorf("after step %d: left over are %q", step, left)
				}
				if !dead {
					if step < 10 {
						t.Errorf("only %d steps: %s", step, output)
					}
					break
				}
			}
		})
	}
}

// Between commit and rename a reload brings the older file back; the next run sees that.
func TestReloadAfterCommit(t *testing.T) {
	t.Parallel()
	s := newScene(t, haproxytest.Options{})
	s.Start()
	s.renew("a.test", haproxytest.Wish{})
	if _, err := s.apply(); err != nil {
		t.Fatal(err)
	}
	s.renew("a.test", haproxytest.Wish{})
	s.apply()
	n := 0
	for i, step := range s.steps {
		if strings.HasPrefix(step, "install") {
			n = i + 1
		}
	}
	fresh := s.renew("a.test", haproxytest.Wish{})
	if dead, output := s.inProcess(n); !dead || n == 0 {
		t.Fatalf("step %d: %s", n, output)
	}
	s.serves(fresh) // from memory
	s.Signal(syscall.SIGUSR2)
	if states, err := s.apply(); err != nil {
		t.Fatalf("%s, %v, steps %q", brief(states), err, s.steps)
	}
	s.serves(fresh)
}

// Somebody reloads HAProxy while we are at work: what is said to be served stays served.
func TestReloadInFlight(t *testing.T) {
	t.Parallel()
	s := newScene(t, haproxytest.Options{})
	s.renew("a.test", haproxytest.Wish{})
	for i := range 300 { // so that a reload takes a while
		s.put(fmt.Sprintf("many%04d.pem", i), s.ca.Issue(haproxytest.Wish{}, fmt.Sprintf("many%d.test", i)))
	}
	if _, err := s.apply(); err == nil {
		t.Fatal("HAProxy is down")
	}
	s.Start()
	for _, delay := range []time.Duration{0, 100 * time.Millisecond, 400 * time.Millisecond} {
		fresh := s.renew("a.test", haproxytest.Wish{})
		s.Signal(syscall.SIGUSR2)
		time.Sleep(delay)
		if states, err := s.apply(); err != nil {
			t.Fatalf("%s, %v, steps %q", brief(states), err, s.steps)
		}
		s.serves(fresh)
		time.Sleep(2 * time.Second) // the reload is over by now
		s.serves(fresh)
	}
}

// Certbot's deploy hook, a timer and a loop at the same time.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	s := newScene(t, haproxytest.Options{})
	s.Start()
	for _, name := range []string{"a.test", "b.test", "c.test"} {
		s.renew(name, haproxytest.Wish{})
	}
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			if _, out := s.inProcess(0); out != "" {
				t.Error(out)
			}
		})
	}
	wg.Wait()
	if states, err := s.apply(); err != nil || len(s.steps) > 0 {
		t.Errorf("%s, %v, steps %q", brief(states), err, s.steps)
	}
}

// A folder that cannot be written to, or into which anybody may write.
func TestFolder(t *testing.T) {
	t.Parallel()
	s := newScene(t, haproxytest.Options{})
	s.Start()
	s.renew("a.test", haproxytest.Wish{})
	if err := os.Chmod(s.CertDir, 0o777); err != nil {
		t.Fatal(err)
	}
	_, err := s.apply()
	kind(t, err, fault.Usage)
	_, err = s.apply(func(a *Applier) { a.CertDir = filepath.Join(s.Dir, "none") })
	kind(t, err, fault.Usage)
	if err := os.Chmod(s.CertDir, 0o700); err != nil {
		t.Fatal(err)
	}
	elsewhere := filepath.Join(s.Dir, "elsewhere")
	if err := os.Mkdir(elsewhere, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err = s.apply(func(a *Applier) { a.CertDir = elsewhere })
	kind(t, err, fault.Usage) // no bind loads it
	// A folder in the file's place.
	if err := os.Mkdir(filepath.Join(s.CertDir, ".a.test.pem.tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.CertDir, ".a.test.pem.tmp", "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = s.apply()
	kind(t, err, fault.Usage)
}

package e2e

import (
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/tests/cloudflaretest"
	"github.com/certhook/certhook/tests/lab"
)

// What becomes of an order when certbot does not live to see it through. A hook whose certbot is killed goes
// on alone, and nobody will call the cleanup hook.

// slowWrite leaves time to step in while the values are written.
var slowWrite = cloudflaretest.Fault{Delay: 2 * time.Second}.On(http.MethodPost, cloudflaretest.RecordSet)

// checkNothingWritten checks that the hooks asked the provider for no change at all.
func (s *scene) checkNothingWritten() {
	s.t.Helper()
	for _, c := range s.API.Calls() {
		if c.Method != http.MethodGet {
			s.t.Errorf("the provider was asked to %s %s", c.Method, c.Path)
		}
	}
}

func TestKilledInEachCall(t *testing.T) {
	for name, args := range map[string]func(*scene) []string{
		"the hook itself":  func(*scene) []string { return lab.IssueArgs(three...) },
		"behind a wrapper": func(s *scene) []string { return s.between(nil).args(three...) },
	} {
		t.Run(name, func(t *testing.T) {
			s := sceneFor(t, lab.Options{}, three...)
			for n := 1; n <= len(three); n++ {
				s.atQuestion(n, args(s), (*running).kill)
				s.hooksEnd()
				if n == 2 { // what is left of the last round is for the next hook
					s.sweep()
				}
			}
			s.checkNothingWritten()
			s.issue(three...)
			s.sweep()
		})
	}
}

func TestKilledDuringTheWrite(t *testing.T) {
	s := sceneFor(t, lab.Options{}, three...)
	s.API.Break(slowWrite)
	r := s.start(lab.IssueArgs(three...)...)
	eventually(t, "a write under way", func() bool { return len(s.writes()) == len(three) })
	r.kill()
	if w := s.writes()[0]; !w.End.IsZero() {
		t.Fatal("certbot was killed too late, the writes had ended")
	}
	s.hooksEnd()
	if n := len(s.calls(http.MethodDelete)); n != len(three) {
		t.Errorf("the hook removed %d values, want %d", n, len(three))
	}
	if left := s.ours(); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	s.sweep()
}

// Certbot and its hook die together, as with a service manager or a reboot; the record of what was under way
// is all that is left.
func TestKilledWithItsHookDuringTheWrite(t *testing.T) {
	for name, next := range map[string]func(*scene){
		"the next issuance": func(s *scene) { s.issue("svc.example.com") },
		"an operator":       (*scene).sweep,
	} {
		t.Run(name, func(t *testing.T) {
			s := sceneFor(t, lab.Options{}, append([]string{"svc.example.com"}, three...)...)
			var once sync.Once
			var r *running
			started := make(chan struct{})
			s.API.Observe(func(c cloudflaretest.Call) {
				if c.Method == http.MethodPost { // done, and not answered yet
					once.Do(func() {
						<-started
						r.killWithHooks()
					})
				}
			})
			r = s.start(lab.IssueArgs(three...)...)
			close(started)
			r.ended()
			s.hooksEnd()
			if len(s.ours()) == 0 {
				t.Fatal("nothing was left to remove")
			}
			next(s)
			if left := s.ours(); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
		})
	}
}

// untilWaiting returns when the hooks have written n values and a server of the alias zone has been asked for
// one of them in vain.
func (s *scene) untilWaiting(n int) {
	s.t.Helper()
	eventually(s.t, "the wait", func() bool {
		var last time.Time
		writes := s.writes()
		for _, w := range writes {
			if w.End.IsZero() {
				return false
			}
			last = w.End
		}
		if len(writes) < n {
			return false
		}
		for _, q := range s.World.Matching(s.records[0], dns.TypeTXT) {
			if q.Time.After(last) && q.Server == s.Alias[0].Host {
				return true
			}
		}
		return false
	})
}

// The hook looks twice a second whether its certbot still lives; it takes a small part of its time-out to
// remove the values and end.
func TestKilledDuringTheWait(t *testing.T) {
	const timeout, soon = time.Minute, 15 * time.Second
	for name, tt := range map[string]struct {
		names []string
		args  func(s *scene, names []string) []string
		scene func(*scene)
	}{
		"three names": {names: three},
		"single name": {names: three[:1]},
		"behind a wrapper": {names: three, args: func(s *scene, names []string) []string {
			b := s.between(nil)
			return lab.IssueArgsWith(behindShell(b.auth), b.cleanup, names...)
		}},
		// Nobody reads any more what the hook has to tell.
		"talkative": {names: three, args: func(_ *scene, names []string) []string {
			return lab.IssueArgsWith(lab.Hook("auth-hook")+" -v", lab.Hook("cleanup-hook")+" -v", names...)
		}},
		"warnings": {names: three, scene: func(s *scene) { s.Alias[1].SetDead(true) }},
	} {
		t.Run(name, func(t *testing.T) {
			s := sceneFor(t, lab.Options{Settings: map[string]string{"PROPAGATION_TIMEOUT": timeout.String()}}, three...)
			if tt.scene != nil {
				tt.scene(s)
			}
			args := lab.IssueArgs(tt.names...)
			if tt.args != nil {
				args = tt.args(s, tt.names)
			}
			s.Alias[0].SetLag(time.Hour)
			r := s.start(args...)
			s.untilWaiting(len(tt.names))
			r.kill()
			died := time.Now()
			s.hooksEnd()
			if took := time.Since(died); took > soon {
				t.Errorf("the hook ended %v after its certbot", took)
			}
			if left := s.ours(); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
			s.sweep()
		})
	}
}

// behindShell keeps a shell between certbot and the command, whatever /bin/sh makes of a single command.
func behindShell(command string) string { return command + " ; exit $?" }

// SIGTERM is what a service manager stops certbot with. Certbot kills the shell that it waits for, calls the
// cleanup hook for the calls that had ended, and goes; what the shell has started lives on.
func TestTerminatedBeforeTheLastCall(t *testing.T) {
	s := sceneFor(t, lab.Options{}, three...)
	var r *running
	started := make(chan struct{})
	b := s.between(func(c call) {
		if c.hook == "auth" && c.remaining == 0 {
			<-started
			r.signal(syscall.SIGTERM)
			r.ended()
		}
	})
	r = s.start(lab.IssueArgsWith(behindShell(b.auth), b.cleanup, three...)...)
	close(started)
	eventually(t, "the end of the last call", func() bool { return len(b.ended("auth")) == 3 })
	if c := b.ended("auth")[2]; c.code == 0 {
		t.Error("the hook calls it a success")
	}
	if n := len(b.ended("cleanup")); n != 2 {
		t.Errorf("certbot made %d cleanup calls, want 2", n)
	}
	s.checkNothingWritten()
	s.sweep()
}

// As before, but the last hook is at work already and goes on when certbot has begun to clean up.
func TestTerminatedInTheLastCall(t *testing.T) {
	for name, auth := range map[string]func(*between) string{
		"the hook itself":  func(*between) string { return lab.Hook("auth-hook") },
		"behind a wrapper": func(b *between) string { return behindShell(b.auth) },
	} {
		t.Run(name, func(t *testing.T) {
			s := sceneFor(t, lab.Options{}, three...)
			b := s.between(nil)
			r := s.atQuestion(3, lab.IssueArgsWith(auth(b), b.cleanup, three...), func(r *running) {
				r.signal(syscall.SIGTERM)
				eventually(t, "a cleanup call", func() bool { return len(b.begun("cleanup")) > 0 })
			})
			r.ended()
			s.hooksEnd()
			s.checkNothingWritten()
			s.sweep()
		})
	}
}

func TestTerminatedDuringTheWait(t *testing.T) {
	for name, names := range map[string][]string{"three names": three, "single name": three[:1]} {
		t.Run(name, func(t *testing.T) {
			s := sceneFor(t, lab.Options{}, three...)
			s.Alias[0].SetLag(time.Hour)
			r := s.start(lab.IssueArgs(names...)...)
			s.untilWaiting(len(names))
			r.signal(syscall.SIGTERM)
			r.ended()
			s.hooksEnd()
			s.Alias[0].SetLag(0)
			s.issue("b.example.com")
			if left := s.ours(); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
		})
	}
}

// A single name is a first and a last call at once: nothing before it could be missing.
func TestStoppedBeforeTheOnlyCall(t *testing.T) {
	for name, sig := range map[string]syscall.Signal{"terminated": syscall.SIGTERM, "killed": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			s := sceneFor(t, lab.Options{}, three...)
			var r *running
			started := make(chan struct{})
			b := s.between(func(c call) {
				<-started
				r.signal(sig)
				r.ended()
			})
			r = s.start(lab.IssueArgsWith(behindShell(b.auth), b.cleanup, three[0])...)
			close(started)
			eventually(t, "the end of the call", func() bool { return len(b.ended("auth")) == 1 })
			if c := b.ended("auth")[0]; c.code == 0 {
				t.Error("the hook calls it a success")
			}
			s.checkNothingWritten()
			s.sweep()
		})
	}
}

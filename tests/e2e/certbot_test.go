package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/tests/dnstest"
	"github.com/certhook/certhook/tests/lab"
)

// What tests need that step in while certbot is at work.

// patience is how long anything may take that is waited for.
const patience = time.Minute

// eventually waits until something is so.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after %v: not yet %s", patience, what)
		}
	}
}

// sceneFor is a scene in which the domains are delegated to the first alias zone.
func sceneFor(t *testing.T, o lab.Options, domains ...string) *scene {
	t.Helper()
	var records []string
	for _, d := range domains {
		records = append(records, lab.Target(d, lab.AliasZone))
	}
	s := newScene(t, o, records...)
	s.Delegate(domains...)
	return s
}

// ours returns the values at the scene's records that are not somebody else's.
func (s *scene) ours() []string {
	var values []string
	for _, r := range s.records {
		values = append(values, slices.DeleteFunc(s.API.TXT(r), func(v string) bool { return v == foreign })...)
	}
	return values
}

// askedByCA reports whether the CA has looked for a domain's challenge since then.
func (s *scene) askedByCA(domain string, since time.Time) bool {
	return slices.ContainsFunc(s.World.Matching(dnsname.Challenge(domain), dns.TypeTXT), func(q dnstest.Query) bool {
		return q.From.String() == lab.CAResolver && q.Time.After(since)
	})
}

// sweep is what an operator does after an accident. It has to leave nothing in the journal but what was
// looked for and not there.
func (s *scene) sweep() {
	s.t.Helper()
	if r := s.Run(lab.Hook("cleanup-hook"), "--sweep"); r.Code != 0 {
		s.t.Errorf("cleanup-hook --sweep: %v", r)
	}
	r := s.Run(lab.Hook("cleanup-hook"), "--list", "--json")
	var items []struct{ State string }
	if err := json.Unmarshal([]byte(r.Stdout), &items); r.Code != 0 || err != nil {
		s.t.Errorf("cleanup-hook --list: %v, %v", r, err)
	}
	for _, i := range items {
		if i.State != "absent" {
			s.t.Errorf("cleanup-hook --list: %v", r)
		}
	}
}

// running is a certbot at work. It leads a session of its own, as one that a timer starts does.
type running struct {
	s              *scene
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer
	done           chan struct{}
}

func (s *scene) start(args ...string) *running {
	s.t.Helper()
	r := &running{s: s, done: make(chan struct{})}
	r.cmd = lab.Command(context.Background(), "/usr/bin/certbot", args...)
	r.cmd.Stdout, r.cmd.Stderr = &r.stdout, &r.stderr
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := r.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	go func() {
		_ = r.cmd.Wait() // how it ended is in ProcessState
		close(r.done)
	}()
	s.t.Cleanup(func() {
		_ = syscall.Kill(-r.cmd.Process.Pid, syscall.SIGKILL)
		<-r.done
	})
	return r
}

// ended waits for certbot's end.
func (r *running) ended() lab.Result {
	r.s.t.Helper()
	eventually(r.s.t, "the end of certbot", func() bool {
		select {
		case <-r.done:
			return true
		default:
			return false
		}
	})
	return lab.Result{Code: r.cmd.ProcessState.ExitCode(), Stdout: r.stdout.String(), Stderr: r.stderr.String()}
}

// signal sends certbot alone a signal.
func (r *running) signal(sig syscall.Signal) {
	if err := syscall.Kill(r.cmd.Process.Pid, sig); err != nil {
		r.s.t.Errorf("signal certbot: %v", err)
	}
}

// kill ends certbot alone and returns when it is dead.
func (r *running) kill() {
	r.s.t.Helper()
	r.signal(syscall.SIGKILL)
	r.ended()
}

// killWithHooks ends certbot and all that it has started.
func (r *running) killWithHooks() {
	if err := syscall.Kill(-r.cmd.Process.Pid, syscall.SIGKILL); err != nil {
		r.s.t.Errorf("kill certbot and its hooks: %v", err)
	}
}

// hooksEnd waits until no hook runs any more. Those whose certbot is gone are the test's children.
func (s *scene) hooksEnd() {
	s.t.Helper()
	eventually(s.t, "the end of the hooks", func() bool {
		cmdlines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		return !slices.ContainsFunc(cmdlines, func(path string) bool {
			text, _ := os.ReadFile(path) // empty once it has ended
			return bytes.HasPrefix(text, []byte(lab.Hook("")+"/"))
		})
	})
}

// atQuestion starts certbot and calls do the moment that the hooks ask about the n-th of its challenges. No
// question about a challenge is answered until do returns.
func (s *scene) atQuestion(n int, args []string, do func(*running)) *running {
	s.t.Helper()
	var mu sync.Mutex
	asked := make(map[string]bool)
	reached, resume := make(chan struct{}), make(chan struct{})
	s.World.Observe(func(q dnstest.Query) {
		name, ok := strings.CutPrefix(q.Name, dnsname.Challenge(""))
		if !ok || lab.ZoneOf(name) != lab.ProductionZone || q.From.String() == lab.CAResolver {
			return
		}
		mu.Lock()
		if !asked[name] {
			asked[name] = true
			if len(asked) == n {
				close(reached)
			}
		}
		wait := len(asked) >= n
		mu.Unlock()
		if wait {
			<-resume
		}
	})
	defer s.World.Observe(nil)
	defer close(resume)
	r := s.start(args...)
	select {
	case <-reached:
		do(r)
	case <-r.done:
		s.t.Fatalf("certbot ended before question %d: %v", n, r.ended())
	case <-time.After(patience):
		s.t.Fatalf("nothing asked about challenge %d", n)
	}
	return r
}

// call is one hook call of certbot's.
type call struct {
	hook      string // auth or cleanup
	remaining int
	domain    string
	code      int // the hook's exit code; -1 before it runs
	at        time.Time
}

const notYet = -1

// between is a script between certbot and the hooks, which tells the test of every call before it begins and
// after it ended.
type between struct {
	s             *scene
	auth, cleanup string // commands for certbot
	on            func(call)

	mu    sync.Mutex
	calls []call
}

// betweenScript gets the hook's name and its command line. It goes on when the test has made a file of its
// process id.
const betweenScript = `#!/bin/sh
dir=${0%/*}
name=$1
shift
tell() {
	echo "$$ $name $CERTBOT_REMAINING_CHALLENGES $CERTBOT_DOMAIN $1" >"$dir/calls"
	while ! [ -e "$dir/$$" ]; do sleep 0.02; done
	rm "$dir/$$"
}
tell -1
"$@"
code=$?
tell $code
exit $code
`

// between makes the script. on, if not nil, is told of every call before the hook runs, which then waits for
// on to return.
func (s *scene) between(on func(call)) *between {
	s.t.Helper()
	dir := s.t.TempDir()
	b := &between{s: s, on: on}
	script := filepath.Join(dir, "between")
	if err := os.WriteFile(script, []byte(betweenScript), 0o755); err != nil {
		s.t.Fatal(err)
	}
	b.auth = script + " auth " + lab.Hook("auth-hook")
	b.cleanup = script + " cleanup " + lab.Hook("cleanup-hook")
	path := filepath.Join(dir, "calls")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		s.t.Fatal(err)
	}
	pipe, err := os.OpenFile(path, os.O_RDWR, 0) // for writing too, so that it never ends
	if err != nil {
		s.t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() {
		for lines := bufio.NewScanner(pipe); lines.Scan(); {
			var c call
			var from string
			if _, err := fmt.Sscan(lines.Text(), &from, &c.hook, &c.remaining, &c.domain, &c.code); err != nil {
				s.t.Errorf("call %q: %v", lines.Text(), err)
				continue
			}
			done.Go(func() { b.take(c, filepath.Join(dir, from)) })
		}
	})
	s.t.Cleanup(func() {
		pipe.Close()
		done.Wait()
	})
	return b
}

// take notes a call and lets it go on.
func (b *between) take(c call, answer string) {
	c.at = time.Now()
	b.mu.Lock()
	b.calls = append(b.calls, c)
	b.mu.Unlock()
	if b.on != nil && c.code == notYet {
		b.on(c)
	}
	if err := os.WriteFile(answer, nil, 0o600); err != nil {
		b.s.t.Error(err)
	}
}

// args are certbot's arguments to get one certificate for names with the script in between.
func (b *between) args(names ...string) []string {
	return lab.IssueArgsWith(b.auth, b.cleanup, names...)
}

// begun and ended return the calls of a hook so far, in order.
func (b *between) begun(hook string) []call { return b.pick(hook, true) }
func (b *between) ended(hook string) []call { return b.pick(hook, false) }

func (b *between) pick(hook string, begun bool) []call {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(b.calls), func(c call) bool { return c.hook != hook || (c.code == notYet) != begun })
}

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/tests/cloudflaretest"
	"github.com/certhook/certhook/tests/dnstest"
	"github.com/certhook/certhook/tests/lab"
)

// A hook may be killed at any step. The next hook run of this host puts things right: nothing of ours is left,
// and nobody else's record or zone was touched. A step is a moment that can be told from outside: a call of the
// provider's API arrives, or was carried out and its answer is lost; a file of the journal is about to be
// written, or was; a server is asked whether it shows a value.
func TestKilledAtEveryStep(t *testing.T) {
	for _, walk := range []struct {
		name  string
		names int
		both  bool // certbot is killed together with the hook
		least int  // steps that there are at least
	}{
		{"hook, one name", 1, false, 17},
		{"hook and certbot, one name", 1, true, 17},
		{"hook, two names", 2, false, 29},
		{"hook and certbot, two names", 2, true, 29},
	} {
		t.Run(walk.name, func(t *testing.T) {
			var domains []string
			for i := range walk.names {
				domains = append(domains, fmt.Sprintf("n%d.example.com", i))
			}
			s := sceneFor(t, lab.Options{}, append(domains, later)...)
			w := newWalker(s, walk.both)
			at, killed := 1, true
			for ; killed; at++ {
				killed = w.until(at, domains)
				if t.Failed() {
					t.Fatalf("killed at step %d: %s", at, strings.Join(w.steps, ", "))
				}
			}
			t.Logf("killed at each of %d steps: %s", len(w.steps), strings.Join(w.steps, ", "))
			if len(w.steps) < walk.least {
				t.Errorf("%d steps, at least %d are expected", len(w.steps), walk.least)
			}
		})
	}
}

// later is what a later run of certbot is about.
const later = "later.example.com"

// walker kills a hook at one of the steps of an order.
type walker struct {
	s    *scene
	both bool

	victim *caller
	asked  atomic.Bool // the hook asked whether a value is shown
	opened atomic.Bool // a file of the journal is being replaced
	killed atomic.Bool

	mu    sync.Mutex
	at    int // the step to kill at, from 1; 0 = none
	steps []string
}

func newWalker(s *scene, both bool) *walker {
	w := &walker{s: s, both: both}
	journal := lab.StateDir + "/journal"
	for _, dir := range []string{lab.StateDir, journal} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			s.t.Fatal(err)
		}
	}
	s.t.Cleanup(s.OnOpen(journal, w.opens))
	s.API.Intercept(func(c cloudflaretest.Call, m cloudflaretest.Moment) bool {
		return w.step(fmt.Sprintf("%s %s", c.Method, m), hookPID())
	})
	s.World.Observe(func(q dnstest.Query) {
		if q.Type == dns.TypeTXT && strings.HasSuffix(q.Name, "."+lab.AliasZone) && !w.asked.Swap(true) {
			w.step("TXT asked", hookPID())
		}
	})
	return w
}

// opens tells the steps of a file of the journal being replaced: a new one is there, still empty; the folder,
// where it has its name by now, is about to be synced.
func (w *walker) opens(o lab.Open) {
	switch {
	case len(o.Name) > 1 && o.Name[0] == '.':
		w.opened.Store(true)
		w.step("journal opened", o.PID)
	case o.Name == "." && w.opened.Swap(false):
		w.step("journal replaced", o.PID)
	}
}

// hookPID returns the process id of the hook at work; 0 if there is none.
func hookPID() int {
	cmdlines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range cmdlines {
		text, _ := os.ReadFile(path) // empty once it has ended
		if bytes.HasPrefix(text, []byte(lab.Hook("")+"/")) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			return pid
		}
	}
	return 0
}

// step counts a step of the victim and reports whether the victim lives on.
func (w *walker) step(what string, pid int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.at == 0:
		return true
	case w.killed.Load():
		return false
	}
	w.steps = append(w.steps, what)
	if len(w.steps) < w.at {
		return true
	}
	w.killed.Store(true)
	if w.both {
		_ = w.victim.cmd.Process.Signal(syscall.SIGKILL)
	}
	if pid == 0 {
		w.s.t.Errorf("no hook is there to be killed at %q", what)
	} else if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		w.s.t.Errorf("kill the hook: %v", err)
	}
	return false
}

// watch begins to count the steps of a hook, or with 0 ends it.
func (w *walker) watch(at int) {
	w.asked.Store(false)
	w.opened.Store(false)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = at
}

// until has certbot go through an order in which a hook is killed at a step, and then another certbot through
// one that goes well. It reports whether the order got to that step.
func (w *walker) until(at int, domains []string) bool {
	t := w.s.t
	t.Helper()
	w.s.API.Forget()
	w.victim, w.steps = newCaller(t), nil
	w.killed.Store(false)
	var calls []hookCall
	for i, d := range domains {
		calls = append(calls, hookCall{d, value(fmt.Sprintf("victim%d-%d-", i, at)), strings.Join(domains, ","), len(domains) - 1 - i})
	}
	for _, hook := range []string{"auth-hook", "cleanup-hook"} {
		for _, c := range calls {
			if w.killed.Load() && w.both {
				break
			}
			if !w.killed.Load() {
				w.watch(at)
			}
			r, err := w.victim.hook(hook, c)
			w.watch(0)
			if !w.killed.Load() && (err != nil || r.Code != 0) {
				t.Fatalf("%s before step %d: %v, %v", hook, at, err, r)
			}
		}
	}
	w.victim.end()
	eventually(t, "the end of the hook", func() bool { return hookPID() == 0 })

	// Either hook will do.
	next, call := newCaller(t), single(later, value("later"))
	if at%2 == 0 {
		next.mustHook("auth-hook", call)
		w.checkLeft(call.value)
	}
	next.mustHook("cleanup-hook", call)
	next.end()
	w.s.checkClean([]string{lab.AliasZone})
	return w.killed.Load()
}

// checkLeft checks that nothing of the victim is left, while the later run's value is there.
func (w *walker) checkLeft(laterValue string) {
	w.s.t.Helper()
	for _, r := range w.s.records {
		want := []string{foreign}
		if r == lab.Target(later, lab.AliasZone) {
			want = append(want, laterValue)
		}
		api, shown := w.s.API.TXT(r), w.s.World.TXT(lab.AliasZone, r)
		slices.Sort(shown)
		slices.Sort(want)
		slices.Sort(api)
		if !slices.Equal(api, want) || !slices.Equal(shown, want) {
			w.s.t.Errorf("after the next hook run the provider has %q at %s, its servers %q; want %q", api, r, shown, want)
		}
	}
}

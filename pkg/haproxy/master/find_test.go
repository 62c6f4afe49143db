package master

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/certhook/certhook/pkg/fault"
)

func TestFindOfTwo(t *testing.T) {
	a, b := newHAProxy(t).start(), newHAProxy(t).start()
	for _, h := range []*haproxy{a, b} {
		for name, hints := range map[string]Hints{
			"configuration":        {ConfigFiles: []string{h.path("h.cfg")}},
			"its folder's link":    {ConfigFiles: []string{link(t, h.dir) + "/h.cfg"}},
			"pidfile":              {PIDFile: h.path("pid")},
			"master socket":        {MasterSocket: "unix@" + h.socket() + ",mode,600"},
			"stale pidfile":        {PIDFile: h.path("none"), ConfigFiles: []string{h.path("h.cfg")}},
			"socket, other's file": {MasterSocket: h.socket(), ConfigFiles: []string{a.path("h.cfg")}},
		} {
			p, err := Find(t.Context(), hints)
			if err != nil || p.PID != h.pid() {
				t.Errorf("%s: process %d, want %d (%v)", name, p.PID, h.pid(), err)
				continue
			}
			if !p.MasterWorker || p.MasterSocket != h.socket() || p.PIDFile != h.path("pid") || !slices.Equal(p.Config, []string{h.path("h.cfg")}) ||
				p.UID != os.Getuid() || p.GID != os.Getgid() || filepath.Base(p.Executable) != "haproxy" || p.Dir != h.dir {
				t.Errorf("%s: %+v", name, p)
			}
		}
	}
	// Neither is anybody's whose own is down.
	for name, hints := range map[string]Hints{
		"configuration": {ConfigFiles: []string{newHAProxy(t).path("h.cfg")}},
		"pidfile":       {PIDFile: a.path("none")},
		"master socket": {MasterSocket: a.path("none")},
	} {
		if p, err := Find(t.Context(), hints); !errors.Is(err, ErrNone) {
			t.Errorf("other %s: %+v, %v", name, p, err)
		}
	}
	if p, err := Find(t.Context(), Hints{}); fault.KindOf(err) != fault.Usage || fault.HintOf(err) == "" {
		t.Errorf("no hint: %+v, %v", p, err)
	}
}

func link(t *testing.T, to string) string {
	name := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(to, name); err != nil {
		t.Fatal(err)
	}
	return name
}

// Relative paths, folders and what follows "--" are the master's, whose directory we are not in.
func TestFindByRelativePaths(t *testing.T) {
	h := newHAProxy(t)
	if err := os.Mkdir(h.path("conf.d"), 0o755); err != nil {
		t.Fatal(err)
	}
	h.write("conf.d/more.cfg", "backend b\n    mode http\n", 0o644)
	h.args = []string{"-W", "-S", "unix@m.sock,mode,600", "-p", "pid", "--", "h.cfg", "conf.d"}
	h.start()
	p, err := Find(t.Context(), Hints{ConfigFiles: []string{h.path("conf.d/more.cfg")}})
	if err != nil || p.PID != h.pid() || p.MasterSocket != h.socket() || p.PIDFile != h.path("pid") || !slices.Equal(p.Config, []string{h.path("h.cfg"), h.path("conf.d")}) {
		t.Errorf("%+v, %v", p, err)
	}
	if o, err := Reload(t.Context(), How{CLI: &CLI{Path: p.MasterSocket}, Process: &p}); err != nil {
		t.Errorf("reload: %+v, %v", o, err)
	}
	if err := p.Check(t.Context(), nil); err != nil {
		t.Errorf("check: %v", err)
	}
}

// master-worker in the configuration leaves no trace in the command line.
func TestFindMasterByItsWorkers(t *testing.T) {
	h := newHAProxy(t)
	h.args = []string{"-db", "-f", h.path("h.cfg")}
	h.write("h.cfg", "global\n    master-worker\n"+read(t, h.path("h.cfg")), 0o644)
	h.start()
	var p Process
	eventually(t, "the master has a worker", func() bool { p = h.find(); return p.MasterWorker })
	if p.PID != h.pid() {
		t.Fatalf("%+v", p)
	}
	if o, err := Reload(t.Context(), How{Process: &p}); err != nil || o.Doubt != "" {
		t.Errorf("reload: %+v, %v", o, err)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// trap runs a shell that tells every signal that would reload a HAProxy, under a name and with arguments that look like one.
func trap(t *testing.T, h *haproxy) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", "trap 'touch signalled' USR2; while :; do read x; done")
	cmd.Args[0] = "haproxy"
	cmd.Dir = h.dir
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		stdin.Close()
		cmd.Wait()
	})
	return cmd
}

func TestPidfileOfAnotherProgram(t *testing.T) {
	h := newHAProxy(t).start()
	p := h.find()
	other := trap(t, h)
	h.write("pid", strconv.Itoa(other.Process.Pid)+"\n", 0o644)
	if p, err := Find(t.Context(), Hints{PIDFile: h.path("pid")}); !errors.Is(err, ErrNone) {
		t.Errorf("pidfile of another program: %+v, %v", p, err)
	}
	// The pidfile is stale, and the configuration still leads to the right one.
	if p, err := Find(t.Context(), Hints{PIDFile: h.path("pid"), ConfigFiles: []string{h.path("h.cfg")}}); err != nil || p.PID != h.pid() {
		t.Errorf("pidfile of another program: %+v, %v", p, err)
	}

	// The number is given to another process between our look and the signal.
	p.PID = other.Process.Pid
	if err := p.Reload(t.Context()); !errors.Is(err, ErrNone) {
		t.Errorf("reused process id: %v", err)
	}
	if e, err := procfs("").stat(p.PID); err == nil {
		p.Start = e.start
	}
	if err := p.Reload(t.Context()); err == nil {
		t.Error("another program is signalled")
	}
	if _, err := os.Stat(h.path("signalled")); err == nil {
		t.Error("the other program got a signal")
	}
}

func TestSignalWorkerOrOther(t *testing.T) {
	h := newHAProxy(t).start()
	before := h.proc()
	p := h.find()
	p.PID = before.Workers[0].PID
	e, err := procfs("").entry(p.PID)
	if err != nil {
		t.Fatal(err)
	}
	p.Start = e.start
	if err := p.Reload(t.Context()); fault.KindOf(err) != fault.Usage {
		t.Errorf("worker: %v", err)
	}
	h.write("pid", fmt.Sprintln(p.PID), 0o644)
	if p, err := Find(t.Context(), Hints{PIDFile: h.path("pid")}); !errors.Is(err, ErrNone) {
		t.Errorf("pidfile of a worker: %+v, %v", p, err)
	}
	p = h.find()
	p.Start++
	if err := p.Reload(t.Context()); !errors.Is(err, ErrNone) {
		t.Errorf("another start: %v", err)
	}
	if after := h.proc(); after.Reloads != before.Reloads {
		t.Errorf("a signal arrived: %+v", after)
	}
	if p, err := Find(t.Context(), Hints{PIDFile: h.path("h.cfg")}); !errors.Is(err, ErrNone) {
		t.Errorf("a pidfile that is none: %+v, %v", p, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Find(ctx, Hints{ConfigFiles: []string{h.path("h.cfg")}}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

// A package upgrade replaces the file that runs.
func TestUpgradedExecutable(t *testing.T) {
	h := newHAProxy(t)
	binary, err := exec.LookPath("haproxy")
	if err != nil {
		t.Fatal(err)
	}
	h.write("haproxy", read(t, binary), 0o755)
	h.env = []string{"PATH=" + h.dir}
	t.Setenv("PATH", h.dir+":"+os.Getenv("PATH"))
	h.start()
	h.write("haproxy.new", read(t, binary), 0o755)
	if err := os.Rename(h.path("haproxy.new"), h.path("haproxy")); err != nil {
		t.Fatal(err)
	}
	p := h.find()
	if !p.MasterWorker || p.Executable != h.path("haproxy") {
		t.Fatalf("%+v", p)
	}
	if err := p.Check(t.Context(), nil); err != nil {
		t.Errorf("check: %v", err)
	}
	if o, err := Reload(t.Context(), How{Process: &p}); err != nil || o.Doubt != "" {
		t.Errorf("reload: %+v, %v", o, err)
	}
	if q := h.find(); q.PID != p.PID || q.Start != p.Start || !slices.Equal(q.Args, p.Args) {
		t.Errorf("before the reload %+v, after it %+v", p, q)
	}
}

func TestBinaryNames(t *testing.T) {
	for name, want := range map[string]bool{
		"haproxy": true, "haproxy-2.8": true, "haproxy24": true, "hapee-lb": true,
		"haproxy-apply": false, "haproxy_exporter": false, "haproxy-systemd-wrapper": false, "sh": false, "": false,
	} {
		if got := binary.MatchString(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}

// proc makes a procfs in which each process is a HAProxy's top one; root is where it has its root directory.
func proc(t *testing.T, processes map[int]struct{ root, config string }) string {
	t.Helper()
	dir := t.TempDir()
	for pid, p := range processes {
		at := filepath.Join(dir, strconv.Itoa(pid))
		if err := os.Mkdir(at, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{
			"stat":    fmt.Sprintf("%d (a) b) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %d 0\n", pid, pid),
			"cmdline": "haproxy\x00-f\x00" + p.config + "\x00",
			"status":  "Name:\thaproxy\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\nGroups:\t9 10 \n",
		} {
			if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for name, target := range map[string]string{"exe": "/usr/sbin/haproxy (deleted)", "root": p.root, "cwd": "/etc"} {
			if err := os.Symlink(target, filepath.Join(at, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

func TestFindTheOnlyOne(t *testing.T) {
	there := filepath.Join(t.TempDir(), "h.cfg")
	if err := os.WriteFile(there, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	one := proc(t, map[int]struct{ root, config string }{30: {"/", "h/a.cfg"}, 40: {t.TempDir(), "b.cfg"}})
	for name, tt := range map[string]struct {
		hints Hints
		found bool
	}{
		"no hint":                           {Hints{}, true},
		"a configuration that is not there": {Hints{ConfigFiles: []string{"/none/h.cfg"}}, true},
		"its configuration":                 {Hints{ConfigFiles: []string{"/etc/h/a.cfg"}}, true},
		"its configuration's folder":        {Hints{ConfigFiles: []string{"/etc/h/../h/a.cfg"}}, true},
		"another's configuration":           {Hints{ConfigFiles: []string{there}}, false},
		"in a container":                    {Hints{ConfigFiles: []string{there, "/etc/b.cfg"}}, false},
		"another's pidfile":                 {Hints{PIDFile: there}, false},
		"another's master socket":           {Hints{MasterSocket: "/none/m.sock"}, false},
	} {
		tt.hints.ProcRoot = one
		p, err := Find(t.Context(), tt.hints)
		if tt.found && (err != nil || p.PID != 30) || !tt.found && !errors.Is(err, ErrNone) {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
		if tt.found && (p.Executable != "/usr/sbin/haproxy" || p.Dir != "/etc" || p.Config[0] != "/etc/h/a.cfg" || p.UID != 2 || p.GID != 6 || !slices.Equal(p.Groups, []int{9, 10})) {
			t.Errorf("%s: %+v", name, p)
		}
	}
	// Without master-worker mode the old process finishes beside the new one.
	two := map[int]struct{ root, config string }{30: {"/", "a.cfg"}, 40: {"/", "a.cfg"}}
	if p, err := Find(t.Context(), Hints{ProcRoot: proc(t, two)}); err != nil || p.PID != 40 {
		t.Errorf("two of one configuration: %+v, %v", p, err)
	}
	two[30] = struct{ root, config string }{"/", "a.cfg\x00-W"}
	if p, err := Find(t.Context(), Hints{ProcRoot: proc(t, two)}); err != nil || p.PID != 30 || !p.MasterWorker {
		t.Errorf("a master beside another process: %+v, %v", p, err)
	}
}

// A process that starts its program anew has no command line for a moment.
func TestFindInThatMoment(t *testing.T) {
	root := proc(t, map[int]struct{ root, config string }{30: {"/", "a.cfg"}})
	line := filepath.Join(root, "30", "cmdline")
	text := read(t, line)
	if err := os.Truncate(line, 0); err != nil {
		t.Fatal(err)
	}
	written := make(chan error, 1)
	go func() {
		time.Sleep(20 * time.Millisecond)
		os.WriteFile(line+".new", []byte(text), 0o600)
		written <- os.Rename(line+".new", line)
	}()
	if p, err := Find(t.Context(), Hints{ProcRoot: root, ConfigFiles: []string{"/etc/a.cfg"}}); err != nil || p.PID != 30 || len(p.Config) != 1 {
		t.Errorf("%+v, %v", p, err)
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
}

package certbot

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// start runs a process with the environment of a hook (or without) and returns its process id.
func start(t *testing.T, cmd *exec.Cmd) (stop func()) {
	t.Helper()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop = func() {
		stdin.Close()
		cmd.Process.Kill()
		cmd.Wait()
	}
	t.Cleanup(stop)
	return stop
}

func TestCertbotRunPassesOverShellsAndWrappers(t *testing.T) {
	// certbot (no CERTBOT_VALIDATION) starts sh, which starts a wrapper, which starts the hook.
	certbot := exec.Command("sh", "-c", `CERTBOT_VALIDATION=v sh -c 'sh -c "echo \$\$; read x; :"; :'; :`)
	certbot.Env = []string{"PATH=/usr/bin:/bin"}
	out, err := certbot.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	start(t, certbot)
	var hook int
	if _, err := fmt.Fscan(bufio.NewReader(out), &hook); err != nil {
		t.Fatal(err)
	}
	run, started, err := Processes{}.CertbotRun(hook)
	if err != nil {
		t.Fatal(err)
	}
	if run.PID != certbot.Process.Pid {
		t.Errorf("run is process %d, want certbot's %d", run.PID, certbot.Process.Pid)
	}
	if parent, err := (Processes{}).stat(started.PID); err != nil || parent.parent != run.PID {
		t.Errorf("process %d, which certbot waits for, is a child of %d (%v)", started.PID, parent.parent, err)
	}
	if got := (Processes{}).Life(run); got != Alive {
		t.Errorf("life of a running certbot = %v", got)
	}
}

func TestLife(t *testing.T) {
	cmd := exec.Command("cat")
	stop := start(t, cmd)
	p := Processes{}
	run, err := p.Identify(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	reused, otherBoot, otherNS := run, run, run
	reused.Start--
	otherBoot.Boot = "x"
	otherNS.PIDNS = "pid:[1]"
	for name, tt := range map[string]struct {
		run  Run
		want Life
	}{"running": {run, Alive}, "process id used again": {reused, Dead}, "other boot": {otherBoot, Untraceable}, "other namespace": {otherNS, Untraceable}} {
		if got := p.Life(tt.run); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
	// Killed and not yet reaped is dead as well: wait for the end of its output, which comes with it.
	stop()
	if got := p.Life(run); got != Dead {
		t.Errorf("after its end: %v, want Dead", got)
	}
}

func TestLifeOfZombie(t *testing.T) {
	cmd := exec.Command("sh", "-c", "exec cat")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	start(t, cmd)
	run, err := Processes{}.Identify(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Process.Kill()
	io.Copy(io.Discard, out) // ends when the process does; nobody has reaped it
	for deadline := time.Now().Add(10 * time.Second); (Processes{}).Life(run) != Dead; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("a zombie counts as alive")
		}
	}
}

func TestUnreadableAncestorIsAnError(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "7"), 0o755); err != nil {
		t.Fatal(err)
	}
	os.WriteFile(filepath.Join(root, "7", "environ"), []byte("A=b\x00CERTBOT_VALIDATION=v\x00"), 0o600)
	os.WriteFile(filepath.Join(root, "7", "stat"), []byte("7 (a) b) S 6 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 99 0\n"), 0o600)
	if run, _, err := (Processes{Root: root}).CertbotRun(7); err == nil {
		t.Errorf("got %+v; want an error", run)
	}
	if s, err := (Processes{Root: root}).stat(7); err != nil || s.parent != 6 || s.start != 99 {
		t.Errorf("stat = %+v, %v", s, err)
	}
}

// An orphan is told from a hook of a certbot that is process 1, as in a container, by its session.
func TestCertbotRunOfAnOrphan(t *testing.T) {
	root := t.TempDir()
	process := func(pid, parent, session int, environ string) {
		dir := filepath.Join(root, fmt.Sprint(pid))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		stat := fmt.Sprintf("%d (x) S %d 1 %d 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 99 0\n", pid, parent, session)
		for name, text := range map[string]string{"environ": environ, "stat": stat} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for path, text := range map[string]string{"sys/kernel/random/boot_id": "b", "self/ns/x": ""} {
		os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755)
		os.WriteFile(filepath.Join(root, path), []byte(text), 0o600)
	}
	if err := os.Symlink("pid:[1]", filepath.Join(root, "self/ns/pid")); err != nil {
		t.Fatal(err)
	}
	const hook = "CERTBOT_VALIDATION=v\x00"
	process(1, 0, 1, "A=b\x00")
	process(8, 7, 5, hook) // behind sudo, say, which makes a session of its own
	process(7, 1, 5, hook)
	if _, _, err := (Processes{Root: root}).CertbotRun(8); !errors.Is(err, ErrOrphan) {
		t.Errorf("adopted by a process of another session: %v, want ErrOrphan", err)
	}
	process(4, 1, 4, "A=b\x00") // a driver that gives its hooks sessions of their own
	process(7, 4, 5, hook)
	if _, _, err := (Processes{Root: root}).CertbotRun(8); err == nil || errors.Is(err, ErrOrphan) {
		t.Errorf("started in a session of its own: %v, want an error that is not ErrOrphan", err)
	}
	process(7, 1, 1, hook)
	if run, started, err := (Processes{Root: root}).CertbotRun(8); err != nil || run.PID != 1 || started.PID != 7 {
		t.Errorf("started by process 1: run %+v, below it %+v, %v", run, started, err)
	}
}

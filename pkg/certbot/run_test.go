package certbot

import (
	"bufio"
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
	run, err := Processes{}.CertbotRun(hook)
	if err != nil {
		t.Fatal(err)
	}
	if run.PID != certbot.Process.Pid {
		t.Errorf("run is process %d, want certbot's %d", run.PID, certbot.Process.Pid)
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
	if run, err := (Processes{Root: root}).CertbotRun(7); err == nil {
		t.Errorf("got %+v; want an error", run)
	}
	if s, err := (Processes{Root: root}).stat(7); err != nil || s.parent != 6 || s.start != 99 {
		t.Errorf("stat = %+v, %v", s, err)
	}
}

package conf

import (
	"bytes"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/certhook/certhook/tests/haproxytest"
)

// haproxy is the program, which this package is compared with.
func haproxy(t *testing.T) string {
	t.Helper()
	if path, err := exec.LookPath("haproxy"); err == nil {
		return path
	}
	return "/usr/sbin/haproxy"
}

// environment is what HAProxy is given in these tests, as lookup is what we are.
var environment = map[string]string{"ONE": "two  three\t", "EMPTY": "", "FILE": "b.pem", "X": "y"}

func lookup(name string) (string, bool) {
	value, ok := environment[name]
	return value, ok
}

func environ() []string {
	var list []string
	for name, value := range environment {
		list = append(list, name+"="+value)
	}
	return list
}

// check is what haproxy -c says, and whether it takes the configuration.
func check(t *testing.T, dir string, files ...string) (string, bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), haproxy(t), "-c")
	for _, file := range files {
		cmd.Args = append(cmd.Args, "-f", file)
	}
	cmd.Dir, cmd.Env = dir, environ()
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

// start runs HAProxy with these files until the test ends, and returns when its stats socket answers.
func start(t *testing.T, dir, socket string, files ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), haproxy(t), "-db")
	for _, file := range files {
		cmd.Args = append(cmd.Args, "-f", file)
	}
	var out bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, environ(), &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	gone := make(chan struct{})
	go func() { _ = cmd.Wait(); close(gone) }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-gone })
	for deadline := time.Now().Add(30 * time.Second); ; {
		if conn, err := net.Dial("unix", socket); err == nil {
			conn.Close()
			return
		}
		select {
		case <-gone:
			t.Fatalf("haproxy ended:\n%s", out.String())
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatal("haproxy never answered")
		}
	}
}

// ask sends one command to the stats socket and returns the lines of the answer that are no remarks.
func ask(t *testing.T, socket, command string) []string {
	t.Helper()
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, command+"\n"); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines
}

// write puts files below a folder.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// folder is a new one with a short path, since sockets are in it, and a certificate in each of these files.
func folder(t *testing.T, certs ...string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "conf-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	ca := haproxytest.NewAuthority(t)
	for _, name := range certs {
		wish := haproxytest.Wish{}
		if strings.HasSuffix(name, ".rsa") {
			wish.RSA = 2048
		}
		p := ca.Issue(wish, strings.ReplaceAll(name, "/", ".")+".test")
		write(t, dir, map[string]string{name: string(append(p.Chain(), p.PrivateKey...))})
	}
	return dir
}

// keywords is HAProxy's own list of them.
func keywords(t *testing.T) string {
	t.Helper()
	out, _ := exec.CommandContext(t.Context(), haproxy(t), "-dKall", "-c", "-f", os.DevNull).CombinedOutput()
	return string(out)
}

package master

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/certhook/certhook/pkg/fault"
)

// haproxy is a real HAProxy in a folder of its own.
type haproxy struct {
	t      *testing.T
	dir    string
	args   []string // of the command line
	env    []string
	attr   syscall.SysProcAttr
	port   int
	cmd    *exec.Cmd
	output buffer
}

type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// newHAProxy makes a folder that every user may read, and a configuration there.
func newHAProxy(t *testing.T) *haproxy {
	t.Helper()
	dir, err := os.MkdirTemp("", "hap") // its path is short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	h := &haproxy{t: t, dir: dir, port: freePort(t)}
	h.args = []string{"-W", "-S", h.socket(), "-p", h.path("pid"), "-f", h.path("h.cfg")}
	h.configure("")
	return h
}

func freePort(t *testing.T) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func (h *haproxy) path(name string) string { return filepath.Join(h.dir, name) }
func (h *haproxy) socket() string          { return h.path("m.sock") }

// cli is for the socket that the command line names first, which is h.socket().
func (h *haproxy) cli() *CLI { return &CLI{Path: h.socket()} }

func (h *haproxy) write(name, text string, mode os.FileMode) {
	h.t.Helper()
	if err := os.WriteFile(h.path(name), []byte(text), mode); err != nil {
		h.t.Fatal(err)
	}
}

// configure writes the configuration, with more lines in its frontend.
func (h *haproxy) configure(more string) {
	h.t.Helper()
	h.write("h.cfg", fmt.Sprintf(`global
    log stderr local0 emerg
defaults
    mode http
    timeout client 5s
    timeout server 5s
    timeout connect 5s
frontend fe
    bind 127.0.0.1:%d
    %s
`, h.port, more), 0o644)
}

// start runs it until the end of the test, and waits until it serves.
func (h *haproxy) start() *haproxy {
	h.t.Helper()
	h.launch()
	h.serving()
	return h
}

func (h *haproxy) launch() {
	h.t.Helper()
	h.cmd = exec.Command("haproxy", h.args...)
	h.cmd.Dir = h.dir
	h.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, h.env...)
	h.cmd.SysProcAttr = &h.attr
	h.cmd.Stdout, h.cmd.Stderr = &h.output, &h.output
	if err := h.cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	cmd := h.cmd
	h.t.Cleanup(func() { h.stop(cmd) })
}

func (h *haproxy) serving() {
	h.t.Helper()
	eventually(h.t, "HAProxy serves", func() bool {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", h.port))
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	if slices.Contains(h.args, "-W") {
		eventually(h.t, "the master has started itself anew", func() bool {
			_, err := h.cli().Proc(h.t.Context())
			return err == nil || fault.KindOf(err) == fault.Usage
		})
	}
}

// gate is a part of a configuration on which HAProxy waits while the gate is shut, as it is at first.
type gate struct{ opened, closed chan bool }

func (h *haproxy) gate() *gate {
	h.t.Helper()
	fifo := h.path("fifo")
	if err := syscall.Mkfifo(fifo, 0o644); err != nil {
		h.t.Fatal(err)
	}
	h.args = append(h.args, "-f", fifo)
	g := &gate{make(chan bool), make(chan bool)}
	go func() {
		for {
			select {
			case <-h.t.Context().Done():
				return
			case <-g.opened:
			}
			for open := true; open; {
				// Without a reader it cannot be opened.
				if f, err := os.OpenFile(fifo, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
					f.WriteString("# nothing\n")
					f.Close()
				}
				select {
				case <-h.t.Context().Done():
					return
				case <-g.closed:
					open = false
				case <-time.After(time.Millisecond):
				}
			}
		}
	}()
	return g
}

func (g *gate) open() { g.opened <- true }
func (g *gate) shut() { g.closed <- true }

func (h *haproxy) stop(cmd *exec.Cmd) {
	if cmd.ProcessState != nil {
		return
	}
	cmd.Process.Signal(syscall.SIGTERM)
	timer := time.AfterFunc(10*time.Second, func() { cmd.Process.Kill() })
	defer timer.Stop()
	cmd.Wait()
	if h.t.Failed() {
		h.t.Logf("HAProxy %d:\n%s", cmd.Process.Pid, h.output.String())
	}
}

func (h *haproxy) pid() int { return h.cmd.Process.Pid }

// proc is how the master stands as soon as it answers.
func (h *haproxy) proc() (p Proc) {
	h.t.Helper()
	eventually(h.t, "the master answers", func() bool {
		var err error
		p, err = h.cli().Proc(h.t.Context())
		return err == nil
	})
	return p
}

func (h *haproxy) find() Process {
	h.t.Helper()
	p, err := Find(h.t.Context(), Hints{ConfigFiles: []string{h.path("h.cfg")}})
	if err != nil {
		h.t.Fatal(err)
	}
	return p
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not so", what)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// certificate is a PEM file's content that HAProxy takes.
func certificate(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"a.test"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: der})
	pem.Encode(&b, &pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
	return b.String()
}

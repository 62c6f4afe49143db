// Package haproxytest runs a real HAProxy under a test's control: master and workers, certificates in a folder, the
// sockets that haproxy-apply uses, and everything that can go wrong with them.
package haproxytest

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// TB is what a HAProxy needs of its test.
type TB interface {
	Helper()
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Cleanup(func())
	Failed() bool
}

// Options vary a HAProxy. The zero value is the usual one: a master with its socket, a stats socket of level admin,
// and one TLS bind that loads the folder of certificates.
type Options struct {
	NoMaster       bool // one process, without -W
	NoMasterSocket bool // no -S
	NoStatsSocket  bool
	Level          string // of the stats socket; default admin
	BindOptions    string // more for the bind line, such as "strict-sni"; {dir} stands for Dir
	Certs          string // in place of "crt <folder>/"
	Global, More   string // more lines of the global section, more sections
	Credential     *syscall.Credential
}

// HAProxy is a running HAProxy.
type HAProxy struct {
	Dir, CertDir, Config      string
	AdminSocket, MasterSocket string
	PIDFile                   string
	Addr                      string // of the TLS bind

	tb      TB
	o       Options
	cmd     *exec.Cmd
	gone    chan struct{}
	log     syncBuffer
	broken  bool
	squater net.Listener
}

// New makes the folders and the configuration of a HAProxy. It is not started: it needs a certificate first.
func New(tb TB, o Options) *HAProxy {
	tb.Helper()
	dir, err := os.MkdirTemp("", "haproxy-") // short enough for the path of a socket
	if err != nil {
		tb.Fatalf("haproxytest: %v", err)
	}
	h := &HAProxy{tb: tb, o: o, Dir: dir, CertDir: filepath.Join(dir, "certs"), Config: filepath.Join(dir, "haproxy.cfg"), PIDFile: filepath.Join(dir, "pid")}
	if err := os.Mkdir(h.CertDir, 0o700); err != nil {
		tb.Fatalf("haproxytest: %v", err)
	}
	if !o.NoStatsSocket {
		h.AdminSocket = filepath.Join(dir, "admin.sock")
	}
	if !o.NoMaster && !o.NoMasterSocket {
		h.MasterSocket = filepath.Join(dir, "master.sock")
	}
	h.Addr = FreePort(tb)
	if o.Credential != nil {
		for _, path := range []string{dir, h.CertDir} {
			_ = os.Chmod(path, 0o755)
			_ = os.Chown(path, int(o.Credential.Uid), int(o.Credential.Gid))
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "ca.pem"), NewAuthority(tb).RootPEM(), 0o644); err != nil {
		tb.Fatalf("haproxytest: %v", err)
	}
	h.write()
	tb.Cleanup(func() {
		h.Stop()
		if h.squater != nil {
			h.squater.Close()
		}
		if tb.Failed() {
			tb.Logf("haproxy said:\n%s", h.log.String())
		}
		os.RemoveAll(dir)
	})
	return h
}

// FreePort returns an address of loopback's that nobody listens at.
func FreePort(tb TB) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("haproxytest: %v", err)
	}
	defer l.Close()
	return l.Addr().String()
}

func (h *HAProxy) write() {
	h.tb.Helper()
	level := h.o.Level
	if level == "" {
		level = "admin"
	}
	stats := ""
	if h.AdminSocket != "" {
		stats = "stats socket " + h.AdminSocket + " mode 600 level " + level
	}
	certs := h.o.Certs
	if certs == "" {
		certs = "crt " + h.CertDir + "/"
	}
	broken := ""
	if h.broken {
		broken = "\tfoo bar\n"
	}
	squat := ""
	if h.squater != nil {
		squat = "frontend squat\n\tbind " + h.squater.Addr().String() + "\n"
	}
	text := fmt.Sprintf(`global
	%s
	%s
defaults
	mode http
	timeout client 5s
	timeout server 5s
	timeout connect 5s
frontend fe
%s	bind %s ssl %s %s
	http-request return status 200
%s
%s`, stats, h.o.Global, broken, h.Addr, certs, h.o.BindOptions, squat, h.o.More)
	text = strings.ReplaceAll(text, "{dir}", h.Dir)
	if err := os.WriteFile(h.Config, []byte(text), 0o644); err != nil {
		h.tb.Fatalf("haproxytest: %v", err)
	}
}

// Start starts HAProxy and returns when it serves.
func (h *HAProxy) Start() {
	h.tb.Helper()
	args := []string{"-f", h.Config, "-p", h.PIDFile}
	if h.o.NoMaster {
		args = append(args, "-db")
	} else {
		args = append(args, "-W")
	}
	if h.MasterSocket != "" {
		args = append(args, "-S", h.MasterSocket)
	}
	h.cmd = exec.Command(program(), args...)
	h.cmd.Stdout, h.cmd.Stderr = &h.log, &h.log
	h.cmd.Dir = "/"
	h.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Credential: h.o.Credential}
	if err := h.cmd.Start(); err != nil {
		h.tb.Fatalf("haproxytest: %v", err)
	}
	gone := make(chan struct{})
	h.gone = gone
	cmd := h.cmd
	go func() { _ = cmd.Wait(); close(gone) }()
	if h.o.NoMaster { // -db writes no pidfile
		_ = os.WriteFile(h.PIDFile, fmt.Appendf(nil, "%d\n", h.cmd.Process.Pid), 0o644)
	}
	h.await("serves", func() bool {
		c, err := net.Dial("tcp", h.Addr)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

func program() string {
	for _, p := range []string{"/usr/sbin/haproxy", "/usr/local/sbin/haproxy"} {
		if _, err := os.Stat(p); err == nil {
			return p
		}
	}
	return "haproxy"
}

func (h *HAProxy) await(what string, f func() bool) {
	h.tb.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !f() {
		select {
		case <-h.gone:
			h.tb.Fatalf("haproxytest: haproxy ended before it %s:\n%s", what, h.log.String())
		default:
		}
		if time.Now().After(deadline) {
			h.tb.Fatalf("haproxytest: it never %s:\n%s", what, h.log.String())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// PID is the master's, or the one process's.
func (h *HAProxy) PID() int { return h.cmd.Process.Pid }

// Stop ends HAProxy with its workers.
func (h *HAProxy) Stop() { h.end(syscall.SIGTERM) }

// Kill ends it as a crash does: sockets and pidfile stay.
func (h *HAProxy) Kill() { h.end(syscall.SIGKILL) }

func (h *HAProxy) end(sig syscall.Signal) {
	if h.cmd == nil {
		return
	}
	_ = syscall.Kill(-h.cmd.Process.Pid, sig)
	select {
	case <-h.gone:
	case <-time.After(3 * time.Second):
	}
	_ = syscall.Kill(-h.cmd.Process.Pid, syscall.SIGKILL)
	<-h.gone
	h.cmd = nil
}

// Signal sends a signal to the master; SIGUSR2 is a reload.
func (h *HAProxy) Signal(sig syscall.Signal) { _ = h.cmd.Process.Signal(sig) }

// Break makes the configuration one that HAProxy does not take, Mend ends every fault.
func (h *HAProxy) Break() { h.broken = true; h.write() }

// TakePort adds a bind to the configuration whose port somebody else has: HAProxy's check passes, and its reload fails.
func (h *HAProxy) TakePort() {
	h.tb.Helper()
	var err error
	if h.squater, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		h.tb.Fatalf("haproxytest: %v", err)
	}
	h.write()
}

// Mend ends what Break and TakePort did.
func (h *HAProxy) Mend() {
	h.broken = false
	if h.squater != nil {
		h.squater.Close()
		h.squater = nil
	}
	h.write()
}

// Check is an error where HAProxy would not start with what is on disk.
func (h *HAProxy) Check() error {
	out, err := exec.Command(program(), "-c", "-f", h.Config).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// Served returns the certificates that HAProxy shows for a name.
func (h *HAProxy) Served(name string) []*x509.Certificate {
	h.tb.Helper()
	chain, err := Handshake(h.Addr, name)
	if err != nil {
		h.tb.Fatalf("haproxytest: %s: %v", name, err)
	}
	return chain
}

// Handshake returns the certificates that a server shows for a name.
func Handshake(addr, name string) ([]*x509.Certificate, error) {
	d := tls.Dialer{Config: &tls.Config{ServerName: name, InsecureSkipVerify: true}} //nolint:gosec // a test's own server
	conn, err := d.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates, nil
}

// Command sends one command to the stats socket.
func (h *HAProxy) Command(command string) string {
	h.tb.Helper()
	reply, err := command1(h.AdminSocket, command)
	if err != nil {
		h.tb.Fatalf("haproxytest: %q: %v", command, err)
	}
	return reply
}

func command1(socket, command string) (string, error) {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := conn.Write([]byte(command + "\n")); err != nil {
		return "", err
	}
	var b bytes.Buffer
	if _, err := b.ReadFrom(conn); err != nil {
		return "", err
	}
	return strings.TrimSpace(b.String()), nil
}

// Log is what HAProxy has said.
func (h *HAProxy) Log() string { return h.log.String() }

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

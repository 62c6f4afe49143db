// Package haproxytest runs a real HAProxy under a test's control: master and workers, certificates in a folder, the
// sockets that haproxy-apply uses, and everything that can go wrong with them.
//
// Around it stand a small CA (Authority), certbot's folders (Lineages), a client that never rests (Prober) and an ear
// at HAProxy's sockets that can also answer in its place (Tap).
package haproxytest

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
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
// and one TLS bind that loads the folder of certificates. In Certs, BindOptions, Binds, Global, More, Files and Env,
// {dir} stands for HAProxy.Dir and {certs} for HAProxy.CertDir.
type Options struct {
	NoMaster       bool   // one process, without -W; the pidfile is written for it, as an init script does
	Systemd        bool   // -Ws in place of -W
	NoMasterSocket bool   // no -S
	NoStatsSocket  bool   // no "stats socket"
	NoPIDFile      bool   // no -p
	Level          string // of the stats socket; default admin
	Certs          string // on the bind line in place of "crt <folder>/"
	BindOptions    string // more for the bind line, such as "strict-sni"
	// Binds are further listeners of the same frontend, each what follows the address: "ssl crt {certs}/ accept-proxy".
	Binds        []string
	Files        map[string]string   // by their paths below Dir, such as a crt-list; ca.pem, a root of nobody's, is there
	Env          []string            // NAME=value: more of its environment than this process has
	Global, More string              // more lines of the global section, more sections
	Credential   *syscall.Credential // of the master and everything after it; the folders are this user's
}

// HAProxy is a HAProxy under test.
type HAProxy struct {
	Dir, CertDir, Config      string
	AdminSocket, MasterSocket string // "" where the options leave them out
	PIDFile                   string
	Addr                      string   // of the TLS bind, "127.0.0.1:PORT"
	Addrs                     []string // Addr, and the addresses of Options.Binds

	tb      TB
	o       Options
	program string

	mu       sync.Mutex
	cmd      *exec.Cmd     // nil until the first start
	gone     chan struct{} // closed when the process has ended and none of its group is left
	broken   bool
	squatter net.Listener // holds the port of TakePort
}

// New makes the folders and the configuration of a HAProxy, which ends with the test. It is not started.
func New(tb TB, o Options) *HAProxy {
	tb.Helper()
	// Not tb.TempDir, whose paths grow with the test's name: a socket's path has 107 bytes at most.
	dir, err := os.MkdirTemp("", "haproxy-")
	if err != nil {
		tb.Fatalf("haproxytest: %v", err)
	}
	h := &HAProxy{
		Dir: dir, CertDir: filepath.Join(dir, "certs"), Config: filepath.Join(dir, "haproxy.cfg"),
		Addrs: freeAddresses(tb, 1+len(o.Binds)), tb: tb, o: o, program: program(tb),
	}
	h.Addr = h.Addrs[0]
	if !o.NoStatsSocket {
		h.AdminSocket = filepath.Join(dir, "admin.sock")
	}
	if !o.NoMaster && !o.NoMasterSocket {
		h.MasterSocket = filepath.Join(dir, "master.sock")
	}
	if !o.NoPIDFile {
		h.PIDFile = filepath.Join(dir, "pid")
	}
	h.layOut()
	h.write()
	tb.Cleanup(func() {
		h.Kill()
		if h.squatter != nil {
			h.squatter.Close()
		}
		if log := h.Log(); tb.Failed() {
			tb.Logf("HAProxy's output:\n%s", log[max(0, len(log)-8000):])
		}
		os.RemoveAll(dir)
	})
	return h
}

func program(tb TB) string {
	tb.Helper()
	path, err := exec.LookPath("haproxy")
	if err != nil {
		path = "/usr/sbin/haproxy" // not on everybody's PATH
	}
	if _, err := os.Stat(path); err != nil {
		tb.Fatalf("haproxytest: %v\nhint: scripts/setup.sh installs what is missing", err)
	}
	return path
}

// Log is what HAProxy has said, over all starts.
func (h *HAProxy) Log() string {
	text, _ := os.ReadFile(h.logFile())
	return string(text)
}

func (h *HAProxy) logFile() string { return filepath.Join(h.Dir, "output.log") }

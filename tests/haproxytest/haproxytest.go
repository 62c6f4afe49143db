// Package haproxytest runs HAProxy inside a test: a real one on loopback, with a directory of certificates,
// a stats socket and a master socket, that a test can reload, break, kill and listen in on.
//
// Around it stand a small CA (Authority), certbot's layout on disk (Lineages), a client that never rests
// (Prober) and an ear at the sockets that can also answer in HAProxy's place (Tap).
package haproxytest

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
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

// Options say how HAProxy runs. In the texts of Binds, Global, Extra and Files, {dir} stands for
// HAProxy.Dir and {certs} for HAProxy.CertDir. The zero value is a master with one worker, both sockets, a
// pidfile and one TLS listener on the directory of certificates.
type Options struct {
	// Binds are the listeners of the one frontend, "tls", each what follows "bind ADDRESS", such as
	// "ssl crt {certs}/ accept-proxy". Default one: "ssl crt {certs}/".
	Binds []string
	// Certs are the files in the directory of certificates, by their names. Default: 000-default.pem for
	// default.test, by a CA of nobody's; HAProxy does not start on an empty directory.
	Certs map[string][]byte
	// Files are more files, by their paths under Dir: a crt-list, a CA for client certificates.
	Files  map[string]string
	Global []string // more lines of the section global
	Extra  string   // more sections, at the end of the file

	NoMaster       bool   // one process without -W
	Systemd        bool   // -Ws in place of -W
	NoMasterSocket bool   // without -S
	NoStatsSocket  bool   // without "stats socket"
	NoPIDFile      bool   // without -p
	StatsLevel     string // of the stats socket; default "admin"
	// User runs the master and everything after it as this uid and the gid of the same number; the directory
	// of certificates belongs to it. 0: as the test. Only root can ask for another.
	User int
}

// HAProxy is a HAProxy under test. Its methods may be called by several goroutines.
type HAProxy struct {
	Dir          string   // all of its files
	CertDir      string   // the directory of certificates
	ConfigFile   string   //
	AdminSocket  string   // "" where the options leave it out, as for the two next ones
	MasterSocket string   //
	PIDFile      string   //
	Addr         string   // of the first listener, "127.0.0.1:PORT"
	Addrs        []string // of all listeners, in the order of Options.Binds

	tb      TB
	options Options
	program string

	mu     sync.Mutex
	cmd    *exec.Cmd
	gone   chan struct{} // closed when the process has ended and none of its group is left
	intact string        // the configuration before BreakConfig or TakePort; "" when nothing is broken
	taken  net.Listener  // what TakePort holds
}

// New starts a HAProxy that ends with the test, and returns when it serves.
func New(tb TB, o Options) *HAProxy {
	tb.Helper()
	program, err := exec.LookPath("haproxy")
	if err != nil {
		program = "/usr/sbin/haproxy" // not on everybody's PATH
	}
	if _, err = os.Stat(program); err != nil {
		tb.Fatalf("haproxytest: %v\nhint: scripts/setup.sh installs what is missing", err)
	}
	// Not tb.TempDir, whose paths grow with the test's name: a socket's path has 107 bytes at most.
	dir, err := os.MkdirTemp("", "hap-")
	if err != nil {
		tb.Fatalf("haproxytest: %v", err)
	}
	tb.Cleanup(func() { os.RemoveAll(dir) })
	if len(o.Binds) == 0 {
		o.Binds = []string{"ssl crt {certs}/"}
	}
	if o.Certs == nil {
		pair := NewAuthority(tb).Issue([]string{"default.test"}, Opt{})
		o.Certs = map[string][]byte{"000-default.pem": pair.PEM()}
	}
	h := &HAProxy{
		Dir: dir, CertDir: filepath.Join(dir, "certs"), ConfigFile: filepath.Join(dir, "haproxy.cfg"),
		tb: tb, options: o, program: program,
	}
	if !o.NoStatsSocket {
		h.AdminSocket = filepath.Join(dir, "admin.sock")
	}
	if !o.NoMaster && !o.NoMasterSocket {
		h.MasterSocket = filepath.Join(dir, "master.sock")
	}
	if !o.NoMaster && !o.NoPIDFile {
		h.PIDFile = filepath.Join(dir, "haproxy.pid")
	}
	h.layOut()
	// A port may be taken by somebody else at that moment; another draw gets past that.
	for range 3 {
		h.Addrs = freeAddresses(tb, len(o.Binds))
		h.Addr = h.Addrs[0]
		h.WriteConfig(h.config())
		if err = h.start(); err == nil {
			tb.Cleanup(h.end)
			return h
		}
		h.kill()
	}
	tb.Fatalf("haproxytest: %v\n%s", err, h.Log())
	return nil
}

// end is the last of a HAProxy's life.
func (h *HAProxy) end() {
	h.kill()
	if h.taken != nil {
		h.taken.Close()
	}
	if h.tb.Failed() {
		log := h.Log()
		h.tb.Logf("HAProxy's output:\n%s", log[max(0, len(log)-8000):])
	}
}

// Log returns what HAProxy has written to stdout and stderr so far, over all starts.
func (h *HAProxy) Log() string {
	text, _ := os.ReadFile(h.logFile())
	return string(text)
}

func (h *HAProxy) logFile() string { return filepath.Join(h.Dir, "output.log") }

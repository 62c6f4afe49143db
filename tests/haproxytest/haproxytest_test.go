package haproxytest

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// serves fails the test unless HAProxy shows exactly this chain for its first name.
func serves(t *testing.T, h *HAProxy, p Pair) {
	t.Helper()
	chain := h.Served(p.Leaf.DNSNames[0])
	if len(chain) != 2 || !chain[0].Equal(p.Leaf) {
		t.Errorf("%s: %d certificates are served, the first with serial %s, want 2 and %s",
			p.Leaf.DNSNames[0], len(chain), Serial(chain[0]), Serial(p.Leaf))
	}
}

func (h *HAProxy) put(t *testing.T, name string, p Pair) string {
	t.Helper()
	path := filepath.Join(h.CertDir, name)
	if err := os.WriteFile(path, p.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func set(path string, p Pair) string {
	return "set ssl cert " + path + " <<\n" + string(p.PEM())
}

// A good reload takes what is on disk and drops nobody; a bad one changes nothing, in every way of breaking it.
func TestReload(t *testing.T) {
	h := New(t, Options{})
	ca := NewAuthority(t)
	first, second := ca.Issue(Wish{}, "a.test"), ca.Issue(Wish{}, "a.test")
	h.put(t, "a.pem", first)
	h.Start()
	serves(t, h, first)

	probe := h.Probe("a.test")
	worker, master := h.WorkerPID(), h.PID()
	h.put(t, "a.pem", second)
	if err := h.Reload(); err != nil {
		t.Fatal(err)
	}
	serves(t, h, second)
	if h.WorkerPID() == worker || h.PID() != master {
		t.Errorf("worker %d then %d, master %d then %d", worker, h.WorkerPID(), master, h.PID())
	}
	worker = h.WorkerPID()

	h.Break()
	if h.Check() == nil {
		t.Error("HAProxy takes the broken configuration")
	}
	if h.Reload() == nil {
		t.Error("HAProxy reloads with the broken configuration")
	}
	made, failed := probe.Stop()
	if made < 10 || len(failed) > 0 {
		t.Errorf("%d connections, failed: %q", made, failed)
	}
	// Both workers listen while they change places, so that the old certificate may come once more.
	seen := probe.Serials()
	if len(seen) < 2 || seen[0] != Serial(first.Leaf) || seen[len(seen)-1] != Serial(second.Leaf) {
		t.Errorf("seen %q, want %s and %s", seen, Serial(first.Leaf), Serial(second.Leaf))
	}

	h.Mend()
	h.TakePort() // HAProxy 2.6 serves nobody for two seconds, in which it asks the old worker to let go of the port
	if err := h.Check(); err != nil {
		t.Error(err)
	}
	if h.Reload() == nil {
		t.Error("HAProxy reloads with the taken port")
	}
	if h.WorkerPID() != worker {
		t.Error("a bad reload has a new worker")
	}
	h.Served("a.test")
	h.Mend()
	if err := h.Reload(); err != nil {
		t.Error(err)
	}
}

// The life of a HAProxy: what is left behind, and that it comes back at the same address.
func TestStopKillStart(t *testing.T) {
	for name, o := range map[string]Options{
		"master":            {},
		"no sockets":        {NoMasterSocket: true, NoStatsSocket: true, NoPIDFile: true},
		"one process":       {NoMaster: true},
		"as systemd has it": {Systemd: true},
		"another user":      {Credential: &syscall.Credential{Uid: 65534, Gid: 65534}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if o.Credential != nil && os.Getuid() != 0 {
				o.Credential = &syscall.Credential{Uid: uint32(os.Getuid()), Gid: uint32(os.Getgid())}
			}
			h := New(t, o)
			if h.Running() {
				t.Error("it runs before its start")
			}
			h.Start()
			h.Served("default.test")
			if !o.NoMaster {
				if err := h.Reload(); err != nil {
					t.Error(err)
				}
			}
			h.Stop()
			if _, err := Handshake(h.Addr, "default.test"); err == nil || h.Running() {
				t.Error("it goes on after Stop")
			}
			h.Start()
			pids := append(h.Workers(), h.PID())
			h.Kill()
			for _, pid := range pids {
				if !ends(pid) {
					t.Errorf("process %d is left", pid)
				}
			}
			for _, path := range []string{h.AdminSocket, h.MasterSocket, h.PIDFile} {
				if _, err := os.Stat(path); path != "" && err != nil {
					t.Error(err)
				}
			}
			h.Start()
			h.Served("default.test")
		})
	}
}

// ends tells whether a process has ended, or does so within a second.
func ends(pid int) bool {
	for range 100 {
		if started(pid) == 0 {
			return true
		}
		time.Sleep(pause)
	}
	return false
}

func TestBinds(t *testing.T) {
	ca := NewAuthority(t)
	both := "{dir}/bundle.pem"
	ec, rsa := ca.Issue(Wish{}, "a.test"), ca.Issue(Wish{RSA: 2048, RSAIssuer: true}, "a.test")
	h := New(t, Options{
		BindOptions: "strict-sni",
		Binds:       []string{"ssl crt {certs}/ accept-proxy", "ssl crt {certs}/ ca-file {dir}/ca.pem verify required", "ssl crt-list {dir}/list"},
		Files: map[string]string{
			"ca.pem": string(ca.RootPEM()), "list": both + " a.test\n",
			"bundle.pem.rsa": string(rsa.PEM()), "bundle.pem.ecdsa": string(ec.PEM()),
		},
		Global: "ssl-load-extra-files all",
	})
	h.Start()
	if _, err := Handshake(h.Addr, "other.test"); err == nil {
		t.Error("a strict bind shows a certificate for a name that it does not have")
	}
	h.Served("default.test")
	h.Shown(Look{Addr: h.Addrs[1], Name: "default.test", Proxy: true})
	if _, err := Handshake(h.Addrs[1], "default.test"); err == nil {
		t.Error("a bind with accept-proxy does without")
	}
	h.Shown(Look{Addr: h.Addrs[2], Name: "default.test"})
	if got := h.Shown(Look{Addr: h.Addrs[3], Name: "a.test", RSA: true}); !got[0].Equal(rsa.Leaf) {
		t.Errorf("RSA: serial %s", Serial(got[0]))
	}
	if got := h.Shown(Look{Addr: h.Addrs[3], Name: "a.test", ECDSA: true}); !got[0].Equal(ec.Leaf) {
		t.Errorf("ECDSA: serial %s", Serial(got[0]))
	}
}

func TestTap(t *testing.T) {
	h := New(t, Options{})
	ca := NewAuthority(t)
	first := ca.Issue(Wish{}, "a.test")
	path := h.put(t, "a.pem", first)
	h.Start()
	tap := NewTap(t, h)
	say := func(text string) string {
		t.Helper()
		reply, err := ask(tap.Path, text+"\n")
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		return reply
	}
	if got := say("show ssl cert " + path); !strings.Contains(got, SHA1(first.Leaf)) || !strings.Contains(got, "Serial: "+Serial(first.Leaf)+"\n") {
		t.Errorf("not the certificate: %s", got)
	}
	if got := tap.Changes(); len(got) > 0 {
		t.Errorf("changes %q", got)
	}

	// The whole way through the tap.
	second := ca.Issue(Wish{}, "a.test")
	if got := say(set(path, second)); got != "Transaction created for certificate "+path+"!" {
		t.Errorf("set: %s", got)
	}
	if got := say("commit ssl cert " + path); !strings.HasSuffix(got, "\nSuccess!") {
		t.Errorf("commit: %s", got)
	}
	serves(t, h, second)
	if got := tap.Changes(); !slices.Equal(got, []string{"set ssl cert " + path, "commit ssl cert " + path}) {
		t.Errorf("changes %q", got)
	}

	// An answer in HAProxy's place has no effect; one that HAProxy's own gives way to has.
	third := ca.Issue(Wish{}, "a.test")
	say(set(path, third))
	tap.Break("commit", Fault{Reply: "Success!\n\n", Times: 1})
	if got := say("commit ssl cert " + path); got != "Success!" {
		t.Errorf("commit: %s", got)
	}
	serves(t, h, second)
	tap.Break("commit", Fault{Pass: true, Close: true})
	if got := say("commit ssl cert " + path); got != "" {
		t.Errorf("commit: %s", got)
	}
	serves(t, h, third)
	tap.Mend()
	if got := say("commit ssl cert " + path); !strings.HasPrefix(got, "No ongoing transaction!") {
		t.Errorf("commit: %s", got)
	}

	// Skip, and a rival at the right moment.
	tap.Break("show ssl cert", Fault{Close: true, Skip: 1})
	tap.On(func(string) { h.Command("show info") })
	if say("show ssl cert") == "" || say("show ssl cert") != "" {
		t.Error("the fault is not for the second command")
	}
	tap.On(nil)
	tap.Mend()

	// A reload does not harm it.
	if err := h.Reload(); err != nil {
		t.Fatal(err)
	}
	if say("show ssl cert") == "" {
		t.Error("no answer after a reload")
	}
}

// A client that has said all waits as long as it likes, and nothing else.
func TestTapSilent(t *testing.T) {
	h := New(t, Options{})
	h.Start()
	tap := NewMasterTap(t, h)
	if got, err := ask(tap.Path, "show proc;quit\n"); err != nil || !strings.Contains(got, "master") {
		t.Errorf("%q, %v", got, err)
	}
	tap.Break("show proc", Fault{Silent: true})
	for _, half := range []bool{true, false} {
		conn := dial(t, tap.Path)
		if _, err := conn.Write([]byte("show proc\n")); err != nil {
			t.Fatal(err)
		}
		if half {
			if err := conn.CloseWrite(); err != nil {
				t.Fatal(err)
			}
		}
		if err := conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if n, err := conn.Read(make([]byte, 10)); !os.IsTimeout(err) {
			t.Errorf("half-closed %v: %d bytes, %v", half, n, err)
		}
	}
}

func TestLineages(t *testing.T) {
	l := NewLineages(t)
	ca := NewAuthority(t)
	first, second := ca.Issue(Wish{}, "a.test"), ca.Issue(Wish{}, "a.test")
	l.Renew("a.test", first)
	read := func(kind string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(l.Live("a.test"), kind+".pem"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if read("fullchain") != string(first.Chain()) || read("cert")+read("chain") != read("fullchain") || read("privkey") != string(first.PrivateKey) {
		t.Error("not the first version")
	}
	n := l.Archive("a.test", second.Cert, second.Issuer, second.PrivateKey)
	l.Switch("a.test", "cert", n)
	if n != 2 || read("cert") != string(second.Cert) || read("privkey") != string(first.PrivateKey) {
		t.Errorf("version %d is not half there", n)
	}
	l.Renew("a.test", first)
	if target, err := os.Readlink(filepath.Join(l.Live("a.test"), "privkey.pem")); err != nil || target != "../../archive/a.test/privkey3.pem" {
		t.Errorf("the link leads to %q: %v", target, err)
	}
}

func TestFill(t *testing.T) {
	h := New(t, Options{})
	names := NewAuthority(t).Fill(h.CertDir, 1000)
	h.Start()
	if got := h.Served(names[499])[0].DNSNames; !slices.Equal(got, []string{"c00500.test"}) {
		t.Errorf("served for %q", got)
	}
}

// BenchmarkReload is how long HAProxy itself takes.
func BenchmarkReload(b *testing.B) {
	h := New(b, Options{})
	NewAuthority(b).Fill(h.CertDir, 1000)
	h.Start()
	for b.Loop() {
		if err := h.Reload(); err != nil {
			b.Fatal(err)
		}
	}
}

func dial(t *testing.T, path string) *net.UnixConn {
	t.Helper()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn.(*net.UnixConn)
}

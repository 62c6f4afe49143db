// Package bindtest runs BIND inside a test: a real primary server on a loopback address, whose zones
// take dynamic updates as their update-policy says.
package bindtest

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// TB is what a server needs of its test.
type TB interface {
	Helper()
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Cleanup(func())
	Failed() bool
}

// Options say what the server serves, and to whom.
type Options struct {
	Listen netip.AddrPort // at an address that an interface has; default a free port of 127.0.0.1
	Zones  []Zone         // at least one
	Keys   []Key          // what the rules of the zones are about
}

// Zone is a zone of the server.
type Zone struct {
	Name    string
	Policy  []string // rules of its update-policy, such as "grant key. name a.example.net. TXT"
	Records []string // in zone-file syntax, every name from the root, besides SOA and NS
	Open    bool     // takes updates of anybody, signed or not, in place of the policy
	Extra   string   // more statements for the zone, each with its semicolon
}

// Key is a TSIG key.
type Key struct {
	Name      string // without the trailing dot
	Algorithm string // "hmac-sha256" and the like
	Secret    string // base64
}

// NewKey makes a key of that name for hmac-sha256.
func NewKey(name string) Key {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails
	return Key{name, "hmac-sha256", base64.StdEncoding.EncodeToString(secret)}
}

// Server is a running BIND.
type Server struct {
	Addr netip.AddrPort // UDP and TCP

	tb    TB
	dir   string
	admin Key // may do anything
	zones []Zone
	cmd   *exec.Cmd
	gone  chan struct{} // closed when named has ended
}

// New starts a server that ends with the test.
func New(tb TB, o Options) *Server {
	tb.Helper()
	if len(o.Zones) == 0 {
		tb.Fatalf("bindtest: a server needs a zone")
	}
	dir, err := os.MkdirTemp("", "bind-")
	if err != nil {
		tb.Fatalf("bindtest: %v", err)
	}
	tb.Cleanup(func() { os.RemoveAll(dir) })
	s := &Server{tb: tb, dir: dir, admin: NewKey("bindtest-admin"), zones: o.Zones}
	program := Program(tb, dir)

	// The port may be taken by somebody else at that moment; another draw gets past that.
	for range 3 {
		s.Addr = o.Listen
		if !o.Listen.IsValid() {
			s.Addr = randomAddress()
		}
		for _, z := range o.Zones {
			s.write(s.file(z), s.text(z))
		}
		s.write("named.conf", s.config(o.Keys))
		if err = s.start(program); err == nil {
			tb.Cleanup(func() {
				s.Stop()
				if tb.Failed() {
					log := s.Log()
					tb.Logf("BIND's log:\n%s", log[max(0, len(log)-8000):])
				}
			})
			return s
		}
		s.Stop()
		if o.Listen.IsValid() {
			break
		}
	}
	tb.Fatalf("bindtest: %v\n%s", err, s.Log())
	return nil
}

// Program puts a copy of named into a folder and returns its path. AppArmor, which Debian has on, keeps
// /usr/sbin/named out of other folders than its usual ones, and goes by the program's path.
func Program(tb TB, folder string) string {
	tb.Helper()
	path, err := exec.LookPath("named")
	if err != nil {
		path = "/usr/sbin/named" // not on everybody's PATH
	}
	from, err := os.Open(path)
	if err != nil {
		tb.Fatalf("bindtest: %v\nhint: scripts/setup.sh installs what is missing", err)
	}
	defer from.Close()
	to, err := os.OpenFile(filepath.Join(folder, "named"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err == nil {
		_, err = io.Copy(to, from)
		err = errors.Join(err, to.Close())
	}
	if err != nil {
		tb.Fatalf("bindtest: %v", err)
	}
	return to.Name()
}

// config is named.conf. Nothing in it reaches beyond the folder, and nobody is told of changes.
func (s *Server) config(keys []Key) string {
	var b strings.Builder
	for _, k := range append(keys, s.admin) {
		fmt.Fprintf(&b, "key %q { algorithm %s; secret %q; };\n", k.Name, k.Algorithm, k.Secret)
	}
	fmt.Fprintf(&b, `options {
	directory %q;
	listen-on port %d { %s; };
	listen-on-v6 { none; };
	pid-file none;
	session-keyfile none;
	recursion no;
	dnssec-validation no;
	empty-zones-enable no;
	notify no;
	querylog yes;
	allow-transfer { key %q; };
};
controls { };
logging { category default { default_stderr; }; };
`, s.dir, s.Addr.Port(), s.Addr.Addr(), s.admin.Name)
	for _, z := range s.zones {
		fmt.Fprintf(&b, "zone %q {\n\ttype primary;\n\tfile %q;\n\t%s\n", z.Name, s.file(z), z.Extra)
		if z.Open {
			b.WriteString("\tallow-update { any; };\n};\n")
			continue
		}
		fmt.Fprintf(&b, "\tupdate-policy {\n\t\tgrant %s. zonesub ANY;\n", s.admin.Name)
		for _, rule := range z.Policy {
			fmt.Fprintf(&b, "\t\t%s;\n", rule)
		}
		b.WriteString("\t};\n};\n")
	}
	return b.String()
}

func (s *Server) file(z Zone) string { return z.Name + ".db" }

// text is the zone's file.
func (s *Server) text(z Zone) string {
	lines := append([]string{
		"$ORIGIN .", "$TTL 300",
		z.Name + " SOA ns." + z.Name + " hostmaster." + z.Name + " 1 3600 600 86400 5",
		z.Name + " NS ns." + z.Name,
		"ns." + z.Name + " A " + s.Addr.Addr().String(),
	}, z.Records...)
	return strings.Join(lines, "\n") + "\n"
}

func (s *Server) write(name, content string) {
	s.tb.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(content), 0o644); err != nil {
		s.tb.Fatalf("bindtest: %v", err)
	}
}

// start runs named and returns when it answers with this server's own key: another program may be listening
// there, about which named itself only complains.
func (s *Server) start(program string) error {
	log, err := os.Create(s.logFile())
	if err != nil {
		return err
	}
	defer log.Close()
	s.gone = make(chan struct{})
	// -f: in the foreground; -X none: without a lock in /run; -n 1: one thread does.
	s.cmd = exec.Command(program, "-f", "-X", "none", "-n", "1", "-c", filepath.Join(s.dir, "named.conf"))
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		close(s.gone)
		return err
	}
	go func() {
		_ = s.cmd.Wait()
		close(s.gone)
	}()
	deadline := time.Now().Add(15 * time.Second)
	for {
		if err = s.ready(); err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("named does not answer: %w", err)
		}
		select {
		case <-s.gone:
			return errors.New("named ended")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Stop ends the server. Nothing listens at its address afterwards.
func (s *Server) Stop() {
	if s.cmd.Process != nil {
		_ = s.cmd.Process.Kill()
	}
	<-s.gone
}

// Log returns what named has written so far.
func (s *Server) Log() string {
	text, _ := os.ReadFile(s.logFile())
	return string(text)
}

func (s *Server) logFile() string { return filepath.Join(s.dir, "named.log") }

// randomAddress keeps away from ephemeral ports.
func randomAddress() netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(10000+mathrand.IntN(20000)))
}

package haproxytest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// layOut makes the folders and files of the options.
func (h *HAProxy) layOut() {
	h.tb.Helper()
	h.must(os.Mkdir(h.CertDir, 0o755))
	h.must(os.WriteFile(filepath.Join(h.Dir, "ca.pem"), NewAuthority(h.tb).RootPEM(), 0o644))
	for name, content := range h.o.Files {
		path := filepath.Join(h.Dir, name)
		h.must(os.MkdirAll(filepath.Dir(path), 0o755))
		h.must(os.WriteFile(path, []byte(h.expand(content)), 0o644))
	}
	if h.o.Credential == nil {
		return
	}
	h.must(os.Chmod(h.Dir, 0o755))
	// The sockets and the pidfile are made there; what is in the files everybody may read.
	for _, path := range []string{h.Dir, h.CertDir} {
		h.must(os.Chown(path, int(h.o.Credential.Uid), int(h.o.Credential.Gid)))
	}
}

func (h *HAProxy) must(err error) {
	h.tb.Helper()
	if err != nil {
		h.tb.Fatalf("haproxytest: %v", err)
	}
}

// expand puts the folders in.
func (h *HAProxy) expand(text string) string {
	return strings.NewReplacer("{dir}", h.Dir, "{certs}", h.CertDir).Replace(text)
}

// write writes the configuration, faults included.
func (h *HAProxy) write() {
	h.tb.Helper()
	var b strings.Builder
	b.WriteString("global\n\thard-stop-after 10s\n")
	if h.AdminSocket != "" {
		level := h.o.Level
		if level == "" {
			level = "admin"
		}
		fmt.Fprintf(&b, "\tstats socket %s mode 600 level %s\n", h.AdminSocket, level)
	}
	fmt.Fprintf(&b, "\t%s\n", h.o.Global)
	b.WriteString("defaults\n\tmode http\n\ttimeout client 5s\n\ttimeout server 5s\n\ttimeout connect 5s\n")
	b.WriteString("frontend fe\n")
	if h.broken {
		b.WriteString("\tfoo bar\n")
	}
	certs := h.o.Certs
	if certs == "" {
		certs = "crt {certs}/"
	}
	fmt.Fprintf(&b, "\tbind %s ssl %s %s\n", h.Addr, certs, h.o.BindOptions)
	for i, bind := range h.o.Binds {
		fmt.Fprintf(&b, "\tbind %s %s\n", h.Addrs[i+1], bind)
	}
	b.WriteString("\thttp-request return status 200\n")
	if h.squatter != nil {
		fmt.Fprintf(&b, "frontend squat\n\tbind %s\n", h.squatter.Addr())
	}
	fmt.Fprintf(&b, "%s\n", h.o.More)
	h.must(os.WriteFile(h.Config, []byte(h.expand(b.String())), 0o644))
}

// Break makes the configuration one that HAProxy does not take, until Mend.
func (h *HAProxy) Break() {
	h.tb.Helper()
	h.broken = true
	h.write()
}

// TakePort adds a bind to the configuration whose port somebody else has: HAProxy's check passes, and its reload fails,
// until Mend.
func (h *HAProxy) TakePort() {
	h.tb.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	h.must(err)
	h.squatter = listener
	h.write()
}

// Mend ends what Break and TakePort did. HAProxy is not reloaded.
func (h *HAProxy) Mend() {
	h.tb.Helper()
	h.broken = false
	if h.squatter != nil {
		h.squatter.Close()
		h.squatter = nil
	}
	h.write()
}

// FreePort returns an address of loopback's that nobody listens at.
func FreePort(tb TB) string {
	tb.Helper()
	return freeAddresses(tb, 1)[0]
}

// freeAddresses draws n addresses of 127.0.0.1, away from ephemeral ports. HAProxy shares its ports with every other
// HAProxy of the same user (SO_REUSEPORT) without a word, so a port counts as free only when it can be had alone.
func freeAddresses(tb TB, n int) []string {
	tb.Helper()
	var addresses []string
	for range 1000 {
		if len(addresses) == n {
			return addresses
		}
		listener, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(20000)))
		if err != nil {
			continue
		}
		defer listener.Close() // not before all are drawn: no port comes twice
		addresses = append(addresses, listener.Addr().String())
	}
	tb.Fatalf("haproxytest: no free port found")
	return nil
}

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
	check := func(err error) {
		if err != nil {
			h.tb.Fatalf("haproxytest: %v", err)
		}
	}
	check(os.Mkdir(h.CertDir, 0o755))
	for name, content := range h.options.Certs {
		check(os.WriteFile(filepath.Join(h.CertDir, name), content, 0o600))
	}
	for name, content := range h.options.Files {
		path := filepath.Join(h.Dir, name)
		check(os.MkdirAll(filepath.Dir(path), 0o755))
		check(os.WriteFile(path, []byte(h.expand(content)), 0o600))
	}
	if h.options.User == 0 {
		return
	}
	// Everything is the user's own: the sockets have to be made, and the certificates to be read.
	check(filepath.WalkDir(h.Dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, h.options.User, h.options.User)
	}))
}

// expand puts the folders in.
func (h *HAProxy) expand(text string) string {
	return strings.NewReplacer("{dir}", h.Dir, "{certs}", h.CertDir).Replace(text)
}

// config is haproxy.cfg.
func (h *HAProxy) config() string {
	o := h.options
	var b strings.Builder
	b.WriteString("global\n\tnbthread 1\n\tmaxconn 500\n\thard-stop-after 10s\n")
	if h.AdminSocket != "" {
		level := o.StatsLevel
		if level == "" {
			level = "admin"
		}
		fmt.Fprintf(&b, "\tstats socket %s mode 600 level %s\n", h.AdminSocket, level)
	}
	for _, line := range o.Global {
		fmt.Fprintf(&b, "\t%s\n", line)
	}
	b.WriteString("\ndefaults\n\tmode http\n\ttimeout connect 5s\n\ttimeout client 5s\n\ttimeout server 5s\n")
	b.WriteString("\nfrontend tls\n")
	for i, bind := range o.Binds {
		fmt.Fprintf(&b, "\tbind %s %s\n", h.Addrs[i], bind)
	}
	b.WriteString("\thttp-request return status 200\n")
	if o.Extra != "" {
		fmt.Fprintf(&b, "\n%s\n", o.Extra)
	}
	return h.expand(b.String())
}

// Config returns the configuration as it stands on disk.
func (h *HAProxy) Config() string {
	h.tb.Helper()
	text, err := os.ReadFile(h.ConfigFile)
	if err != nil {
		h.tb.Fatalf("haproxytest: %v", err)
	}
	return string(text)
}

// WriteConfig replaces the configuration on disk. HAProxy reads it at the next reload or start.
func (h *HAProxy) WriteConfig(text string) {
	h.tb.Helper()
	if err := os.WriteFile(h.ConfigFile, []byte(text), 0o644); err != nil {
		h.tb.Fatalf("haproxytest: %v", err)
	}
}

// BreakConfig puts an unknown keyword into the configuration: "haproxy -c" and every reload fail until
// MendConfig.
func (h *HAProxy) BreakConfig() {
	h.tb.Helper()
	h.spoil("\nfrontend broken\n\tno-such-keyword\n")
}

// TakePort adds a listener at a port that the test itself holds, which it returns: "haproxy -c" passes and
// every reload fails, until MendConfig.
func (h *HAProxy) TakePort() string {
	h.tb.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		h.tb.Fatalf("haproxytest: %v", err)
	}
	h.spoil(fmt.Sprintf("\nfrontend taken\n\tbind %s\n\thttp-request return status 200\n", listener.Addr()))
	h.mu.Lock()
	h.taken = listener
	h.mu.Unlock()
	return listener.Addr().String()
}

// spoil adds a section to the configuration, once.
func (h *HAProxy) spoil(section string) {
	h.tb.Helper()
	text := h.Config()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.intact != "" {
		h.tb.Fatalf("haproxytest: the configuration is broken already")
	}
	h.intact = text
	h.WriteConfig(text + section)
}

// MendConfig brings the configuration back to what it was before BreakConfig or TakePort. HAProxy is not
// reloaded.
func (h *HAProxy) MendConfig() {
	h.tb.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.intact == "" {
		h.tb.Fatalf("haproxytest: the configuration is not broken")
	}
	h.WriteConfig(h.intact)
	h.intact = ""
	if h.taken != nil {
		h.taken.Close()
		h.taken = nil
	}
}

// freeAddresses draws n addresses of 127.0.0.1 at which nobody listens. It keeps away from ephemeral ports.
// HAProxy shares its ports with every other HAProxy of the same user (SO_REUSEPORT) without a word, so a
// port counts as free only when it can be had alone.
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

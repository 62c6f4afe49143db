// Package conf reads HAProxy's configuration as far as certificates go: which files its TLS binds load, where they
// listen, and where its sockets are. It refuses nothing that HAProxy takes.
//
// The syntax is in HAProxy's configuration manual, sections 2.2 (quoting), 2.3 (environment variables) and 5.1
// (bind options).
package conf

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/certhook/certhook/pkg/fault"
)

// Config is what matters of a configuration.
type Config struct {
	Binds        []Bind // those with TLS
	StatsSockets []Socket
	User, Group  string
	Chroot       string
	CrtBase      string
	PIDFile      string
	MasterWorker bool
}

// Bind is a bind line with TLS.
type Bind struct {
	File        string
	Line        int
	Proxy       string   // name of its frontend or listen section
	Addresses   []string // to connect to: host:port, or the path of a unix socket
	Unseen      []string // of its addresses those that cannot be connected to from here, such as QUIC's
	Certs       []string // files and folders as crt names them, below crt-base
	CrtLists    []string // files as crt-list names them
	AcceptProxy bool
	StrictSNI   bool
	Verify      string // of clients: "none", "optional", "required" or ""
	Conditional bool   // within .if: it may not be there
}

// Socket is a stats socket.
type Socket struct {
	Path  string // of the unix socket, or host:port
	Level string // "user", "operator" or "admin"
}

// Read reads files, and of folders the files *.cfg in their order, as HAProxy's -f does. The error, of kind Usage,
// means that one cannot be read.
func Read(paths []string) (Config, error) {
	r := &reader{}
	for _, path := range paths {
		files := []string{path}
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			if files, err = filepath.Glob(filepath.Join(path, "*.cfg")); err != nil {
				return Config{}, err
			}
			slices.Sort(files)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return Config{}, fault.Errorf(fault.Usage, "read HAProxy's configuration: %w", err).
					WithHint("set HAPROXY_CONFIG to the file that HAProxy is started with")
			}
			r.read(file, string(text))
		}
	}
	return r.c, nil
}

type reader struct {
	c       Config
	section string // "global", "frontend", …
	proxy   string
	depth   int // of .if
}

func (r *reader) read(file, text string) {
	r.section, r.proxy, r.depth = "", "", 0
	for n, line := range strings.Split(text, "\n") {
		words := split(line)
		if len(words) == 0 {
			continue
		}
		switch words[0] {
		case ".if":
			r.depth++
		case ".endif":
			r.depth = max(0, r.depth-1)
		case "global", "defaults", "frontend", "listen", "backend", "peers", "resolvers", "userlist", "program", "cache", "mailers", "ring", "http-errors", "fcgi-app", "log-forward", "crt-store", "traces", "acme":
			r.section, r.proxy = words[0], ""
			if len(words) > 1 {
				r.proxy = words[1]
			}
		case "bind":
			if b, ok := r.bind(words[1:]); ok && r.section != "global" {
				b.File, b.Line = file, n+1
				r.c.Binds = append(r.c.Binds, b)
			}
		default:
			if r.section == "global" {
				r.global(words)
			}
		}
	}
}

func (r *reader) global(words []string) {
	at := func(i int) string {
		if i < len(words) {
			return words[i]
		}
		return ""
	}
	switch words[0] {
	case "user":
		r.c.User = at(1)
	case "group":
		r.c.Group = at(1)
	case "chroot":
		r.c.Chroot = at(1)
	case "crt-base":
		r.c.CrtBase = at(1)
	case "pidfile":
		r.c.PIDFile = at(1)
	case "master-worker":
		r.c.MasterWorker = true
	case "stats":
		if at(1) != "socket" || at(2) == "" {
			return
		}
		s := Socket{Level: "operator"}
		var seen bool
		if s.Path, seen = address(at(2)); !seen {
			return
		}
		for i := 3; i+1 < len(words); i++ {
			if words[i] == "level" {
				s.Level = words[i+1]
			}
		}
		r.c.StatsSockets = append(r.c.StatsSockets, s)
	}
}

// bind reads a bind line's words after the keyword; ok is false without TLS.
func (r *reader) bind(words []string) (b Bind, ok bool) {
	if len(words) == 0 {
		return b, false
	}
	b = Bind{Proxy: r.proxy, Conditional: r.depth > 0}
	for i := 1; i < len(words); i++ {
		next := ""
		if i+1 < len(words) {
			next = words[i+1]
		}
		switch words[i] {
		case "ssl":
			ok = true
		case "crt":
			b.Certs = append(b.Certs, r.below(next))
			i++
		case "crt-list":
			b.CrtLists = append(b.CrtLists, next)
			i++
		case "accept-proxy":
			b.AcceptProxy = true
		case "strict-sni":
			b.StrictSNI = true
		case "verify":
			b.Verify = next
			i++
		}
	}
	for item := range strings.SplitSeq(words[0], ",") {
		a, seen := address(item)
		if seen {
			b.Addresses = append(b.Addresses, a)
		} else {
			b.Unseen = append(b.Unseen, item)
		}
	}
	return b, ok
}

// below puts crt-base before a relative path, as HAProxy does, to the letter.
func (r *reader) below(path string) string {
	if r.c.CrtBase != "" && !strings.HasPrefix(path, "/") {
		return r.c.CrtBase + "/" + path
	}
	return path
}

// address turns an address of HAProxy's into one to connect to. Where it listens at all addresses that is loopback's.
func address(text string) (to string, seen bool) {
	if path, ok := strings.CutPrefix(text, "unix@"); ok {
		return path, strings.HasPrefix(path, "/")
	}
	if strings.HasPrefix(text, "/") {
		return text, true
	}
	loopback := "127.0.0.1"
	family, rest, tagged := strings.Cut(text, "@")
	if !tagged {
		rest = text
	} else {
		switch family {
		case "ipv4", "tcp", "tcp4":
		case "ipv6", "tcp6":
			loopback = "::1"
		default: // abns, fd, sockpair, quic4, quic6, …
			return "", false
		}
	}
	i := strings.LastIndexByte(rest, ':')
	if i < 0 {
		return "", false
	}
	host, port := strings.Trim(rest[:i], "[]"), rest[i+1:]
	port, _, _ = strings.Cut(port, "-") // of a range the first tells as much as any
	switch host {
	case "", "*", "0.0.0.0":
		host = loopback
	case "::":
		host = "::1"
	}
	return net.JoinHostPort(host, port), port != ""
}

func (b Bind) String() string { return fmt.Sprintf("%s:%d", b.File, b.Line) }

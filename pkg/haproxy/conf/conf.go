// Package conf reads HAProxy's configuration as far as certificates go: which files its TLS binds load, where they
// listen, and where its sockets are. It refuses nothing that HAProxy takes, and what it does not know it passes over.
//
// The syntax is in HAProxy's configuration manual, sections 2.2 (quoting), 2.3 (environment variables), 2.4
// (conditional blocks), 4 (bind) and 5.1 (bind options); where the manual and src/tools.c differ, the latter is right.
package conf

import (
	"fmt"
	"strings"
)

// Config is what matters of a configuration.
type Config struct {
	Binds        []Bind // those with TLS, in HAProxy's order
	StatsSockets []Socket
	User, Group  string // by name; "" also where uid and gid give a number
	Chroot       string
	CrtBase      string
	PIDFile      string
	MasterWorker bool // by the configuration; -W says it on the command line
	// Extra are the kinds of files that HAProxy looks for beside a certificate (ssl-load-extra-files).
	Extra []string
	// TLS are the lines of global sections that bear on which certificates HAProxy takes, to be put into another
	// configuration: without variables, and quoted.
	TLS []string
	// Unset are the environment variables that it refers to and that are not set, but those that HAProxy sets itself.
	Unset []string
}

// Bind is a bind line with TLS. The one of a peers section stands for all that it says of its listener.
type Bind struct {
	File string
	Line int
	// Proxy is the name of its frontend or listen section.
	Proxy string
	// Addresses are where to connect to: host:port, the path of a unix socket, or abns@name. Loopback's stand for all
	// of a machine's, and the first port of a range for the others.
	Addresses []string
	// Unseen are the addresses at which nobody can connect from here, such as QUIC's, with the reason.
	Unseen []string
	// Certs are the files and folders as crt names them, below crt-base, to the letter: HAProxy's memory has a file
	// by this name, and what is in a folder by the folder's without the slashes at its end, a slash and the file's.
	Certs []string
	// CrtLists are files as crt-list names them, and Listed is what they hold. Those that cannot be read are in Unread.
	CrtLists []string
	Listed   []Listed
	Unread   []string
	// Dir is where relative names lead from: HAProxy's working directory, or that of default-path.
	Dir         string
	AcceptProxy bool // whoever connects has to send a PROXY line first
	StrictSNI   bool
	Verify      string // of clients: "none", "optional", "required" or ""
	Conditional bool   // within .if, which is not evaluated: it may not be there
}

// Listed is a line of a crt-list.
type Listed struct {
	List    string   // as crt-list names it
	Cert    string   // below crt-base, to the letter
	Filters []string // names in SNI, with * and !, that it is for; none: those of the certificate
}

// Socket is a stats socket.
type Socket struct {
	Path        string // of the unix socket, or host:port
	Level       string // "user", "operator" or "admin"
	Conditional bool   // within .if
}

func (b Bind) String() string { return fmt.Sprintf("%s:%d", b.File, b.Line) }

// Path is where one of the bind's names leads.
func (b Bind) Path(name string) string { return absolute(b.Dir, name) }

func absolute(dir, path string) string {
	if dir == "" || strings.HasPrefix(path, "/") {
		return path
	}
	return dir + "/" + path // and not cleaned: ".." behind a symbolic link leads elsewhere
}

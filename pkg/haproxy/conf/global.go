package conf

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// maxValue bounds what setenv can make of a variable: as much as Linux hands to a program (MAX_ARG_STRLEN).
const maxValue = 128 << 10

// extra is what HAProxy looks for beside a certificate unless it is told otherwise: the halves of a bundle, and files
// with more about the certificate.
var extra = []string{"bundle", "sctl", "ocsp", "issuer", "key"}

// variable is an environment variable as the configuration has left it.
type variable struct {
	value string
	set   bool
}

// global reads a line of a global section. What is said twice holds as it was said first.
func (p *parser) global(line words) {
	first := func(field *string) {
		if *field == "" {
			*field = line.at(1)
		}
	}
	if aboutTLS(line.at(0)) {
		p.c.TLS = append(p.c.TLS, line.quoted())
	}
	switch keyword := line.at(0); keyword {
	case "user":
		first(&p.c.User)
	case "group":
		first(&p.c.Group)
	case "chroot":
		first(&p.c.Chroot)
	case "crt-base":
		first(&p.c.CrtBase)
	case "pidfile":
		first(&p.c.PIDFile)
	case "master-worker":
		p.c.MasterWorker = true
	case "unix-bind":
		p.unixPrefix = cmp.Or(p.unixPrefix, line.after("prefix"))
	case "default-path":
		p.mode, p.origin = line.at(1), line.at(2)
		p.chdir()
	case "stats":
		if line.at(1) == "socket" {
			p.statsSocket(line.at(2), line.from(3))
		}
	case "ssl-load-extra-files":
		if p.c.Extra = line.from(1); line.at(1) == "all" {
			p.c.Extra = extra
		}
	case "setenv", "presetenv", "unsetenv", "resetenv":
		p.setenv(keyword, line.from(1))
	}
}

// aboutTLS reports whether a keyword has to do with the certificates that HAProxy itself shows.
func aboutTLS(keyword string) bool {
	of := func(prefix string) bool { return strings.HasPrefix(keyword, prefix) }
	return (of("ssl-") || of("tune.ssl.") || keyword == "issuers-chain-path") && !of("ssl-server-") && !of("ssl-default-server-")
}

func (p *parser) statsSocket(addresses string, line words) {
	level := "operator"
	for keyword, argument := range options(line) {
		if keyword == "level" {
			level = argument
		}
	}
	for item := range strings.SplitSeq(addresses, ",") {
		if path, why := p.address(item, ""); why == "" && !strings.HasPrefix(path, "abns@") {
			p.c.StatsSockets = append(p.c.StatsSockets, Socket{Path: path, Level: level, Conditional: p.depth > 0})
		}
	}
}

func (p *parser) setenv(how string, line words) {
	switch how {
	case "unsetenv":
		for _, name := range line {
			p.env[name] = variable{}
		}
	case "resetenv":
		kept := map[string]variable{}
		for _, name := range line {
			value, set := p.getenv(name)
			kept[name] = variable{value, set}
		}
		p.env, p.cleared = kept, true
	default:
		if len(line) < 2 || len(line.at(1)) > maxValue {
			return
		}
		if _, set := p.getenv(line.at(0)); !set || how == "setenv" {
			p.env[line.at(0)] = variable{line.at(1), true}
		}
	}
}

func (p *parser) getenv(name string) (string, bool) {
	if v, ok := p.env[name]; ok || p.cleared {
		return v.value, v.set
	}
	return p.Lookup(name)
}

// used is getenv for a variable that the configuration refers to.
func (p *parser) used(name string) (string, bool) {
	value, set := p.getenv(name)
	if !set && name != "" && !slices.Contains(itsOwn, name) && !slices.Contains(p.c.Unset, name) {
		p.c.Unset = append(p.c.Unset, name)
	}
	return value, set
}

// itsOwn are the variables that HAProxy sets before it reads its configuration (configuration manual, section 2.3).
var itsOwn = []string{
	"HAPROXY_LOCALPEER", "HAPROXY_CFGFILES", "HAPROXY_MWORKER", "HAPROXY_CLI", "HAPROXY_MASTER_CLI", "HAPROXY_BRANCH",
	"HAPROXY_HTTP_LOG_FMT", "HAPROXY_HTTP_CLF_LOG_FMT", "HAPROXY_HTTPS_LOG_FMT", "HAPROXY_TCP_LOG_FMT", "HAPROXY_TCP_CLF_LOG_FMT",
}

// value is getenv with the names that HAProxy itself gives a meaning.
func (p *parser) value(name string) (string, bool) {
	switch name {
	case ".FILE":
		return p.file, true
	case ".LINE":
		return strconv.Itoa(p.line), true
	case ".SECTION":
		if p.section.name != "" {
			return p.section.name, true
		}
		return p.section.kind, true
	}
	if strings.HasPrefix(name, ".") {
		return "", false
	}
	return p.used(name)
}

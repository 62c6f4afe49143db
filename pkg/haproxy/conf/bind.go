package conf

import (
	"iter"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// bindLine is a bind line to be looked at when its section ends.
type bindLine struct {
	file        string
	line        int
	addresses   string
	options     words
	conditional bool
}

// The options of bind lines that have an argument, in HAProxy 2.4 to 3.5 (haproxy -dKbind lists them). Without
// them "name ssl" would be taken for TLS.
var withArgument = strings.Fields(`accept-netscaler-cip alpn backlog ca-file ca-ignore-err ca-sign-file ca-sign-pass
	ca-verify-file cc ciphers ciphersuites client-sigalgs crl-file crt crt-ignore-err crt-list curves default-crt ecdhe
	ech expose-fd gid group guid-prefix id idle-ping interface issuer key ktls label level maxconn mode mss name
	namespace nbconn nice npn ocsp ocsp-update process proto quic-cc-algo quic-socket sctl severity-output shards
	sigalgs ssl-max-ver ssl-min-ver tcp-md5sig tcp-ss tcp-ut thread tls-ticket-keys uid user verify`)

// options goes through the options of a bind line, each with its argument, if it has one.
func options(line words) iter.Seq2[string, string] {
	return func(yield func(keyword, argument string) bool) {
		for i := 0; i < len(line); i++ {
			keyword, argument := line[i], ""
			if slices.Contains(withArgument, keyword) {
				i++
				argument = line.at(i)
			}
			if !yield(keyword, argument) {
				return
			}
		}
	}
}

// bind makes of a bind line what matters of it; ok is false without TLS.
func (p *parser) bind(s section, line bindLine) (b Bind, ok bool) {
	b = Bind{File: line.file, Line: line.line, Proxy: s.name, Dir: p.dir, AcceptProxy: s.proxied, Conditional: line.conditional}
	hidden := ""
	if s.disabled {
		hidden = "its section is disabled"
	}
	for keyword, argument := range options(slices.Concat(line.options, s.common)) {
		switch keyword {
		case "ssl":
			ok = true
		case "crt", "default-crt":
			if cert := p.below(argument); !slices.Contains(b.Certs, cert) {
				b.Certs = append(b.Certs, cert)
			}
		case "crt-list":
			b.CrtLists = append(b.CrtLists, argument)
		case "accept-proxy":
			b.AcceptProxy = true
		case "strict-sni":
			b.StrictSNI = true
		case "no-strict-sni":
			b.StrictSNI = false
		case "verify":
			b.Verify = argument
		case "interface":
			if argument != "lo" {
				hidden = "only from " + argument
			}
		case "namespace":
			hidden = "in network namespace " + argument
		case "accept-netscaler-cip":
			hidden = "only from a NetScaler"
		}
	}
	for item := range strings.SplitSeq(line.addresses, ",") {
		if item == "" {
			continue
		}
		address, why := p.address(item, p.unixPrefix)
		if strings.HasPrefix(why, "QUIC") {
			ok = true
		}
		if why == "" {
			why = hidden
		}
		if why == "" {
			b.Addresses = append(b.Addresses, address)
		} else {
			b.Unseen = append(b.Unseen, item+" ("+why+")")
		}
	}
	if !ok {
		return Bind{}, false
	}
	for _, list := range b.CrtLists {
		lines, err := p.list(list)
		if err != nil {
			b.Unread = append(b.Unread, list)
		}
		b.Listed = append(b.Listed, lines...)
	}
	return b, true
}

// below puts crt-base before a relative path. What begins with @ is no path, but a name in a crt-store.
func (p *parser) below(path string) string {
	if p.c.CrtBase != "" && !strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "@") {
		return p.c.CrtBase + "/" + path
	}
	return path
}

// address makes of one of HAProxy's addresses one to connect to, or says why there is none (str2sa_range in
// src/tools.c).
func (p *parser) address(text, unixPrefix string) (to, why string) {
	text = strings.TrimPrefix(p.expandAddress(text), "stream+")
	switch {
	case strings.HasPrefix(text, "/"):
		return unixPrefix + text, ""
	case strings.HasPrefix(text, "quic4@"), strings.HasPrefix(text, "quic6@"), strings.HasPrefix(text, "quic+"):
		return "", "QUIC"
	}
	family, rest, tagged := strings.Cut(text, "@")
	if !tagged {
		family, rest = "", text
	}
	wildcard := "127.0.0.1"
	switch family {
	case "", "ip", "tcp", "mptcp", "ipv4", "tcp4", "mptcp4":
	case "ipv6", "tcp6", "mptcp6":
		wildcard = "::1"
	case "unix", "uxst":
		return absolute(p.Dir, unixPrefix+rest), ""
	case "abns":
		return text, ""
	case "fd", "sockpair":
		return "", "an inherited socket"
	default:
		return "", "not by TCP"
	}
	i := strings.LastIndexByte(rest, ':')
	if i < 0 {
		return "", "no address"
	}
	host, ports := rest[:i], rest[i+1:]
	port, _, _ := strings.Cut(ports, "-")
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		host = host[1 : len(host)-1]
	}
	if port == "" || strings.ContainsAny(host+port, "[]") {
		return "", "no address"
	}
	if host == "" || host == "*" {
		host = wildcard
	} else if ip, err := netip.ParseAddr(host); err == nil && ip.IsUnspecified() {
		if host = "127.0.0.1"; ip.Is6() {
			host = "::1"
		}
	}
	return net.JoinHostPort(host, port), ""
}

// expandAddress puts variables into an address, which HAProxy does there without quotes, too (env_expand in
// src/tools.c).
func (p *parser) expandAddress(text string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, "$")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		braces := strings.HasPrefix(after, "{")
		name := strings.TrimPrefix(after, "{")
		n := 0
		for n < len(name) && nameOctet(name[n]) {
			n++
		}
		name, text = name[:n], name[n:]
		if braces {
			text = strings.TrimPrefix(text, "}")
		}
		value, _ := p.used(name)
		b.WriteString(value)
	}
}

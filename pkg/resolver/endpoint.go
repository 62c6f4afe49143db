// Package resolver puts DNS questions to recursive resolvers: one question to one server over plain DNS,
// DNS over TLS (RFC 7858) or DNS over HTTPS (RFC 8484, and the JSON form of public resolvers), or one
// question to several servers of which the first answer counts.
package resolver

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/pkg/fault"
)

// Transport is how an endpoint is asked.
type Transport string

const (
	UDP   Transport = "udp"   // UDP, then TCP where the answer is truncated or does not come
	TCP   Transport = "tcp"   // TCP only
	TLS   Transport = "tls"   // RFC 7858
	HTTPS Transport = "https" // RFC 8484, POST
	JSON  Transport = "json"  // GET with name and type, answered as https://dns.google/resolve does
)

var defaultPort = map[Transport]uint16{UDP: 53, TCP: 53, TLS: 853, HTTPS: 443, JSON: 443}

// Endpoint is one DNS server and the way to ask it. It is comparable.
type Endpoint struct {
	Transport Transport
	Host      string         // name or address that the certificate must bear; empty for UDP and TCP
	Addr      netip.Addr     // address to connect to; zero: the system looks Host up
	Port      uint16         // never 0
	Path      string         // of the URL, with its slash; empty unless HTTPS or JSON
	Roots     *x509.CertPool // who may sign the certificate; nil for the system's list
}

// ParseEndpoint reads an endpoint as settings name it:
//
//	192.0.2.1, 2001:db8::1       UDP to port 53 (a port may follow: 192.0.2.1:5353, [2001:db8::1]:5353)
//	udp://ADDRESS, tcp://ADDRESS the same, said in full
//	tls://HOST                   DNS over TLS
//	https://HOST/PATH            DNS over HTTPS; the path /dns-query if none is given
//	https://HOST/…/resolve       the JSON form
//
// HOST is a name or an address, with a port if need be. HOST@ADDRESS connects to ADDRESS, without a
// look-up of HOST, which still names the server to TLS and HTTP. The error is of kind Usage.
func ParseEndpoint(s string) (Endpoint, error) {
	e, err := parseEndpoint(s)
	if err != nil {
		return Endpoint{}, fault.Errorf(fault.Usage, "%q is not a resolver: %w", s, err).
			WithHint("use https://HOST/dns-query, https://HOST@ADDRESS/dns-query, tls://HOST, udp://ADDRESS or an IP address")
	}
	return e, nil
}

func parseEndpoint(s string) (Endpoint, error) {
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok {
		scheme, rest = string(UDP), s
	}
	e := Endpoint{Transport: Transport(scheme)}
	switch e.Transport {
	case UDP, TCP, TLS:
		rest = strings.TrimSuffix(rest, "/")
	case HTTPS:
		i := strings.IndexByte(rest+"/", '/')
		rest, e.Path = rest[:i], rest[i:]
		if strings.ContainsAny(e.Path, "?# ") {
			return e, errors.New("a path without query is expected")
		}
		if e.Path == "" || e.Path == "/" {
			e.Path = "/dns-query"
		}
		if _, err := url.ParseRequestURI(e.Path); err != nil {
			return e, fmt.Errorf("%q is not a path", e.Path)
		}
		if strings.HasSuffix(e.Path, "/resolve") {
			e.Transport = JSON
		}
	default:
		return e, fmt.Errorf("the scheme %q is unknown", scheme)
	}
	e.Port = defaultPort[e.Transport]

	host, pin, pinned := strings.Cut(rest, "@")
	if err := e.setHost(host); err != nil {
		return e, err
	}
	if plain := e.Transport == UDP || e.Transport == TCP; plain && (pinned || !e.Addr.IsValid()) {
		return e, errors.New("an IP address is expected")
	} else if plain {
		e.Host = ""
	}
	if e.Host != "" && e.Addr.Zone() != "" {
		return e, errors.New("no certificate is for an address with a zone")
	}
	if pinned {
		addr, err := netip.ParseAddr(strings.Trim(pin, "[]"))
		if err != nil {
			return e, fmt.Errorf("%q after the @ is not an IP address", pin)
		}
		e.Addr = addr
	}
	return e, nil
}

// setHost reads a name or an address with or without a port.
func (e *Endpoint) setHost(s string) error {
	if addr, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		e.Host, e.Addr = addr.String(), addr
		return nil
	}
	if host, port, err := net.SplitHostPort(s); err == nil {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return fmt.Errorf("%q is not a port", port)
		}
		e.Port, s = uint16(n), host
		if addr, err := netip.ParseAddr(host); err == nil {
			e.Host, e.Addr = addr.String(), addr
			return nil
		}
	}
	host, err := dnsname.ParseHost(s)
	if err != nil {
		return err
	}
	e.Host = host
	return nil
}

// String returns the endpoint in a form that [ParseEndpoint] reads.
func (e Endpoint) String() string {
	scheme := e.Transport
	if scheme == JSON {
		scheme = HTTPS
	}
	if e.Host == "" {
		if e.Port == defaultPort[e.Transport] {
			return fmt.Sprintf("%s://%s", scheme, bracket(e.Addr.String()))
		}
		return fmt.Sprintf("%s://%s", scheme, e.dialAddress())
	}
	pin := ""
	if e.Addr.IsValid() && e.Addr.String() != e.Host {
		pin = "@" + bracket(e.Addr.String())
	}
	return fmt.Sprintf("%s://%s%s%s", scheme, e.hostPort(), pin, e.Path)
}

// hostPort returns the host as a URL has it: without a default port.
func (e Endpoint) hostPort() string {
	if e.Port == defaultPort[e.Transport] {
		return bracket(e.Host)
	}
	return net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port)))
}

// dialAddress returns what to connect to.
func (e Endpoint) dialAddress() string {
	host := e.Host
	if e.Addr.IsValid() {
		host = e.Addr.String()
	}
	return net.JoinHostPort(host, strconv.Itoa(int(e.Port)))
}

func bracket(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

// Default returns the public resolvers asked where none are configured: Google and Cloudflare over HTTPS,
// pinned by address so that they work where the system's own resolver does not.
func Default() []Endpoint {
	pinned := func(host, addr string) Endpoint {
		return Endpoint{Transport: HTTPS, Host: host, Addr: netip.MustParseAddr(addr), Port: 443, Path: "/dns-query"}
	}
	return []Endpoint{
		pinned("dns.google", "8.8.8.8"),
		pinned("cloudflare-dns.com", "1.1.1.1"),
		// Last, since a host without IPv6 fails them at once.
		pinned("dns.google", "2001:4860:4860::8888"),
		pinned("cloudflare-dns.com", "2606:4700:4700::1111"),
	}
}

// SystemEndpoints returns the name servers of a resolv.conf(5) file, in its order.
func SystemEndpoints(path string) ([]Endpoint, error) {
	conf, err := dns.ClientConfigFromFile(path)
	if err != nil {
		return nil, fmt.Errorf("read resolvers from %q: %w", path, err)
	}
	var list []Endpoint
	for _, server := range conf.Servers {
		e, err := parseEndpoint(net.JoinHostPort(server, conf.Port))
		if err != nil {
			return nil, fmt.Errorf("read resolvers from %q: %q: %w", path, server, err)
		}
		list = append(list, e)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("read resolvers from %q: it names none", path)
	}
	return list, nil
}

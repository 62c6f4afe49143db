package resolver

import (
	"net/netip"

	"github.com/certhook/certhook/pkg/dnsname"
)

// operator is a public resolver that goes by several names and addresses.
type operator struct {
	domains  []string // hosts are these or lie below
	prefixes []netip.Prefix
}

// operators are the public resolvers that people name in many ways, as their operators publish them:
//
//	https://developers.google.com/speed/public-dns/docs/using
//	https://developers.cloudflare.com/1.1.1.1/ip-addresses/
//	https://quad9.net/service/service-addresses-and-features/
var operators = map[string]operator{
	"Google": {
		domains:  []string{"dns.google", "dns.google.com"},
		prefixes: prefixes("8.8.8.0/24", "8.8.4.0/24", "2001:4860:4860::/48"),
	},
	"Cloudflare": {
		domains:  []string{"cloudflare-dns.com", "one.one.one.one"},
		prefixes: prefixes("1.1.1.0/24", "1.0.0.0/24", "2606:4700:4700::/48"),
	},
	"Quad9": {
		domains:  []string{"quad9.net"},
		prefixes: prefixes("9.9.9.0/24", "149.112.112.0/24", "2620:fe::/48"),
	},
}

func prefixes(list ...string) []netip.Prefix {
	var all []netip.Prefix
	for _, s := range list {
		all = append(all, netip.MustParsePrefix(s))
	}
	return all
}

// identities returns what an endpoint may have in common with another way to reach the same resolver: its
// host and its address, or who operates them.
func (e Endpoint) identities() []string {
	var ids []string
	if e.Host != "" {
		ids = append(ids, e.Host)
		for name, o := range operators {
			if o.named(e.Host) {
				ids = append(ids, name)
			}
		}
	}
	if !e.Addr.IsValid() {
		return ids
	}
	addr := e.Addr.Unmap()
	for name, o := range operators {
		if o.at(addr) {
			ids = append(ids, name)
		}
	}
	if e.Port != defaultPort[e.Transport] {
		// Whoever serves at an odd port need not be the one at the usual one.
		return append(ids, netip.AddrPortFrom(addr, e.Port).String())
	}
	return append(ids, addr.String())
}

func (o operator) named(host string) bool {
	for _, domain := range o.domains {
		if dnsname.Within(host, domain) {
			return true
		}
	}
	return false
}

func (o operator) at(addr netip.Addr) bool {
	for _, p := range o.prefixes {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

package persist

import (
	"fmt"
	"strings"

	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"

	"github.com/certhook/certhook/pkg/dnsname"
)

// ParseIssuer brings an issuer domain name into the form that records of CAs are compared in
// (draft-ietf-acme-dns-persist, section 9.2): lower case, NFC, A-labels, without a trailing dot. Beyond that it has to
// be a host name (RFC 8659, section 4.2), since no CA is called anything else. The error says why it is not.
func ParseIssuer(s string) (string, error) {
	name, err := normalize(s)
	if err == nil {
		name, err = dnsname.ParseHost(name)
	}
	if err != nil {
		return "", fmt.Errorf("%q is no issuer domain name: %w", s, err)
	}
	return name, nil
}

// normalize is Boulder's core.NormalizeIssuerDomainName: what it lets pass is more than host names.
func normalize(name string) (string, error) {
	name, err := idna.Lookup.ToASCII(norm.NFC.String(strings.ToLower(name)))
	if err != nil {
		return "", fmt.Errorf("converting issuer domain name %q to ASCII: %w", name, err)
	}
	name = strings.TrimSuffix(name, ".")
	if len(name) > dnsname.MaxName {
		return "", fmt.Errorf("issuer domain name %q exceeds 253 octets (%d)", name, len(name))
	}
	return name, nil
}

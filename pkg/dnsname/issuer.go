package dnsname

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"
)

// ParseIssuer is [ParseHost] for the name that a CA has in CAA records and in those of dns-persist-01, in the form
// that CAs compare (draft-ietf-acme-dns-persist, section 9.2): lower case, NFC, A-labels, without a trailing dot. It
// refuses in addition what IDNA2008 does, such as hyphens in the third and fourth place or A-labels that decode to
// nothing, since a CA that normalises a record can never find such a name equal to its own.
func ParseIssuer(s string) (string, error) {
	name, err := NormalizeIssuer(s)
	if err == nil && strings.HasSuffix(name, ".") && name != "." {
		err = errors.New("it ends in two dots") // of which one is left
	} else if _, plain := ParseHost(s); plain != nil {
		return "", plain // about the name as it was written, which says more
	} else if err == nil {
		name, err = ParseHost(name)
	}
	if err != nil {
		return "", fmt.Errorf("%q is no name of a CA: %w", s, err)
	}
	return name, nil
}

// NormalizeIssuer is what Boulder does to an issuer domain name before it compares (core.NormalizeIssuerDomainName,
// errors included). More than host names passes.
func NormalizeIssuer(name string) (string, error) {
	name, err := idna.Lookup.ToASCII(norm.NFC.String(strings.ToLower(name)))
	if err != nil {
		return "", fmt.Errorf("converting issuer domain name %q to ASCII: %w", name, err)
	}
	name = strings.TrimSuffix(name, ".")
	if len(name) > MaxName {
		return "", fmt.Errorf("issuer domain name %q exceeds %d octets (%d)", name, MaxName, len(name))
	}
	return name, nil
}

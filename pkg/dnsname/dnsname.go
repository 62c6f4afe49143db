// Package dnsname handles domain names as plain strings in one canonical form: lower-case A-labels
// (RFC 5890), no trailing dot, never empty. Every other package passes names in this form, so that ==
// compares them and suffixes match on label boundaries only.
package dnsname

import (
	"fmt"
	"iter"
	"net/netip"
	"strings"

	"golang.org/x/net/idna"
)

// Limits of RFC 1035, section 2.3.4, in octets of the presentation form without a trailing dot.
const (
	MaxLabel = 63
	MaxName  = 253
)

// profile maps a name as a look-up would (UTS 46, case folding included) and leaves underscores alone.
var profile = idna.New(idna.MapForLookup(), idna.Transitional(false), idna.StrictDomainName(false), idna.BidiRule())

// Parse brings a domain name into canonical form. It accepts upper case, one trailing dot, U-labels and
// underscores, and refuses wildcards, empty or over-long labels, over-long names and characters outside
// letters, digits, hyphen and underscore. The error quotes the name.
func Parse(s string) (string, error) {
	name := strings.TrimSuffix(s, ".")
	if name == "" {
		return "", fmt.Errorf("%q is not a domain name: it is empty", s)
	}
	ascii := strings.ToLower(name)
	if !isASCII(name) {
		var err error
		if ascii, err = profile.ToASCII(name); err != nil {
			return "", fmt.Errorf("%q is not a domain name: %w", s, err)
		}
	}
	for label := range strings.SplitSeq(ascii, ".") {
		if err := checkLabel(label); err != nil {
			return "", fmt.Errorf("%q is not a domain name: %w", s, err)
		}
	}
	if len(ascii) > MaxName {
		return "", fmt.Errorf("%q is not a domain name: it has %d octets, at most %d are allowed", s, len(ascii), MaxName)
	}
	return ascii, nil
}

// ParseHost is [Parse] for a name that a certificate can hold: a host name of letters, digits and
// hyphens (RFC 1123, section 2.1), not an IP address.
func ParseHost(s string) (string, error) {
	if _, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return "", fmt.Errorf("%q is an IP address, not a domain name", s)
	}
	name, err := Parse(s)
	if err != nil {
		return "", err
	}
	for label := range strings.SplitSeq(name, ".") {
		switch {
		case strings.Contains(label, "_"):
			return "", fmt.Errorf("%q is not a host name: %q has an underscore", s, label)
		case strings.HasPrefix(label, "-"), strings.HasSuffix(label, "-"):
			return "", fmt.Errorf("%q is not a host name: %q begins or ends with a hyphen", s, label)
		}
	}
	return name, nil
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r > 0x7e }) < 0
}

func checkLabel(label string) error {
	switch {
	case label == "":
		return fmt.Errorf("it has an empty label")
	case label == "*":
		return fmt.Errorf("it has a wildcard label")
	case len(label) > MaxLabel:
		return fmt.Errorf("label %q has %d octets, at most %d are allowed", label, len(label), MaxLabel)
	}
	for _, c := range []byte(label) {
		if c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return fmt.Errorf("label %q has the character %q", label, c)
		}
	}
	return nil
}

// Within reports whether name is zone itself or lies below it.
func Within(name, zone string) bool {
	return name == zone || Below(name, zone)
}

// Below reports whether name lies below zone; a name is not below itself.
func Below(name, zone string) bool {
	return strings.HasSuffix(name, "."+zone)
}

// Relative returns name without the suffix zone, "@" for the apex. ok is false when name is not within zone.
func Relative(name, zone string) (rel string, ok bool) {
	if name == zone {
		return "@", true
	}
	return strings.CutSuffix(name, "."+zone)
}

// Parent returns name without its first label, or "" for a top-level name.
func Parent(name string) string {
	_, parent, _ := strings.Cut(name, ".")
	return parent
}

// Ancestors yields name itself, then each name above it, the top-level name last.
func Ancestors(name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for ; name != ""; name = Parent(name) {
			if !yield(name) {
				return
			}
		}
	}
}

// ChallengeLabel is the label under which a CA looks for the TXT of dns-01 (RFC 8555, section 8.4).
const ChallengeLabel = "_acme-challenge"

// Challenge returns the name at which a CA looks for the dns-01 TXT of domain.
func Challenge(domain string) string {
	return ChallengeLabel + "." + domain
}

// PersistLabel is the label under which a CA looks for the TXT of dns-persist-01 (draft-ietf-acme-dns-persist).
const PersistLabel = "_validation-persist"

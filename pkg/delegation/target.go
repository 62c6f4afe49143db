// Package delegation knows where a domain's dns-01 value has to be written so that the credential in use
// reaches an alias zone only, and whether the CNAME that leads a CA from the served domain to that place
// stands as it must.
package delegation

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"slices"
	"strings"

	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/pkg/fault"
)

// Settings is how the operator delegates. All names are canonical.
type Settings struct {
	Aliases []string          // alias zones, the first for every domain not named below; none: no delegation
	Pins    map[string]string // domain → record, for that domain alone
	Zones   map[string]string // domain → alias zone, for the domain and what is below it; the longest domain wins
	Hashed  bool              // one hashed label instead of the domain's name
}

// Target is the place of one domain's challenge.
type Target struct {
	Domain    string // what the certificate is for, without a wildcard label
	Challenge string // where a CA looks: _acme-challenge.<Domain>
	Record    string // where the TXT belongs; equal to Challenge without delegation
	Alias     string // the alias zone that Record lies in; "" without delegation
}

// Line returns the CNAME that must lead from Challenge to Record, as a zone file has it; "" without
// delegation.
func (t Target) Line() string {
	if t.Alias == "" {
		return ""
	}
	return fmt.Sprintf("%s. CNAME %s.", t.Challenge, t.Record)
}

// Target works out the place for a domain, which need not be canonical, from the settings alone. The
// error is of kind Usage: the domain is no host name, a name gets too long, or the alias zone would be
// the domain's own.
func (s Settings) Target(domain string) (Target, error) {
	name, err := dnsname.ParseHost(domain)
	if err != nil {
		return Target{}, fault.Errorf(fault.Usage, "find the challenge record: %w", err)
	}
	t := Target{Domain: name, Challenge: dnsname.Challenge(name)}
	if len(t.Challenge) > dnsname.MaxName {
		return Target{}, fault.Errorf(fault.Usage, "%q is too long for dns-01: %q has %d octets, at most %d are allowed",
			name, t.Challenge, len(t.Challenge), dnsname.MaxName)
	}
	if pin, ok := s.Pins[name]; ok {
		t.Record, t.Alias = pin, s.holder(pin)
		if t.Alias == "" {
			return Target{}, fault.Errorf(fault.Usage, "the record %q pinned for %q lies below none of the alias zones", pin, name).
				WithHint("name its alias zone in ACME_CHALLENGE_ALIAS, or correct ACME_CHALLENGE_MAP")
		}
	} else if t.Alias = s.alias(name); t.Alias == "" {
		t.Record = t.Challenge
		return t, nil
	} else if t.Record = s.label(t) + "." + t.Alias; len(t.Record) > dnsname.MaxName {
		return Target{}, s.tooLong(t)
	}
	if dnsname.Within(name, t.Alias) {
		return Target{}, fault.Errorf(fault.Usage, "the alias zone %q is the served domain %q itself or above it: its credential would reach more than challenges", t.Alias, name).
			WithHint("set ACME_CHALLENGE_ALIAS to a zone that holds nothing else")
	}
	return t, nil
}

// alias returns the alias zone chosen for a domain, or "".
func (s Settings) alias(domain string) string {
	for name := range dnsname.Ancestors(domain) {
		if zone, ok := s.Zones[name]; ok {
			return zone
		}
	}
	if len(s.Aliases) > 0 {
		return s.Aliases[0]
	}
	return ""
}

// holder returns the longest alias zone that a record lies below, or "". At the apex of one, a value could
// be written but not removed again, so that apex is below no zone, not even another alias zone.
func (s Settings) holder(record string) string {
	for name := range dnsname.Ancestors(record) {
		if s.isAlias(name) {
			if name == record {
				return ""
			}
			return name
		}
	}
	return ""
}

// isAlias reports whether name is an alias zone.
func (s Settings) isAlias(name string) bool {
	if slices.Contains(s.Aliases, name) {
		return true
	}
	for _, zone := range s.Zones {
		if zone == name {
			return true
		}
	}
	return false
}

// label returns what comes before the alias zone in a record.
func (s Settings) label(t Target) string {
	if !s.Hashed {
		return t.Challenge
	}
	sum := sha256.Sum256([]byte(t.Domain))
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:]))
}

func (s Settings) tooLong(t Target) error {
	err := fault.Errorf(fault.Usage, "the challenge record of %q is too long: %q has %d octets, at most %d are allowed",
		t.Domain, t.Record, len(t.Record), dnsname.MaxName)
	if s.Hashed {
		return err.WithHint("choose a shorter alias zone")
	}
	return err.WithHint("set ACME_CHALLENGE_LABEL=hashed, and replace the CNAME of every domain by the one that it then needs")
}

// Package persist is the validation record of dns-persist-01 (draft-ietf-acme-dns-persist): a TXT that stays, and
// by which one account of one CA may have certificates for a name without a credential for its DNS. Records are
// written strictly and read exactly as Boulder reads them, which Let's Encrypt runs.
//
// The method is experimental, and its drafts differ in what the record holds: see [Draft].
package persist

import (
	"fmt"
	"slices"
	"strings"

	"github.com/certhook/certhook/pkg/dnsname"
)

// Draft is the draft of the method that a record is written for.
type Draft string

const (
	// Draft01 has the account's URL in the record, for everybody to read.
	Draft01 Draft = "01"
	// Draft02 has a hash of it there: see [HashedAccount].
	Draft02 Draft = "02"
)

// Drafts are those known, the default first.
var Drafts = []Draft{Draft01, Draft02}

// ParseDraft takes a draft's number, with or without its leading zero or hyphen.
func ParseDraft(s string) (Draft, error) {
	number := strings.TrimLeft(s, "-0")
	for _, d := range Drafts {
		if number == string(d[1:]) {
			return d, nil
		}
	}
	return "", fmt.Errorf("%q is no draft of dns-persist-01 that is known here: 01 and 02 are", s)
}

func (d Draft) known() bool { return slices.Contains(Drafts, d) }

// Owner returns the name at which a CA looks for the record of a domain: the same for it and for its wildcard.
func Owner(domain string) string {
	return dnsname.PersistLabel + "." + strings.TrimPrefix(domain, "*.")
}

package caa

import (
	"net/url"
	"slices"
)

// letsEncrypt are the hosts of Let's Encrypt's servers, production and staging.
var letsEncrypt = []string{"acme-v02.api.letsencrypt.org", "acme-staging-v02.api.letsencrypt.org"}

// KnownIssuer returns what the CA with that directory URL is called in CAA records where that need not be
// asked of it, and "" for all others.
func KnownIssuer(directory string) string {
	if u, err := url.Parse(directory); err == nil && slices.Contains(letsEncrypt, u.Host) {
		return "letsencrypt.org"
	}
	return ""
}

package persist

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

// HashedAccount returns the accounturi of draft -02: the prefix that the directory names as accountHashPrefix, and
// a hash over the domain, the RFC 7638 thumbprint of the account's key in base64url, and the account's URL. The
// domain is without "*."; "*" makes a value that is the same for all domains.
func HashedAccount(prefix, domain, thumbprint, account string) string {
	if domain != "*" {
		domain = strings.TrimPrefix(domain, "*.")
	}
	sum := sha256.Sum256([]byte(string([]byte{byte(len(domain))}) + domain + thumbprint + account))
	return prefix + "sha-256/" + base64.RawURLEncoding.EncodeToString(sum[:])
}

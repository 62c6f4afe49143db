package persist

import "testing"

// The vector that clients of draft -02 agree on.
func TestHashedAccount(t *testing.T) {
	const (
		prefix     = "https://ca.example/hashed/"
		thumbprint = "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"
		account    = "https://ca.example/acct/123"
	)
	for domain, want := range map[string]string{
		"example.com":   "5SQm7n6tPh2-PlLbCKGnViTXX5z19SCN4cPGQHSk-kw",
		"*.example.com": "5SQm7n6tPh2-PlLbCKGnViTXX5z19SCN4cPGQHSk-kw",
		"*":             "NpDnSwUthQK8zCgFdefYxAdAVPnygMLbs9US6oO-5ug",
	} {
		if got := HashedAccount(prefix, domain, thumbprint, account); got != prefix+"sha-256/"+want {
			t.Errorf("HashedAccount(%q) = %q, want …%s", domain, got, want)
		}
	}
}

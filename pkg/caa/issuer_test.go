package caa

import "testing"

func TestKnownIssuer(t *testing.T) {
	for directory, want := range map[string]string{
		"https://acme-v02.api.letsencrypt.org/directory":            us,
		"https://acme-staging-v02.api.letsencrypt.org/directory":    us,
		"https://ca.example/acme-v02.api.letsencrypt.org":           "",
		"https://acme-v02.api.letsencrypt.org.ca.example/directory": "",
		"https://acme-v02.api.letsencrypt.org:8443/directory":       "",
		"": "",
	} {
		if got := KnownIssuer(directory); got != want {
			t.Errorf("%s: %q, want %q", directory, got, want)
		}
	}
}

package certbot

import (
	"strings"
	"testing"
)

func TestForeign(t *testing.T) {
	const (
		prod    = "https://acme-v02.api.letsencrypt.org/directory"
		staging = "https://acme-staging-v02.api.letsencrypt.org/directory"
	)
	tests := []struct {
		name, account, server string
		says                  []string // nothing where it is the server's
	}{
		{name: "production", account: "https://acme-v02.api.letsencrypt.org/acme/acct/1", server: prod},
		{name: "production by its older name", account: "https://acme-v01.api.letsencrypt.org/acme/reg/1", server: prod},
		{name: "staging", account: "https://acme-staging-v02.api.letsencrypt.org/acme/acct/1", server: staging},
		{name: "upper case", account: "https://CA.example:14000/acct/1", server: "https://ca.example:14000/dir"},
		{
			name: "staging's at production", account: "https://acme-staging-v02.api.letsencrypt.org/acme/acct/1", server: prod,
			says: []string{"of Let's Encrypt's staging server", "set ACME_STAGING=true"},
		},
		{
			name: "production's at staging", account: "https://acme-v02.api.letsencrypt.org/acme/acct/1", server: staging,
			says: []string{"of Let's Encrypt's production server", "take ACME_STAGING and ACME_SERVER out"},
		},
		{name: "another CA's", account: "https://ca.example/acct/1", server: prod, says: []string{"of ca.example", "set ACME_SERVER"}},
		{name: "another port", account: "https://ca.example:1/acct/1", server: "https://ca.example:2/dir", says: []string{"of ca.example:1", "https://ca.example:2/dir"}},
	}
	for _, tt := range tests {
		got := Foreign(tt.account, tt.server)
		if len(tt.says) == 0 && got != "" {
			t.Errorf("%s: %s", tt.name, got)
		}
		for _, text := range tt.says {
			if !strings.Contains(got, text) {
				t.Errorf("%s: %q is not in %q", tt.name, text, got)
			}
		}
	}
}

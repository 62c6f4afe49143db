package main

import (
	"testing"

	"github.com/certhook/certhook/cmd/internal/man"
)

func TestManPage(t *testing.T) {
	man.Check(t, newApp(nil), 8, "persist-issue.8", man.PersistKeys, `# FILES

**/var/lib/certhook/accounts/SERVER/accounts.json**
: persist-issue's own ACME accounts with their keys, mode 0600; back it up, since records name an account

**/var/lib/certhook/live/LINEAGE**
: link to the folder with the certificate in use: cert.pem, chain.pem, fullchain.pem and privkey.pem (0600), switched at one instant

**/var/lib/certhook/archive/LINEAGE**, **/var/lib/certhook/renewal/LINEAGE.json**
: every certificate so far; what a renewal has to know, and beside it, until it is there, the order of a certificate with its key

**/etc/letsencrypt**
: certbot's accounts, one of which may be used; no lineage there may have the name of one here

**/etc/certhook/certhook.env**
: settings; no DNS credential belongs there on account of persist-issue

**/var/log/certhook/certhook.log**
: what was missed, and why something failed

# EXAMPLES

Once:

	persist-issue register --email you@example.com
	persist-issue records -d svc.example.com -d '*.svc.example.com'

When the records stand:

	persist-issue issue -d svc.example.com -d '*.svc.example.com'
	systemd-run --on-calendar='*-*-* 00/6:00:00' sh -c 'persist-issue renew; haproxy-apply'

# SEE ALSO

**dnsguide**(1), **haproxy-apply**(8), **certbot**(1)
`)
}

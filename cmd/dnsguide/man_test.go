package main

import (
	"testing"

	"github.com/certhook/certhook/cmd/internal/man"
)

func TestManPage(t *testing.T) {
	app := newApp(nil)
	app.UsageText = "dnsguide records {-d NAME... | --from-certbot} [--zonefile | --json] [OPTION...]\n" +
		"dnsguide verify {-d NAME... | --from-certbot} [--mode once|wait|print|webhook] [OPTION...]\n" +
		"dnsguide account [--json]\n" +
		"dnsguide scope {-d NAME... | --from-certbot} [--json]\n" +
		"dnsguide explain [--json] NAME [TYPE]\n" +
		"dnsguide --check-config"
	man.Check(t, app, 1, "dnsguide.1", man.GuideKeys, `# FILES

**/etc/certhook/certhook.env**
: settings; those of the hooks are among them, so that one file serves all

**/etc/letsencrypt/accounts**, **/etc/letsencrypt/renewal**
: where certbot's ACME account and its certificates' names are read

**/var/lib/certhook/accounts**, **/var/lib/certhook/renewal**
: where those of persist-issue are read

# EXAMPLES

Print what to create, as a zone file to import, for all that certbot renews by manual hooks:

	dnsguide records --from-certbot --zonefile

Have an installation wait until somebody has created it, for half an hour at most:

	dnsguide verify -d svc.example.com --mode wait --timeout 30m

Print what persist-issue needs for a name and its wildcard, for an account that need not be on this machine:

	dnsguide records --challenge dns-persist-01 --account-uri URI -d svc.example.com -d '*.svc.example.com'

Ask why a challenge is not seen:

	dnsguide explain _acme-challenge.svc.example.com

# SEE ALSO

**auth-hook**(8), **cleanup-hook**(8), **persist-issue**(8), **certbot**(1)
`)
}

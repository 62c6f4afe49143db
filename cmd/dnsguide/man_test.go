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

# EXAMPLES

Print what to create, as a zone file to import, for all that certbot renews by manual hooks:

	dnsguide records --from-certbot --zonefile

Have an installation wait until somebody has created it, for half an hour at most:

	dnsguide verify -d svc.example.com --mode wait --timeout 30m

Ask why a challenge is not seen:

	dnsguide explain _acme-challenge.svc.example.com

# SEE ALSO

**auth-hook**(8), **cleanup-hook**(8), **certbot**(1)
`)
}

package main

import (
	"testing"

	"github.com/certhook/certhook/cmd/internal/man"
)

func TestManPage(t *testing.T) {
	man.Check(t, newApp(nil), 8, "haproxy-apply.8", man.ApplyKeys, `# FILES

**/etc/letsencrypt/live**, **/var/lib/certhook/live**
: the lineages; one name in both is refused

**/etc/haproxy/certs/LINEAGE.pem**
: what HAProxy loads: certificate, chain and key; mode 0600, or 0640 with HAPROXY_GROUP. Where there is a bundle in its
place, LINEAGE.pem.rsa and LINEAGE.pem.ecdsa, the lineages LINEAGE and LINEAGE-rsa or LINEAGE-ecdsa have their halves

**/etc/haproxy/certs/LINEAGE.pem.ocsp**, **.issuer**, **.sctl**
: never written; where there is one, HAProxy is reloaded, after its own check of what belongs together

**/var/lib/certhook/haproxy**
: the lock, the files that a reload is about to replace, and for which certificates --then has had success

**/etc/certhook/certhook.env**
: settings

**/var/log/certhook/certhook.log**
: what was done, and why something failed

# EXAMPLES

Have certbot call it, and a timer as well, since certbot calls no hook twice:

	certbot reconfigure --cert-name svc.example.com --deploy-hook /usr/local/bin/haproxy-apply
	systemd-run --on-calendar=hourly /usr/local/bin/haproxy-apply

Watch it:

	haproxy-apply status --warn-days 14 --metrics /var/lib/prometheus/node-exporter/certhook.prom

# SEE ALSO

**haproxy**(1), **certbot**(1), **auth-hook**(8)
`)
}

package main

import (
	"testing"

	"github.com/certhook/certhook/cmd/internal/man"
)

func TestManPage(t *testing.T) {
	man.Check(t, newApp(nil), 8, "haproxy-apply.8", man.ApplyKeys, `# SEVERAL FAILURES

One lineage stops no other. Where several things fail all are told, the worst first, and it decides the exit status: 10, 13, 1, 3, 15, 4, 14.
A COMMAND of --then that fails is 1, whatever its own exit status; it runs for what HAProxy serves, also where other lineages have failed.

# METRICS

status --metrics writes them whether HAProxy answers or not, within --timeout. A file that is not written any more shows by its time.

**certhook_haproxy_served{lineage="NAME"}**
: 1 if HAProxy is known to serve what the lineage has; alert on 0

**certhook_haproxy_looked**
: 0 if HAProxy could not be looked at: it hangs, or its configuration cannot be read. HAProxy being down is a look

**certhook_certificate_not_after_seconds{lineage="NAME"}**
: end of the lineage's certificate, in Unix time; 0 if there is none that can be read

**certhook_haproxy_checked_seconds**
: time of the look

# FILES

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

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/certhook/certhook/tests/haproxytest"
	"github.com/certhook/certhook/tests/lab"
)

// startHAProxy has a HAProxy serve a certificate of nobody's, and makes it the one that haproxy-apply is about.
func (d *demo) startHAProxy() {
	d.haproxy = haproxytest.New(d.tb, haproxytest.Options{})
	first := haproxytest.NewAuthority(d.tb).Issue(haproxytest.Wish{}, "nobody.test")
	if err := os.WriteFile(filepath.Join(d.haproxy.CertDir, "000-nobody.pem"), append(first.Chain(), first.PrivateKey...), 0o600); err != nil {
		d.tb.Fatalf("demo: %v", err)
	}
	d.haproxy.Start()
	d.lab.Configure(map[string]string{
		"HAPROXY_CERT_DIR": d.haproxy.CertDir, "HAPROXY_CONFIG": d.haproxy.Config, "HAPROXY_PIDFILE": d.haproxy.PIDFile,
	})
}

// served tells which certificate HAProxy shows for a name, as a client sees it.
func (d *demo) served(name string) string {
	return fmt.Sprintf("%X", d.haproxy.Served(name)[0].SerialNumber)
}

// onDisk is the serial of what certbot has for a lineage.
func (d *demo) onDisk(names []string) string {
	cert, err := d.certificate(names)
	if err != nil {
		d.tb.Fatalf("demo: %v", err)
	}
	return fmt.Sprintf("%X", cert.SerialNumber)
}

// apply runs haproxy-apply, and tells what it says.
func (d *demo) apply() error {
	d.story.act("$ haproxy-apply")
	_, err := d.try(func(line string) {
		line = strings.ReplaceAll(line, d.haproxy.Dir, "…")
		for _, l := range wrap(line, width-2) {
			d.story.say("  " + l)
		}
	}, lab.Hook("haproxy-apply"))
	return err
}

// serve brings the certificates to HAProxy: at first against a broken configuration, then by a run that nothing but a
// timer causes, and, once renewed, without any reload.
func (d *demo) serve() {
	d.startHAProxy()
	d.haproxy.Break()
	d.story.act("HAProxy is to serve them. Its configuration is broken on purpose, so that it cannot reload:")
	err := d.apply()
	d.healed = append(d.healed, differs(true, err != nil)...)
	d.healed = append(d.healed, differs(false, d.served(single[0]) == d.onDisk(single))...)
	d.haproxy.Mend()
	d.story.say("", "Mended. Nobody calls certbot; the next run of a timer is enough:")
	if err := d.apply(); err != nil {
		d.tb.Fatalf("demo: haproxy-apply failed: %v", err)
	}
	d.before = d.served(single[0])
	d.healed = append(d.healed, differs(d.onDisk(single), d.before)...)
	d.story.say(fmt.Sprintf("  a client asks for %s and gets serial %s", single[0], d.before))
}

// serveRenewed brings the renewed certificates there.
func (d *demo) serveRenewed() {
	probe := d.haproxy.Probe(single[0])
	if err := d.apply(); err != nil {
		d.tb.Fatalf("demo: haproxy-apply failed: %v", err)
	}
	d.story.say(fmt.Sprintf("  a client asks for %s and gets serial %s", single[0], d.served(single[0])))
	d.probed, d.refused = probe.Stop()
}

// proveServed shows that HAProxy serves what certbot has.
func (d *demo) proveServed(p *proofs) {
	for _, l := range d.lineages {
		p.add(fmt.Sprintf("HAProxy serves %s, the renewed certificate", l.names[0]), differs(d.onDisk(l.names), d.served(l.names[0]))...)
	}
	p.add(fmt.Sprintf("it was serial %s before, and is %s now", d.before, d.served(single[0])), same(d.before, d.served(single[0]))...)
	p.add("a reload that could not be was told, and made up for by the next run", d.healed...)
	p.add(fmt.Sprintf("none of %d connections failed during the update", d.probed), d.refused...)
}

func same(a, b string) []string {
	if a == b {
		return []string{"it is the same"}
	}
	return nil
}

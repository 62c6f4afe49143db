package main

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/certhook/certhook/tests/lab"
)

// proofs are told one by one and counted.
type proofs struct {
	story  *story
	failed int
}

func (p *proofs) add(claim string, but ...string) {
	p.story.proof(claim, but)
	p.failed += min(len(but), 1)
}

// prove shows what must hold at the end, from what is on disk, in DNS and at the provider.
func (d *demo) prove() {
	d.story.act("Afterwards")
	p := &proofs{story: d.story}
	for _, l := range d.lineages {
		names := strings.Join(l.names, " and ")
		switch cert, err := d.certificate(l.names); {
		case err != nil:
			p.add("certificate for "+names, err.Error())
		case cert.SerialNumber.Cmp(l.first.SerialNumber) == 0:
			p.add("certificate for "+names+", renewed", "it is still the first one")
		default:
			p.add("certificate for " + names + ", renewed, valid until " + cert.NotAfter.Format(time.DateOnly))
		}
	}
	d.proveServed(p)
	d.proveHarmless(p)
	d.conclude(p)
}

// proveHarmless shows what must hold whatever happened.
func (d *demo) proveHarmless(p *proofs) {
	left, gone := d.txt()
	p.add(fmt.Sprintf("no TXT of ours is left in any of the %d zones", len(lab.Zones())), left...)
	answers, gaps := d.watch.foreignSeen()
	p.add(fmt.Sprintf("somebody else's TXT is still at both names, and was in every one of %d answers", answers), append(gone, gaps...)...)

	var outside []string
	for _, c := range d.lab.API.OutsideZone(lab.AliasZone) {
		outside = append(outside, strings.TrimSpace(apiLine([]apiCall{{Call: c}})))
	}
	p.add(fmt.Sprintf("none of the %d requests to the API was about a zone other than %s", len(d.lab.API.Calls()), lab.AliasZone), outside...)

	files, leaks := d.leaks()
	p.add(fmt.Sprintf("the token is in no output and in none of the %d files that were written", files), leaks...)
}

// conclude ends the demo, and fails it if a proof has.
func (d *demo) conclude(p *proofs) {
	if p.failed > 0 {
		d.tb.Fatalf("demo: %d of these do not hold", p.failed)
	}
	d.story.say(fmt.Sprintf("%.0f s; none of this stays on the machine", time.Since(d.story.began).Seconds()))
}

// certificate returns the certificate of the lineage for names if it is for these and from the lab's CA.
func (d *demo) certificate(names []string) (*x509.Certificate, error) {
	chain, err := os.ReadFile(filepath.Join(lab.CertbotDir, "live", names[0], "fullchain.pem"))
	if err != nil {
		return nil, err
	}
	block, rest := pem.Decode(chain)
	if block == nil {
		return nil, fmt.Errorf("no certificate in %q", chain)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, err
	}
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	roots.AppendCertsFromPEM(d.lab.CA.IssuingRoot)
	between.AppendCertsFromPEM(rest)
	if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between}); err != nil {
		return nil, err
	}
	if got := slices.Sorted(slices.Values(cert.DNSNames)); !slices.Equal(got, slices.Sorted(slices.Values(names))) {
		return nil, fmt.Errorf("it is for %q", got)
	}
	return cert, nil
}

// txt returns the TXT records in any zone that are not somebody else's, and those of his that are gone.
func (d *demo) txt() (left, gone []string) {
	gone = slices.Clone(d.records)
	for _, zone := range lab.Zones() {
		for name, values := range d.lab.World.AllTXT(zone) {
			for _, v := range values {
				i := slices.Index(gone, name)
				if v != foreign || i < 0 {
					left = append(left, name+" TXT "+v)
					continue
				}
				gone = slices.Delete(gone, i, i+1)
			}
		}
	}
	return left, gone
}

// leaks searches what was printed and every file that certbot and the hooks wrote for the token.
func (d *demo) leaks() (files int, found []string) {
	found, files, err := lab.FilesWithToken(lab.Written()...)
	if err != nil {
		found = append(found, err.Error())
	}
	if lab.ShowsToken(d.printed) {
		found = append(found, "what was printed")
	}
	return files, found
}

package main

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/certhook/certhook/tests/lab"
)

// prove shows what must hold at the end, from what is on disk, in DNS and at the provider.
func (d *demo) prove() {
	d.story.act("Afterwards")
	failed := 0
	proof := func(holds bool, format string, args ...any) {
		if !holds {
			failed++
		}
		d.story.proof(holds, fmt.Sprintf(format, args...))
	}

	for _, l := range d.lineages {
		cert, err := d.certificate(l.names)
		if err != nil {
			proof(false, "certificate for %s: %v", strings.Join(l.names, " and "), err)
			continue
		}
		proof(cert.SerialNumber.Cmp(l.first.SerialNumber) != 0, "certificate for %s, renewed, valid until %s",
			strings.Join(l.names, " and "), cert.NotAfter.Format(time.DateOnly))
	}

	ours, theirs := d.txt()
	proof(len(ours) == 0, "%s", count("no TXT of ours is left in any of the %d zones", len(lab.Zones()), ours))
	answers, gaps := d.watch.foreignSeen()
	proof(theirs == len(d.records) && len(gaps) == 0,
		"%s", count("somebody else's TXT is still at both names, and was in every one of %d answers", answers, gaps))

	var outside []string
	for _, c := range d.lab.API.OutsideZone(lab.AliasZone) {
		outside = append(outside, c.Method+" "+c.Path)
	}
	proof(len(outside) == 0, "%s", count("none of the %d requests to the API was about a zone other than "+lab.AliasZone,
		len(d.lab.API.Calls()), outside))

	files, leaks := d.leaks()
	proof(len(leaks) == 0 && files > 0, "%s", count("the token is in no output and in none of the %d files that were written", files, leaks))
	if failed > 0 {
		d.tb.Fatalf("demo: %d of these do not hold", failed)
	}
}

// count is a claim about so many things, followed by what contradicts it.
func count(claim string, n int, but []string) string {
	s := fmt.Sprintf(claim, n)
	if len(but) > 0 {
		s += "; but: " + strings.Join(but, ", ")
	}
	return s
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

// txt returns the TXT records in any zone that are not somebody else's, and at how many of our names his
// are.
func (d *demo) txt() (ours []string, theirs int) {
	for _, zone := range lab.Zones() {
		for name, values := range d.lab.World.AllTXT(zone) {
			for _, v := range values {
				if v == foreign && slices.Contains(d.records, name) {
					theirs++
				} else {
					ours = append(ours, name)
				}
			}
		}
	}
	return ours, theirs
}

// leaks searches what was printed and every file that certbot and the hooks wrote for the token or a good
// part of it.
func (d *demo) leaks() (files int, found []string) {
	if leaks(d.printed) {
		found = append(found, "what was printed")
	}
	for _, root := range []string{lab.CertbotDir, lab.CertbotLogs, lab.StateDir, filepath.Dir(lab.HookLog), os.TempDir()} {
		err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			text, err := os.ReadFile(path)
			if leaks(text) {
				found = append(found, path)
			}
			files++
			return err
		})
		if err != nil {
			found = append(found, err.Error())
		}
	}
	return files, found
}

func leaks(text []byte) bool {
	const part = 12
	for i := 0; i+part <= len(lab.Token); i++ {
		if bytes.Contains(text, []byte(lab.Token[i:i+part])) {
			return true
		}
	}
	return false
}

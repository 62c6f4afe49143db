package haproxy

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/certhook/certhook/pkg/fault"
)

// HAProxy takes more for one certificate than the file that its configuration names (ssl-load-extra-files in its
// configuration manual). Where there is no such file it loads a bundle, a file for each type of key: NAME.rsa,
// NAME.ecdsa, NAME.dsa. Beside each file it looks for what belongs to the certificate: NAME.ocsp, NAME.issuer, NAME.sctl.

// halves are the ends of the names of a bundle's files.
var halves = []string{"rsa", "ecdsa", "dsa"}

// half is the one for a certificate, "" where bundles have none for its key.
func half(leaf *x509.Certificate) string {
	switch leaf.PublicKey.(type) {
	case *rsa.PublicKey:
		return "rsa"
	case *ecdsa.PublicKey:
		return "ecdsa"
	}
	return ""
}

// isBundle reports whether there is no file of this name, but a half of a bundle.
func isBundle(file string) bool {
	there := func(path string) bool { _, err := os.Stat(path); return err == nil }
	return !there(file) && slices.ContainsFunc(halves, func(h string) bool { return there(file + "." + h) })
}

// stem takes the type of the key off the name of a lineage, as those are called that share a name: a.test-rsa.
func stem(lineage, half string) (string, bool) {
	for _, mark := range []string{"-", "."} {
		if stem, ok := strings.CutSuffix(lineage, mark+half); ok && stem != "" && half != "" {
			return stem, true
		}
	}
	return "", false
}

// place is the file for a lineage's certificate: <lineage>.pem, or its half of the bundle of this name. A new
// <lineage>.pem would have HAProxy pass over the bundle, and so over the other half.
func (a *Applier) place(lineage string, leaf *x509.Certificate) (string, error) {
	file := filepath.Join(a.CertDir, lineage+".pem")
	h := half(leaf)
	if isBundle(file) {
		if h == "" {
			return "", fault.Errorf(fault.Usage, "HAProxy's %q is a bundle of files by the type of key, and there is none for a key like that of %q", file, lineage).
				WithHint("have a certificate with an RSA or an ECDSA key issued (certbot's --key-type), or remove the bundle")
		}
		return file + "." + h, nil
	}
	if stem, ok := stem(lineage, h); ok {
		if other := filepath.Join(a.CertDir, stem+".pem"); isBundle(other) {
			return other + "." + h, nil
		}
	}
	return file, nil
}

// places are all files that place can name.
func (a *Applier) places(lineage string) []string {
	file := filepath.Join(a.CertDir, lineage+".pem")
	files := []string{file}
	for _, h := range halves {
		files = append(files, file+"."+h)
		if stem, ok := stem(lineage, h); ok {
			files = append(files, filepath.Join(a.CertDir, stem+".pem."+h))
		}
	}
	return files
}

// apart gives the states an error whose file another one has, too.
func apart(states []State) {
	owner := map[string]string{}
	for n := range states {
		s := &states[n]
		if other := owner[s.File]; other != "" && s.desired != nil {
			s.Err = fault.Errorf(fault.Usage, "the lineages %q and %q are both for %q", other, s.Name, s.File).
				WithHint("HAProxy can have one certificate there; delete or rename one of them")
		} else if s.desired != nil {
			owner[s.File] = s.Name
		}
	}
}

// companions are the files beside a certificate's that HAProxy loads with it, but for a key, which it does not look for
// as ours is in the same file.
func (i *instance) companions(file string) []string {
	var found []string
	for _, kind := range []string{"ocsp", "issuer", "sctl"} {
		if !slices.Contains(i.conf.Extra, kind) {
			continue
		}
		if _, err := os.Stat(file + "." + kind); err == nil {
			found = append(found, file+"."+kind)
		}
	}
	return found
}

// stale warns of what is beside a lineage's file and was made for another certificate. HAProxy passes over an OCSP
// response that is not for its certificate, and hands out a list of SCTs whatever it is for.
func (a *Applier) stale(i *instance, s *State) {
	for _, path := range i.companions(s.File) {
		switch filepath.Ext(path) {
		case ".ocsp":
			// What it is for is by its serial number.
			if raw, err := os.ReadFile(path); err == nil && !bytes.Contains(raw, s.desired.bundle.Leaf().SerialNumber.Bytes()) {
				a.Log.Warn("HAProxy cannot use an OCSP response that was made for another certificate; fetch a new one, or remove it",
					"file", path, "lineage", s.Name)
			}
		case ".sctl":
			a.Log.Warn("HAProxy shows the timestamps (SCTs) that were made for the certificate before; have new ones made, or remove the file",
				"file", path, "lineage", s.Name)
		}
	}
}

package certbot

import (
	"bufio"
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"path/filepath"
	"slices"
	"strings"

	"github.com/certhook/certhook/pkg/dnsname"
)

// lineage is a certificate that certbot renews.
type lineage struct {
	account string   // id
	server  string   // directory URL
	names   []string // as baseNames has them
}

// lineages reads certbot's renewal settings. What cannot be read is left out: it helps nobody to an account.
func lineages(configDir string) []lineage {
	confs, _ := filepath.Glob(filepath.Join(configDir, "renewal", "*.conf")) // the pattern is well-formed
	var all []lineage
	for _, path := range confs {
		name := strings.TrimSuffix(filepath.Base(path), ".conf")
		conf, err := readFile(path)
		if err != nil {
			continue
		}
		cert, err := readFile(filepath.Join(configDir, "live", name, "cert.pem"))
		if err != nil {
			continue
		}
		l := renewalParams(conf)
		if l.names = certificateNames(cert); len(l.names) > 0 {
			all = append(all, l)
		}
	}
	return all
}

// renewalParams reads what matters here from a renewal configuration: "key = value" lines in the section
// [renewalparams] (ConfigObj's format).
func renewalParams(conf []byte) lineage {
	var l lineage
	section := ""
	lines := bufio.NewScanner(bytes.NewReader(conf))
	lines.Buffer(nil, maxFile)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "[") {
			section = line
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok || section != "[renewalparams]" {
			continue
		}
		value = strings.Trim(strings.TrimSpace(value), `"'`)
		switch strings.TrimSpace(key) {
		case "account":
			l.account = value
		case "server":
			l.server = value
		}
	}
	return l
}

// certificateNames returns the base names of the first certificate in PEM.
func certificateNames(text []byte) []string {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil
	}
	return baseNames(cert.DNSNames)
}

// baseNames returns names in canonical form without wildcard labels, sorted, each once.
func baseNames(names []string) []string {
	var base []string
	for _, n := range names {
		n = strings.TrimPrefix(n, "*.")
		if canonical, err := dnsname.ParseHost(n); err == nil {
			n = canonical
		}
		base = append(base, n)
	}
	slices.Sort(base)
	return slices.Compact(base)
}

package certbot

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/pkg/fault"
)

// Lineage is a certificate that certbot renews.
type Lineage struct {
	Name  string   // certbot's --cert-name
	Names []string // in the certificate's order, canonical, wildcards with their "*."; none in one for IP addresses

	Server         string   // directory URL
	AccountID      string   // [Account.ID] at that server
	Authenticator  string   // "manual", "webroot", …
	AuthHook       string   // shell command of the manual authenticator, or ""
	PrefChallenges []string // such as "dns-01", the preferred first; none means no preference
}

// At reports whether certbot has the lineage from the ACME server with this directory URL.
func (l Lineage) At(server string) bool { return accountsDir("", l.Server) == accountsDir("", server) }

// Lineages reads certbot's lineages, in the order of their names. Each that cannot be read is an error of
// kind Usage instead, which names it.
func Lineages(configDir string) ([]Lineage, []error) {
	dir := filepath.Join(configDir, "renewal")
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, []error{unreadable(err, "read certbot's lineages: %w", err)}
	}
	var all []Lineage
	var errs []error
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".conf")
		if !ok {
			continue
		}
		l, err := readLineage(configDir, name)
		if err != nil {
			errs = append(errs, unreadable(err, "read certbot's lineage %q: %w", name, err))
			continue
		}
		all = append(all, l)
	}
	return all, errs
}

// unreadable makes an error with a hint from one that reading gave.
func unreadable(err error, format string, args ...any) error {
	e := fault.Errorf(fault.Usage, format, args...)
	if errors.Is(err, fs.ErrPermission) {
		e.Hint = asRoot
	}
	return e
}

func readLineage(configDir, name string) (Lineage, error) {
	path := filepath.Join(configDir, "renewal", name+".conf")
	text, err := readFile(path)
	if err != nil {
		return Lineage{}, err
	}
	conf, err := parseConf(string(text))
	if err != nil {
		return Lineage{}, fmt.Errorf("%q: %w", path, err)
	}
	path = filepath.Join(configDir, "live", name, "cert.pem")
	cert, err := readFile(path)
	if err != nil {
		return Lineage{}, err
	}
	names, err := certificateNames(cert)
	if err != nil {
		return Lineage{}, fmt.Errorf("%q: %w", path, err)
	}
	params := conf["renewalparams"]
	return Lineage{
		Name: name, Names: names,
		Server: params.text("server"), AccountID: params.text("account"),
		Authenticator: params.text("authenticator"), AuthHook: params.text("manual_auth_hook"),
		PrefChallenges: params["pref_challs"],
	}, nil
}

// certificateNames returns the names of the first certificate in PEM.
func certificateNames(text []byte) ([]string, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("there is no certificate in it")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, n := range cert.DNSNames {
		names = append(names, canonical(n))
	}
	return names, nil
}

// canonical brings a name that may be a wildcard into canonical form, and returns what is no name as it is.
func canonical(name string) string {
	base, wild := strings.CutPrefix(name, "*.")
	parsed, err := dnsname.ParseHost(base)
	switch {
	case err != nil:
		return name
	case wild:
		return "*." + parsed
	}
	return parsed
}

// baseNames returns names in canonical form without wildcard labels, sorted, each once.
func baseNames(names []string) []string {
	var base []string
	for _, n := range names {
		base = append(base, strings.TrimPrefix(canonical(n), "*."))
	}
	slices.Sort(base)
	return slices.Compact(base)
}

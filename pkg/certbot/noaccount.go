package certbot

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/certhook/certhook/pkg/fault"
)

// usage makes a *[fault.Error] of an error that knows its hint.
func usage(err interface {
	error
	hint() string
},
) error {
	return fault.Errorf(fault.Usage, "%w", err).WithHint("%s", err.hint())
}

// ErrNoAccount is what every *[NoAccount] is.
var ErrNoAccount = errors.New("there is no account")

// NoAccount is an error: certbot has no account at the server.
type NoAccount struct {
	ConfigDir string
	Server    string   // directory URL
	Elsewhere []string // directory URLs of the servers at which certbot has one
}

func (n *NoAccount) Error() string {
	if len(n.Elsewhere) == 0 {
		return "certbot has no account at " + ServerName(n.Server) + " yet"
	}
	var others []string
	for _, server := range n.Elsewhere {
		others = append(others, ServerName(server))
	}
	here := ServerName(n.Server)
	if _, ours := strings.CutPrefix(others[len(others)-1], letsEncrypt); ours {
		here = strings.Replace(here, letsEncrypt, "its", 1)
	}
	return fmt.Sprintf("certbot has an account at %s, none at %s", strings.Join(others, " and "), here)
}

// Is makes errors.Is(err, ErrNoAccount) true.
func (n *NoAccount) Is(target error) bool { return target == ErrNoAccount }

func (n *NoAccount) hint() string {
	register := "certbot register --server " + n.Server
	if host(n.Server) == stagingHost {
		register = "certbot register --staging"
	}
	if n.ConfigDir != defaultConfigDir {
		register += " --config-dir " + n.ConfigDir
	}
	register += " --agree-tos -m you@example.com"
	switch {
	case len(n.Elsewhere) == 0:
		return "run: " + register
	case host(n.Server) == stagingHost && slices.ContainsFunc(n.Elsewhere, at(productionHost)):
		return "for production, take ACME_STAGING or ACME_SERVER out of the settings; for staging, run: " + register
	case slices.ContainsFunc(n.Elsewhere, at(stagingHost)):
		return "for staging, set ACME_STAGING=true or ACME_SERVER; for this server, run: " + register
	case len(n.Elsewhere) == 1:
		return "for the other server, set ACME_SERVER=" + n.Elsewhere[0] + "; for this one, run: " + register
	}
	return "for another server, set ACME_SERVER; for this one, run: " + register
}

// defaultConfigDir is certbot's own.
const defaultConfigDir = "/etc/letsencrypt"

// SeveralAccounts is an error: certbot has more than one account at the server, and nothing says which of
// them is meant.
type SeveralAccounts []Account

func (s SeveralAccounts) Error() string {
	return fmt.Sprintf("certbot has %d accounts there, and nothing says which of them is meant: %s", len(s), strings.Join(s.URIs(), ", "))
}

func (s SeveralAccounts) hint() string { return "name the one with --account-uri" }

// URIs lists the accounts.
func (s SeveralAccounts) URIs() []string {
	var uris []string
	for _, a := range s {
		uris = append(uris, a.URI)
	}
	return uris
}

// UnreadableAccount is an error: there is an account or may be one, and it cannot be read.
type UnreadableAccount struct {
	Path string // of the account's directory, or of the one with all accounts
	Err  error
}

func (u *UnreadableAccount) Error() string {
	return fmt.Sprintf("certbot's account in %q cannot be read: %v", u.Path, u.Err)
}
func (u *UnreadableAccount) Unwrap() error { return u.Err }

func (u *UnreadableAccount) hint() string {
	if errors.Is(u.Err, fs.ErrPermission) {
		return asRoot
	}
	return "certbot cannot use this account either; restore it from a backup, or move it away and run certbot register"
}

// asRoot is the hint where certbot's files may not be read.
const asRoot = "run this as root, as certbot itself runs"

package certbot

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Account is an ACME account that certbot keeps on this machine.
type Account struct {
	ID  string // certbot's name of it, which means nothing elsewhere
	URI string // the CA's name of it (RFC 8555, section 7.1.2)
}

// ErrNoAccount means that certbot has no account at the server.
var ErrNoAccount = errors.New("there is no account")

// SeveralAccounts is an error: certbot has more than one account at the server, and nothing says which of
// them is meant.
type SeveralAccounts []Account

func (s SeveralAccounts) Error() string {
	return fmt.Sprintf("there are %d accounts: %s", len(s), strings.Join(s.URIs(), ", "))
}

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
	Path string
	Err  error
}

func (u *UnreadableAccount) Error() string {
	return fmt.Sprintf("read the account %q: %v", u.Path, u.Err)
}
func (u *UnreadableAccount) Unwrap() error { return u.Err }

// AccountFor returns the account that certbot uses for a certificate with these names at an ACME server,
// given by its directory URL: that of the lineage with the same names, or else the server's only account.
// Wildcards do not differ from their base names here, and names may be repeated, as in CERTBOT_ALL_DOMAINS.
//
// The error is [ErrNoAccount], [SeveralAccounts] or an *[UnreadableAccount].
func AccountFor(configDir, server string, names []string) (Account, error) {
	accounts, unreadable := accounts(configDir, server)
	var own []Account
	for _, l := range lineages(configDir) {
		if accountsDir(configDir, l.server) != accountsDir(configDir, server) || !slices.Equal(l.names, baseNames(names)) {
			continue
		}
		for _, u := range unreadable {
			if filepath.Base(u.Path) == l.account {
				return Account{}, u
			}
		}
		// A lineage may still name an account that was unregistered.
		for _, a := range accounts {
			if a.ID == l.account && !slices.Contains(own, a) {
				own = append(own, a)
			}
		}
	}
	accounts = distinct(accounts)
	switch {
	case len(own) == 1:
		return own[0], nil
	case len(accounts) == 1:
		return accounts[0], nil
	case len(accounts) > 1:
		return Account{}, SeveralAccounts(accounts)
	case len(unreadable) > 0:
		return Account{}, unreadable[0]
	}
	return Account{}, ErrNoAccount
}

// accountsDir is where certbot keeps the accounts at a server.
func accountsDir(configDir, server string) string {
	u, err := url.Parse(server)
	if err != nil {
		u = &url.URL{Path: server}
	}
	// Cleaned below a root of its own, so that no server leads out of the directory.
	return filepath.Join(configDir, "accounts", filepath.Clean("/"+u.Host+"/"+u.EscapedPath()))
}

// accounts reads the accounts at a server, and says which ones cannot be read. Certbot makes links where
// the server's older address had accounts.
func accounts(configDir, server string) (found []Account, unreadable []*UnreadableAccount) {
	dir := accountsDir(configDir, server)
	entries, err := os.ReadDir(dir)
	if err != nil {
		if _, there := os.Lstat(dir); there == nil || !errors.Is(err, fs.ErrNotExist) {
			unreadable = append(unreadable, &UnreadableAccount{dir, err})
		}
		return nil, unreadable
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		info, err := os.Stat(path)
		if err == nil && !info.IsDir() {
			continue
		}
		var uri string
		if err == nil {
			uri, err = accountURI(filepath.Join(path, "regr.json"))
		}
		if err != nil {
			unreadable = append(unreadable, &UnreadableAccount{path, err})
			continue
		}
		found = append(found, Account{ID: e.Name(), URI: uri})
	}
	return found, unreadable
}

// maxFile bounds what is read of one of certbot's files, in bytes.
const maxFile = 1 << 20

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFile))
}

func accountURI(path string) (string, error) {
	raw, err := readFile(path)
	if err != nil {
		return "", err
	}
	var regr struct {
		URI string `json:"uri"`
	}
	if err := json.Unmarshal(raw, &regr); err != nil {
		return "", fmt.Errorf("%q: %w", path, err)
	}
	// It goes into a DNS record and into messages.
	u, err := url.Parse(regr.URI)
	plain := !strings.ContainsFunc(regr.URI, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`;"\`, r) })
	if err != nil || u.Host == "" || !plain {
		return "", fmt.Errorf("%q has no account URI", path)
	}
	return regr.URI, nil
}

// distinct drops accounts that only are another way to one before.
func distinct(accounts []Account) []Account {
	var kept []Account
	for _, a := range accounts {
		if !slices.ContainsFunc(kept, func(k Account) bool { return k.URI == a.URI }) {
			kept = append(kept, a)
		}
	}
	return kept
}

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
	"syscall"
)

// Account is an ACME account that certbot keeps on this machine.
type Account struct {
	ID  string // certbot's name of it, which means nothing elsewhere
	URI string // the CA's name of it (RFC 8555, section 7.1.2)
}

// Accounts lists the accounts that certbot has at an ACME server, given by its directory URL, each URI once,
// and says which ones cannot be read. Certbot itself leaves those out.
func Accounts(configDir, server string) (found []Account, unreadable []*UnreadableAccount) {
	found, unreadable = readAccounts(accountsDir(configDir, server))
	return distinct(found), unreadable
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

// readAccounts reads the accounts of one server. Certbot makes links where the server's older address had
// accounts, so that one account may be there twice.
func readAccounts(dir string) (found []Account, unreadable []*UnreadableAccount) {
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
			uri, err = accountURI(path)
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
	// A pipe in its place would keep whoever opens it for ever.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, fmt.Errorf("%q is no regular file", path))
	}
	return io.ReadAll(io.LimitReader(f, maxFile))
}

// accountURI reads the URI of the account that certbot keeps in dir.
func accountURI(dir string) (string, error) {
	path := filepath.Join(dir, "regr.json")
	raw, err := readFile(path)
	if err != nil {
		return "", err
	}
	var regr struct {
		URI string `json:"uri"`
	}
	if err := json.Unmarshal(raw, &regr); err != nil {
		return "", fmt.Errorf("%q is broken: %w", path, err)
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

// servers lists the directory URLs of the servers at which certbot has an account. The tree of directories
// that tells them has no scheme; ACME's is https (RFC 8555, section 6.1).
func servers(configDir string) []string {
	root := filepath.Join(configDir, "accounts")
	var urls []string
	var walk func(dir string, above []fs.FileInfo)
	walk = func(dir string, above []fs.FileInfo) {
		self, err := os.Stat(dir)
		if err != nil || !self.IsDir() || slices.ContainsFunc(above, func(a fs.FileInfo) bool { return os.SameFile(a, self) }) {
			return // a link that leads back up, or nothing that tells of an account
		}
		entries, _ := os.ReadDir(dir)
		has := false
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			if _, err := accountURI(path); err == nil {
				has = true
			} else {
				walk(path, append(above, self))
			}
		}
		if path, err := filepath.Rel(root, dir); has && err == nil && dir != root {
			urls = append(urls, "https://"+filepath.ToSlash(path))
		}
	}
	walk(root, nil)
	return urls
}

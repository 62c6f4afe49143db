package certbot

import (
	"path/filepath"
	"slices"
	"strings"
)

// Book is what certbot has on disk about its accounts at one ACME server, read once.
type Book struct {
	configDir, server string
	accounts          []Account
	unreadable        []*UnreadableAccount
	lineages          []Lineage // those of the server
}

// ReadBook reads the accounts and the lineages at a server, given by its directory URL.
func ReadBook(configDir, server string) *Book {
	b := &Book{configDir: configDir, server: server}
	b.accounts, b.unreadable = readAccounts(accountsDir(configDir, server))
	all, _ := Lineages(configDir) // what cannot be read helps nobody to an account
	for _, l := range all {
		if l.At(server) {
			b.lineages = append(b.lineages, l)
		}
	}
	return b
}

// AccountFor returns the account that certbot uses for a certificate with these names at an ACME server,
// given by its directory URL: that of the lineage with the same names, or else the server's only account.
// Wildcards do not differ from their base names here, and names may be repeated, as in CERTBOT_ALL_DOMAINS.
//
// The error is of kind Usage, has a hint, and is a *[NoAccount], [SeveralAccounts] or an *[UnreadableAccount].
func AccountFor(configDir, server string, names []string) (Account, error) {
	return ReadBook(configDir, server).For(names)
}

// For is [AccountFor].
func (b *Book) For(names []string) (Account, error) {
	names = baseNames(names)
	return b.choose(func(l Lineage) bool { return len(names) > 0 && slices.Equal(baseNames(l.Names), names) })
}

// ForName returns the account that certificates for a name belong to: that of the lineages that have the name or
// its wildcard, or else the server's only account. The name may be a wildcard. The errors are those of
// [AccountFor]; lineages that disagree are [SeveralAccounts], theirs alone.
func (b *Book) ForName(name string) (Account, error) {
	base := strings.TrimPrefix(canonical(name), "*.")
	return b.choose(func(l Lineage) bool { return slices.Contains(baseNames(l.Names), base) })
}

// choose returns the account of the lineages that are meant, or else the only one.
func (b *Book) choose(meant func(Lineage) bool) (Account, error) {
	var ids []string
	for _, l := range b.lineages {
		if meant(l) {
			ids = append(ids, l.AccountID)
		}
	}
	for _, u := range b.unreadable {
		if slices.Contains(ids, filepath.Base(u.Path)) {
			return Account{}, usage(u)
		}
	}
	// A lineage may still name an account that was unregistered.
	own := slices.DeleteFunc(slices.Clone(b.accounts), func(a Account) bool { return !slices.Contains(ids, a.ID) })
	if len(own) == 0 {
		own = b.accounts
	}
	own = distinct(own)
	switch {
	case len(own) == 1:
		return own[0], nil
	case len(own) > 1:
		return Account{}, usage(SeveralAccounts(own))
	case len(b.unreadable) > 0:
		return Account{}, usage(b.unreadable[0])
	}
	return Account{}, usage(&NoAccount{ConfigDir: b.configDir, Server: b.server, Elsewhere: servers(b.configDir)})
}

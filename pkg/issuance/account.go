package issuance

import (
	"crypto"
	"errors"

	"golang.org/x/crypto/acme"

	"github.com/certhook/certhook/pkg/certbot"
	"github.com/certhook/certhook/pkg/fault"
)

// Account is an ACME account that can be used.
type Account struct {
	URI   string // what a record of [persist.Draft01] names
	Owner string // [Own] or [Certbot]

	key crypto.Signer
}

// Thumbprint is what RFC 7638 makes of the account's key, in base64url.
func (a Account) Thumbprint() string {
	text, err := acme.JWKThumbprint(a.key.Public())
	if err != nil {
		panic(err) // of a type of key that could not have been read
	}
	return text
}

// Account returns the account in use. The error is of kind Usage.
func (i *Issuer) Account() (Account, error) {
	l, err := i.ledger()
	if err != nil {
		return Account{}, err
	}
	return i.account(l)
}

func (i *Issuer) account(l *ledger) (Account, error) {
	switch {
	case i.Choice == Own, i.Choice == "" && l.Current != nil:
		return i.own(l)
	case i.Choice == Certbot, i.Choice == "":
		return i.certbots("")
	case l.Current != nil && l.Current.URI == i.Choice:
		return i.own(l)
	}
	for _, e := range l.Former {
		if e.URI == i.Choice && e.Key != "" {
			return e.account(l)
		}
	}
	return i.certbots(i.Choice)
}

func (i *Issuer) own(l *ledger) (Account, error) {
	switch {
	case l.Current == nil:
		return Account{}, fault.Errorf(fault.Usage, "there is no ACME account of persist-issue's own at %s yet", i.Server).
			WithHint("run: persist-issue register")
	case l.Current.URI == "":
		return Account{}, fault.Errorf(fault.Usage, "the registration of an ACME account at %s was cut short; its key is in %q", i.Server, l.path).
			WithHint("run: persist-issue register, which finds the account if the CA has it")
	}
	return l.Current.account(l)
}

func (e entry) account(l *ledger) (Account, error) {
	key, err := e.Key.parse()
	if err != nil {
		return Account{}, fault.Errorf(fault.Usage, "read the key of the ACME account %s in %q: %w", e.URI, l.path, err)
	}
	return Account{URI: e.URI, Owner: Own, key: key}, nil
}

// certbots returns certbot's account with that URI, or its only one.
func (i *Issuer) certbots(uri string) (Account, error) {
	found, broken := certbot.Accounts(i.CertbotDir, i.Server)
	var meant []certbot.Account
	for _, a := range found {
		if uri == "" || a.URI == uri {
			meant = append(meant, a)
		}
	}
	switch {
	case len(meant) == 1:
		key, err := certbot.AccountKey(i.CertbotDir, i.Server, meant[0])
		if err != nil {
			return Account{}, err
		}
		return Account{URI: meant[0].URI, Owner: Certbot, key: key}, nil
	case len(meant) > 1:
		return Account{}, fault.Errorf(fault.Usage, "%w", certbot.SeveralAccounts(meant)).WithHint("set PERSIST_ACCOUNT to one of them")
	case len(broken) > 0:
		return Account{}, fault.Errorf(fault.Usage, "%w", broken[0])
	case uri != "":
		return Account{}, fault.Errorf(fault.Usage, "neither persist-issue nor certbot has the ACME account %s at %s", uri, i.Server).
			WithHint("correct PERSIST_ACCOUNT, or take it out of the settings")
	}
	if i.Choice == Certbot {
		_, err := certbot.AccountFor(i.CertbotDir, i.Server, nil)
		return Account{}, err
	}
	return Account{}, fault.Errorf(fault.Usage, "%w at %s", errNoAccount, i.Server).WithHint("run: persist-issue register")
}

// errNoAccount is what there is to say where neither we nor certbot has one.
var errNoAccount = errors.New("there is no ACME account")

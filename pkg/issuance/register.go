package issuance

import (
	"context"
	"errors"
	"time"

	"golang.org/x/crypto/acme"

	"github.com/certhook/certhook/pkg/fault"
)

// Registered is what [Issuer.Register] ends with.
type Registered struct {
	Account
	New   bool   // the CA has made it just now
	Terms string // URL of the terms of service that a new account has agreed to; "" where the CA has none
	File  string // that holds the key; "" for certbot's
}

// Register returns the account in use and makes one of our own where there is none. The key is on disk before the CA
// hears of it, the URI after, so that a call that was cut short, or whose answer was lost, is made good by the next one:
// that asks the CA for the account of the same key first, and no second account comes of it.
func (i *Issuer) Register(ctx context.Context) (Registered, error) {
	start := time.Now()
	ctx, cancel := i.within(ctx, start)
	defer cancel()
	release, err := i.lock(ctx, start.Add(i.Budget/2))
	if err != nil {
		return Registered{}, err
	}
	defer release()
	l, err := i.ledger()
	if err != nil {
		return Registered{}, err
	}
	account, err := i.account(l)
	if err == nil {
		r := Registered{Account: account}
		if account.Owner == Own {
			r.File = l.path
		}
		return r, nil
	}
	if i.Choice != Own && l.Current == nil && !errors.Is(err, errNoAccount) {
		return Registered{}, err // certbot has several, or one that cannot be read
	}
	if l.Current != nil && l.Current.URI != "" {
		return Registered{}, err // its key is broken
	}
	return i.enroll(ctx, l, &l.Current)
}

// enroll brings the account at a place of the ledger to the end of its registration. Every step is on disk before the
// next one begins.
func (i *Issuer) enroll(ctx context.Context, l *ledger, at **entry) (Registered, error) {
	known := *at != nil // the CA may have heard of the key
	if !known {
		_, pem, err := newKey()
		if err != nil {
			return Registered{}, err
		}
		*at = &entry{Key: pem, Made: time.Now().UTC().Truncate(time.Second)}
		if err := i.save(l); err != nil {
			return Registered{}, err
		}
	}
	i.step("key kept")
	r := Registered{File: l.path}
	var err error
	if r.Account, err = (*at).account(l); err != nil {
		return Registered{}, err
	}
	c := i.dial(r.Account)
	r.URI, r.Terms, r.New, err = c.register(ctx, i.Contact, i.Binding, known)
	if err != nil {
		return Registered{}, c.failed(ctx, err, "the registration of an ACME account at %s", i.Server).
			WithHint("its key is kept in %s: run the same command again, which first asks the CA whether it has the account", l.path)
	}
	i.step("known to the CA")
	(*at).URI = r.URI
	i.Log.Info("registered", "account", r.URI, "new", r.New, "server", i.Server)
	if err := i.save(l); err != nil {
		return Registered{}, fault.Errorf(fault.Usage, "the CA has the account %s, its key is in %q, and the URI cannot be noted beside it: %w", r.URI, l.path, err).
			WithHint("when the disk is mended, run the same command again: it finds the account by its key")
	}
	return r, nil
}

// register finds or makes the account of the client's key.
func (c *ca) register(ctx context.Context, contact string, b *Binding, known bool) (uri, terms string, made bool, err error) {
	if known {
		account, err := c.client.GetReg(ctx, "")
		if err == nil {
			return account.URI, "", false, c.checkURI(account.URI)
		} else if !errors.Is(err, acme.ErrNoAccount) {
			return "", "", false, err
		}
	}
	dir, err := c.client.Discover(ctx)
	if err != nil {
		return "", "", false, err
	}
	if dir.ExternalAccountRequired && b == nil {
		return "", "", false, errNoBinding
	}
	wish := &acme.Account{}
	if contact != "" {
		wish.Contact = []string{"mailto:" + contact}
	}
	if b != nil {
		wish.ExternalAccountBinding = &acme.ExternalAccountBinding{KID: b.KID, Key: b.Key}
	}
	account, err := c.client.Register(ctx, wish, acme.AcceptTOS)
	if errors.Is(err, acme.ErrAccountAlreadyExists) {
		uri := string(c.client.KID)
		return uri, clean(dir.Terms), false, c.checkURI(uri)
	}
	if err != nil {
		return "", "", false, err
	}
	return account.URI, clean(dir.Terms), true, c.checkURI(account.URI)
}

var errNoBinding = errors.New("the CA asks for an external account binding: give the key id and the key that it has handed out, by ACME_EAB_KID and ACME_EAB_HMAC")

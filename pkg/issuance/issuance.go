// Package issuance gets certificates by dns-persist-01: a TXT record that the operator has put into the zone once lets
// one ACME account have certificates for a name, so that nothing here writes to DNS or holds a credential for it.
//
// The method is experimental (draft-ietf-acme-dns-persist). What is kept on disk is below [Issuer.Root]: the accounts,
// and the lineages in certbot's layout, so that whoever reads certbot's reads them too.
package issuance

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/certhook/certhook/pkg/authority"
	"github.com/certhook/certhook/pkg/persist"
	"github.com/certhook/certhook/pkg/resolver"
)

// Method is the type of the ACME challenge.
const Method = "dns-persist-01"

// Issuer gets certificates from one CA.
type Issuer struct {
	Root       string // folder of accounts and lineages, absolute; it and what is below are made where missing
	CertbotDir string // certbot's configuration directory, for its accounts and the names of its lineages

	Server string // directory URL
	// Issuers tells what CAA records call the CA, at least one name.
	Issuers func(context.Context) ([]string, error)

	Choice  string // of the account: [Own], [Certbot], an account's URI, or "" for our own if there is one, else certbot's
	Contact string // mail address of a new account; "" for none
	Binding *Binding

	DNS   *authority.Client
	Panel resolver.Panel

	Draft   persist.Draft // of the records; "" for the one that the CA offers, or else [persist.Draft01]
	Until   time.Time     // when new records stop holding; zero: never
	Profile string        // to ask for; "" for the lineage's own, or else the CA's choice

	// Budget is the time that one order may take. Waiting takes half of it at most.
	Budget time.Duration
	// Patience is how long to wait for a record that is not seen; 0 looks once, negative not at all. Settle is how long
	// to wait besides once such a record has appeared.
	Patience, Settle time.Duration
	// Memory is how long a CA may go on seeing what stood at a name before.
	Memory time.Duration

	HTTP      *http.Client // nil for the default one
	UserAgent string
	Log       *slog.Logger // not nil; warnings are for people

	reached func(step string) // for tests that cut a call short there
}

func (i *Issuer) step(name string) {
	if i.reached != nil {
		i.reached(name)
	}
}

// Binding ties a new account to one that the operator has with the CA (RFC 8555, section 7.3.4).
type Binding struct {
	KID string
	Key []byte
}

// Which account an [Issuer] uses.
const (
	Own     = "own"
	Certbot = "certbot"
)

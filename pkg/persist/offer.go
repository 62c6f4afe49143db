package persist

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// Offer is what a CA says of dns-persist-01.
type Offer struct {
	Issuers []string // what the CA calls itself in records, as [ParseIssuer] returns it, in the CA's order
	Account string   // the challenge's accounturi: what a record of [Draft01] has to hold; "" where the CA does not say
	Draft   Draft    // "" where nothing tells
	Prefix  string   // the directory's accountHashPrefix, for [Draft02]
}

// Bounds of what is read.
const (
	maxJSON    = 64 << 10 // octets of a directory or a challenge
	maxIssuers = 10       // of which a client may refuse more (draft-ietf-acme-dns-persist-01, section 3.1)
)

// ParseOffer reads a directory and a challenge object of dns-persist-01 as the CA sent them. Either may be nil, and
// then tells nothing. The draft is 02 where the directory has an accountHashPrefix and the challenge, if there is one,
// issuerDomainNames; it is 01 where the challenge has issuer-domain-names or accounturi. A challenge with none of
// them is an error, and so is an issuer that is no host name: a list with a gap reads like a shorter one.
func ParseOffer(directory, challenge []byte) (Offer, error) {
	var dir struct {
		Meta struct {
			Issuers []string `json:"issuerDomainNames"`
			Prefix  string   `json:"accountHashPrefix"`
		} `json:"meta"`
	}
	var chall struct {
		Type    string   `json:"type"`
		Old     []string `json:"issuer-domain-names"`
		New     []string `json:"issuerDomainNames"`
		Account string   `json:"accounturi"`
	}
	if err := read("the directory", directory, &dir); err != nil {
		return Offer{}, err
	}
	if err := read("the challenge", challenge, &chall); err != nil {
		return Offer{}, err
	}
	if chall.Type != "" && chall.Type != "dns-persist-01" {
		return Offer{}, fmt.Errorf("the challenge is of type %q, not dns-persist-01", chall.Type)
	}
	o := Offer{Account: chall.Account, Prefix: dir.Meta.Prefix}
	if o.Account != "" {
		if err := Draft01.checkAccount(o.Account); err != nil {
			return Offer{}, fmt.Errorf("the challenge's accounturi: %w", err)
		}
	}
	if o.Prefix != "" {
		// As it will stand before a hash.
		if err := Draft02.checkAccount(HashedAccount(o.Prefix, "*", "", "")); err != nil {
			return Offer{}, fmt.Errorf("the directory's accountHashPrefix: %w", err)
		}
	}
	var names []string
	switch {
	case challenge == nil && o.Prefix != "":
		o.Draft, names = Draft02, dir.Meta.Issuers
	case challenge == nil:
		return o, nil
	case len(chall.New) > 0 && o.Prefix != "":
		o.Draft, names = Draft02, chall.New
	case len(chall.Old) > 0 || o.Account != "":
		o.Draft, names = Draft01, chall.Old
	case len(chall.New) > 0:
		return Offer{}, errors.New("the challenge is of draft -02 of dns-persist-01, and the directory has no accountHashPrefix")
	default:
		return Offer{}, errors.New("the challenge has neither issuer-domain-names nor issuerDomainNames")
	}
	if len(names) > maxIssuers {
		return Offer{}, fmt.Errorf("the CA has %d issuer domain names, at most %d are read", len(names), maxIssuers)
	}
	for _, text := range names {
		name, err := ParseIssuer(text)
		if err != nil {
			return Offer{}, err
		}
		if !slices.Contains(o.Issuers, name) {
			o.Issuers = append(o.Issuers, name)
		}
	}
	return o, nil
}

// read decodes an object, if there is one.
func read(what string, text []byte, into any) error {
	if text == nil {
		return nil
	}
	if len(text) > maxJSON {
		return fmt.Errorf("%s has %d octets, at most %d are read", what, len(text), maxJSON)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("read %s: %w", what, err)
	}
	return nil
}

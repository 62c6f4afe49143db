package main

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/certhook/certhook/pkg/caa"
	"github.com/certhook/certhook/pkg/certbot"
	"github.com/certhook/certhook/pkg/config"
	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/guide"
	"github.com/certhook/certhook/pkg/persist"
)

// persistFlags are about the record of dns-persist-01.
func persistFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "draft", Usage: "`DRAFT` of dns-persist-01, 01 or 02 (default: PERSIST_DRAFT)"},
		&cli.StringFlag{Name: "account-thumbprint", Usage: "RFC 7638 `THUMBPRINT` of the account's key, for draft 02"},
		&cli.StringFlag{Name: "account-hash-prefix", Usage: "accountHashPrefix `URI`, for draft 02 (default: as the CA says)"},
	}
}

// methods returns how the names are validated: the method that a plan is for, and those that its CAA has to allow
// besides.
func (p *planner) methods() (guide.Method, []guide.Method) {
	if p.s.ChallengeType == config.ChallengeBoth {
		return guide.DNS01, []guide.Method{guide.DNSPersist01}
	}
	return guide.Method(p.s.ChallengeType), nil
}

// validation is what the record of dns-persist-01 has to say for all names, nil where it is not asked for.
type validation struct {
	guide.Validation
	wild map[string]bool // domains whose wildcard is asked about
	dns  map[string]bool // and names that certbot renews by dns-01
}

// readPersist reads what settings and flags say of the record. The CA is asked only for what they leave open, and never
// for draft 01 where its name is known.
func (p *planner) readPersist(ctx context.Context, names []string) error {
	method, others := p.methods()
	if method != guide.DNSPersist01 && !slices.Contains(others, guide.DNSPersist01) {
		return nil
	}
	v := &validation{wild: map[string]bool{}, dns: map[string]bool{}}
	v.Issuers, v.Until, v.Draft = p.issuers, p.s.Persist.Until, persist.Draft(p.s.Persist.Draft)
	if !v.Until.IsZero() && v.Until.Before(time.Now()) {
		return fault.Errorf(fault.Usage, "PERSIST_UNTIL lies in the past, so that no CA would take a record with it").
			WithHint("give it a later time, or none")
	}
	for _, name := range names {
		if domain, wildcard := strings.CutPrefix(name, "*."); wildcard {
			v.wild[domain] = true
		}
	}
	lineages, _ := certbot.Lineages(p.s.CertbotConfigDir)
	for _, l := range lineages {
		if l.At(p.s.ACMEServer) && l.Authenticator == "manual" {
			for _, name := range l.Names {
				v.dns[name] = true
			}
		}
	}
	p.validation = v
	return p.readOffer(ctx)
}

// readOffer settles the draft, and for draft 02 what goes into the hash.
func (p *planner) readOffer(ctx context.Context) error {
	v := p.validation
	if v.Draft == persist.Draft01 || v.Draft == "" && (p.s.IssuerDomain != "" || caa.KnownIssuer(p.s.ACMEServer) != "") {
		v.Draft = persist.Draft01
		return nil
	}
	v.Prefix = p.c.String("account-hash-prefix")
	if v.Draft == persist.Draft02 && v.Prefix != "" {
		return p.readThumbprint()
	}
	raw, err := caa.Directory(ctx, nil, p.s.ACMEServer)
	if err != nil {
		return fault.Errorf(fault.Usage, "ask the CA at %q for its directory: %w", p.s.ACMEServer, err).
			WithHint("for draft 02 --account-hash-prefix says it in place of the CA; --draft 01 needs nothing of it")
	}
	offer, err := persist.ParseOffer(raw, nil)
	if err != nil {
		return fault.Errorf(fault.Usage, "the directory of the CA at %q: %w", p.s.ACMEServer, err)
	}
	if v.Draft = cmp.Or(v.Draft, offer.Draft, persist.Draft01); v.Draft == persist.Draft01 {
		return nil
	}
	if offer.Prefix == "" {
		return fault.Errorf(fault.Usage, "the CA at %q does not offer draft 02 of dns-persist-01: its directory has no accountHashPrefix", p.s.ACMEServer).
			WithHint("write --draft 01, or give --account-hash-prefix")
	}
	v.Prefix = offer.Prefix
	if p.s.IssuerDomain == "" && len(offer.Issuers) > 0 {
		v.Issuers = offer.Issuers
	}
	return p.readThumbprint()
}

// thumbprint is a SHA-256 in base64url.
var thumbprint = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)

func (p *planner) readThumbprint() error {
	if text := p.c.String("account-thumbprint"); text != "" && !thumbprint.MatchString(text) {
		return fault.Errorf(fault.Usage, "--account-thumbprint: %q is no thumbprint, which is 43 characters of base64url", text)
	}
	r := persist.Record{Issuer: p.validation.Issuers[0], Account: persist.HashedAccount(p.validation.Prefix, "*", "", ""), Draft: persist.Draft02}
	if err := r.Validate(); err != nil {
		return fault.Errorf(fault.Usage, "--account-hash-prefix: %w", err)
	}
	return nil
}

// persist adds to a plan what dns-persist-01 asks for.
func (p *planner) persist(plan *guide.Plan) error {
	v := p.validation
	if v == nil {
		return nil
	}
	own := v.Validation
	own.Wildcard = v.wild[plan.Domain]
	if plan.Method == guide.DNSPersist01 && v.dns[plan.Name] {
		plan.CAA.Methods = append(plan.CAA.Methods, guide.DNS01)
	}
	if owner := persist.Owner(plan.Domain); len(owner) > dnsname.MaxName {
		return fault.Errorf(fault.Usage, "-d: the record of %q would stand at a name of %d octets, and at most %d are allowed", plan.Name, len(owner), dnsname.MaxName)
	}
	if own.Draft == persist.Draft02 && len(plan.CAA.Accounts) == 1 {
		own.Thumbprints, own.Problem = p.thumbprints(plan.CAA.Accounts[0])
	}
	plan.Validation = &own
	return nil
}

// thumbprints returns that of the account's key, by its URI, or why it is not known.
func (p *planner) thumbprints(account string) (map[string]string, string) {
	if text := p.c.String("account-thumbprint"); text != "" {
		return map[string]string{account: text}, ""
	}
	return nil, "draft 02 takes the thumbprint of the account's key: give it by --account-thumbprint"
}

package main

import (
	"cmp"
	"context"
	"fmt"
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
	"github.com/certhook/certhook/pkg/issuance"
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

// validation is what the record of dns-persist-01 has to say for all names.
type validation struct {
	guide.Validation
	wild map[string]bool // domains whose wildcard is asked about
}

// users tells which names who renews: a CAA has to let in both that share one.
type users struct {
	hooked    []string // names that certbot renews by manual hooks
	persisted []string // names that persist-issue renews
}

// issuer is persist-issue, as far as it tells of its account and its names.
func (p *planner) issuer(choice string) *issuance.Issuer {
	return &issuance.Issuer{Root: p.s.StateDir, CertbotDir: p.s.CertbotConfigDir, Server: p.s.ACMEServer, Choice: choice}
}

// readUsers looks who renews what on this machine. What cannot be read is left out.
func (p *planner) readUsers() {
	lineages, _ := certbot.Lineages(p.s.CertbotConfigDir)
	for _, l := range lineages {
		if l.Authenticator == "manual" && l.At(p.s.ACMEServer) {
			p.users.hooked = append(p.users.hooked, l.Names...)
		}
	}
	p.users.persisted = p.issuer("").Names()
}

// readPersist reads what settings and flags say of the record. The CA is asked only for what they leave open, and never
// for draft 01 where its name is known.
func (p *planner) readPersist(ctx context.Context, names []string) error {
	p.readUsers()
	method, others := p.methods()
	if method != guide.DNSPersist01 && !slices.Contains(others, guide.DNSPersist01) {
		if p.include[guide.ValidationTXT] {
			return fault.Errorf(fault.Usage, "--include %s is for --challenge %s or %s", guide.ValidationTXT, config.ChallengePersist, config.ChallengeBoth)
		}
		return nil
	}
	v := &validation{wild: map[string]bool{}}
	v.Issuers, v.Until, v.Draft = p.issuers, p.s.Persist.Until, persist.Draft(p.s.Persist.Draft)
	if p.c.Command.Name == "records" && guide.Ended(v.Until, time.Now()) {
		return fault.Errorf(fault.Usage, "PERSIST_UNTIL lies in the past, so that no CA would take a record with it").
			WithHint("give it a later time, or none")
	}
	for _, name := range names {
		if domain, wildcard := strings.CutPrefix(name, "*."); wildcard {
			v.wild[domain] = true
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

// persist adds to a plan what dns-persist-01 asks for, and what the name's other use asks of its CAA.
func (p *planner) persist(plan *guide.Plan) error {
	switch plan.Method {
	case guide.DNS01:
		if shares(p.users.persisted, plan.Domain) {
			p.share(plan, guide.DNSPersist01, p.persistAccount)
		}
	case guide.DNSPersist01:
		if shares(p.users.hooked, plan.Domain) {
			p.share(plan, guide.DNS01, func() (string, error) {
				a, err := p.book.ForName(plan.Domain)
				return a.URI, err
			})
		}
	}
	if p.validation == nil {
		return nil
	}
	if owner := persist.Owner(plan.Domain); len(owner) > dnsname.MaxName {
		return fault.Errorf(fault.Usage, "-d: the record of %q would stand at a name of %d octets, and at most %d are allowed", plan.Name, len(owner), dnsname.MaxName)
	}
	v := p.validation.Validation
	v.Wildcard = p.validation.wild[plan.Domain]
	if len(plan.CAA.Accounts) == 1 {
		account := plan.CAA.Accounts[0]
		if own, err := p.persistAccount(); plan.Method == guide.DNS01 && p.account == "" && err == nil && own != account {
			v.Problem = fmt.Sprintf("certbot has the account %s and persist-issue %s, and one set of records is for one account: set PERSIST_ACCOUNT=certbot, or ask for --challenge dns-01 and dns-persist-01 one after the other", account, own)
		} else if v.Draft == persist.Draft02 {
			v.Thumbprints, v.Problem = p.thumbprints(account)
		}
	}
	plan.Validation = &v
	return nil
}

// shares reports whether a domain or its wildcard, which one CAA governs, is among names.
func shares(names []string, domain string) bool {
	return slices.Contains(names, domain) || slices.Contains(names, "*."+domain)
}

// share lets the CAA of a plan admit whoever else has the name renewed: the same account by its other method, or another
// account with a record of its own.
func (p *planner) share(plan *guide.Plan, method guide.Method, account func() (string, error)) {
	switch uri, err := account(); {
	case err != nil || len(plan.CAA.Accounts) != 1:
	case uri == plan.CAA.Accounts[0]:
		plan.CAA.Methods = append(slices.Clip(plan.CAA.Methods), method)
	default:
		plan.CAA.Others = append(plan.CAA.Others, uri)
	}
}

// persistAccount returns the account that persist-issue uses.
func (p *planner) persistAccount() (string, error) {
	a, err := p.issuer(p.s.Persist.Account).Account()
	return a.URI, err
}

// thumbprints returns that of the account's key, by its URI, or why it is not known.
func (p *planner) thumbprints(account string) (map[string]string, string) {
	if text := p.c.String("account-thumbprint"); text != "" {
		return map[string]string{account: text}, ""
	}
	a, err := p.issuer(account).Account()
	if err != nil {
		return nil, fmt.Sprintf("draft 02 takes the thumbprint of the account's key: %v; --account-thumbprint gives it", err)
	}
	return map[string]string{account: a.Thumbprint()}, ""
}

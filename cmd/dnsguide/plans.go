package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/miekg/dns"
	"github.com/urfave/cli/v2"
	"golang.org/x/net/publicsuffix"

	"github.com/certhook/certhook/pkg/caa"
	"github.com/certhook/certhook/pkg/certbot"
	"github.com/certhook/certhook/pkg/config"
	"github.com/certhook/certhook/pkg/delegation"
	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/guide"
	"github.com/certhook/certhook/pkg/persist"
)

// planner makes plans of the command line and the settings.
type planner struct {
	c        *cli.Context
	s        *config.Settings
	include  map[guide.Kind]bool
	issuers  []string
	caaOwner string
	caaValue string
	account  string // as --account-uri or --caa-value says
	book     *certbot.Book

	validation *validation // of dns-persist-01; nil where that is not asked for
	users      users
}

// plans makes a plan for each name that is asked for. unread is that of [names].
func plans(ctx context.Context, c *cli.Context, s *config.Settings) (list []guide.Plan, unread, err error) {
	names, unread, err := names(c, s)
	if err != nil {
		return nil, nil, err
	}
	p := &planner{c: c, s: s, book: certbot.ReadBook(s.CertbotConfigDir, s.ACMEServer)}
	if p.include, err = included(c); err != nil {
		return nil, nil, err
	}
	if err := p.readCAA(ctx, names); err != nil {
		return nil, nil, err
	}
	if err := p.readPersist(ctx, names); err != nil {
		return nil, nil, err
	}
	if len(names) > 1 && c.IsSet("txt-name") {
		return nil, nil, fault.Errorf(fault.Usage, "--txt-name is for one name, and %d are asked about", len(names)).
			WithHint("TXT_PREFIX gives each name a TXT of its own")
	}
	for _, name := range names {
		plan, err := p.plan(name)
		if err != nil {
			return nil, nil, err
		}
		list = append(list, plan)
	}
	return list, unread, checkTXTNames(list)
}

// checkTXTNames refuses a routing TXT at a name that has another use.
func checkTXTNames(list []guide.Plan) error {
	for _, p := range list {
		if p.TXTValue == "" {
			continue
		}
		for _, q := range list {
			use := ""
			switch p.TXTName {
			case dnsname.Challenge(q.Domain):
				use = "which is for challenges"
			case persist.Owner(q.Domain):
				use = "which is for dns-persist-01"
			case q.Target.Record:
				use = "where the hooks write challenges"
			case q.Name:
				if q.Gateway != "" && q.Gateway != q.Name {
					use = "which is to be a CNAME"
				}
			}
			if use != "" {
				return fault.Errorf(fault.Usage, "the routing TXT cannot stand at %q, %s: give it another --txt-name or TXT_PREFIX", p.TXTName, use)
			}
		}
	}
	return nil
}

// readCAA reads what flags say of the CAA record, and finds out what the CA is called in one.
func (p *planner) readCAA(ctx context.Context, names []string) error {
	if tag := p.c.String("caa-tag"); tag != "" && tag != "issue" && tag != "issuewild" {
		return fault.Errorf(fault.Usage, "--caa-tag: %q is not known; write issue or issuewild", tag)
	}
	if text := p.c.String("caa-name"); text != "" {
		owner, err := dnsname.ParseHost(text)
		if err != nil {
			return fault.Errorf(fault.Usage, "--caa-name: %w", err)
		}
		for _, name := range names {
			if !dnsname.Within(strings.TrimPrefix(name, "*."), owner) {
				return fault.Errorf(fault.Usage, "--caa-name: a CAA at %q does not count for %q", owner, name).
					WithHint("it has to stand at the name itself or above it")
			}
		}
		if suffix, icann := publicsuffix.PublicSuffix(owner); icann && suffix == owner {
			return fault.Errorf(fault.Usage, "--caa-name: %q is a public suffix: a CAA there is for everybody's names", owner)
		}
		p.caaOwner = owner
	}
	if p.account = p.c.String("account-uri"); p.account != "" {
		if err := checkAccount(p.account); err != nil {
			return fault.Errorf(fault.Usage, "--account-uri: %w", err)
		}
	}
	var err error
	p.issuers, err = caa.Issuer(ctx, nil, p.s.IssuerDomain, p.s.ACMEServer)
	if p.caaValue = p.c.String("caa-value"); p.caaValue != "" {
		return p.readValue()
	}
	return err
}

// readValue takes issuer and account from a whole value.
func (p *planner) readValue() error {
	property, err := caa.Parse(p.caaValue)
	if err != nil {
		return fault.Errorf(fault.Usage, "--caa-value: CAs find it malformed: %w", err)
	}
	if property.Issuer == "" {
		return fault.Errorf(fault.Usage, "--caa-value: %q names no CA", p.caaValue)
	}
	if len(p.issuers) == 0 { // what the CA is called could not be found out
		p.issuers = []string{property.Issuer}
	}
	for _, param := range property.Params {
		if param.Tag != "accounturi" {
			continue
		}
		if p.account != "" && p.account != param.Value {
			return fault.Errorf(fault.Usage, "--caa-value is for the account %s, --account-uri says %s", param.Value, p.account)
		}
		p.account = param.Value
	}
	return nil
}

// checkValue refuses a whole value that would not let the account issue, and notes one that keeps nobody out.
func (p *planner) checkValue(plan *guide.Plan) error {
	if p.caaValue == "" {
		return nil
	}
	set := caa.Set{Owner: plan.CAAOwner, Records: []*dns.CAA{{Tag: "issue", Value: p.caaValue}}}
	for _, method := range append([]guide.Method{plan.Method}, plan.CAA.Methods...) {
		q := caa.Question{Domain: plan.Domain, Issuer: p.issuers[0], Also: p.issuers[1:], Method: string(method), Account: p.account}
		result := caa.Evaluate(q, set)
		if !result.Allowed {
			return fault.Errorf(fault.Usage, "--caa-value: %s", result.Fault.Why).
				WithHint("the CA at %s is called %s in CAA records, and the method is %s", p.s.ACMEServer, strings.Join(p.issuers, " or "), method)
		}
		plan.CAA.Open = result.Lock != caa.Locked || p.account == ""
	}
	return nil
}

// checkAccount refuses what would break the record that it goes into.
func checkAccount(uri string) error {
	u, err := url.Parse(uri)
	plain := !strings.ContainsFunc(uri, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`;"\`, r) })
	if err != nil || u.Host == "" || !plain {
		return fmt.Errorf("%q is not the URI of an ACME account, such as https://acme-v02.api.letsencrypt.org/acme/acct/123456789", uri)
	}
	return nil
}

func (p *planner) plan(name string) (guide.Plan, error) {
	method, others := p.methods()
	plan := guide.Plan{Name: name, Method: method, Include: p.include, Gateway: p.s.GatewayDomain, TXTValue: p.c.String("txt-value")}
	plan.Domain, plan.Wildcard = strings.CutPrefix(name, "*.")
	if plan.Wildcard && plan.Method == guide.TLSALPN01 {
		return plan, fault.Errorf(fault.Usage, "%s cannot validate the wildcard %q, since it proves one host only (RFC 8737): use --challenge %s, or leave the wildcard out",
			guide.TLSALPN01, name, guide.DNS01)
	}
	if plan.Include == nil {
		plan.Include = map[guide.Kind]bool{}
		for _, kind := range guide.Kinds() {
			plan.Include[kind] = true
		}
	} else if plan.Include[guide.CNAME] && plan.Gateway == "" && plan.Method != guide.TLSALPN01 {
		return plan, fault.Errorf(fault.Usage, "--include cname needs --alias-target or GATEWAY_DOMAIN")
	}
	var err error
	if plan.Method == guide.DNS01 {
		if plan.Target, err = (delegation.Settings{
			Aliases: p.s.Aliases, Pins: p.s.Pins, Zones: p.s.AliasFor, Hashed: p.s.HashedLabels,
		}).Target(plan.Domain); err != nil {
			return plan, err
		}
	}
	if plan.TXTName, err = p.txtName(plan); err != nil {
		return plan, err
	}
	plan.CAAOwner = plan.Domain
	if p.caaOwner != "" {
		plan.CAAOwner = p.caaOwner
	}
	plan.CAA = guide.Lock{Issuers: p.issuers, Value: p.caaValue, Wild: p.c.String("caa-tag") == "issuewild", Methods: others}
	plan.CAA.Accounts, plan.CAA.Problem = p.accounts(name)
	for _, account := range plan.CAA.Accounts {
		if plan.CAA.Doubt == "" {
			plan.CAA.Doubt = certbot.Foreign(account, p.s.ACMEServer)
		}
	}
	if err := p.persist(&plan); err != nil {
		return plan, err
	}
	return plan, p.checkValue(&plan)
}

// txtName is where the gateway looks: dstack's tells a wildcard's TXT from its base name's by the label.
func (p *planner) txtName(plan guide.Plan) (string, error) {
	if text := p.c.String("txt-name"); text != "" {
		name, err := dnsname.Parse(text)
		if err != nil {
			return "", fault.Errorf(fault.Usage, "--txt-name: %w", err)
		}
		return name, nil
	}
	if plan.Wildcard {
		return p.s.TXTPrefix + "-wildcard." + plan.Domain, nil
	}
	return p.s.TXTPrefix + "." + plan.Domain, nil
}

// accounts returns the accounts that a certificate for the name may belong to, or why none is known.
func (p *planner) accounts(name string) (uris []string, problem string) {
	if p.account != "" {
		return []string{p.account}, ""
	}
	if p.caaValue != "" {
		return nil, "--caa-value names no account, so that it locks nothing"
	}
	if p.s.ChallengeType == config.ChallengePersist {
		uri, err := p.persistAccount()
		if err != nil {
			return nil, problemOf(err)
		}
		return []string{uri}, ""
	}
	account, err := p.book.ForName(name)
	if err == nil {
		return []string{account.URI}, ""
	}
	return accountsOf(err)
}

package issuance

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/certhook/certhook/pkg/caa"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/persist"
)

// terms is what records have to say so that a CA lets an account have certificates.
type terms struct {
	Draft   persist.Draft
	issuers []string // what the CA calls itself in the TXT records, at least one; the first goes into new ones
	caa     []string // and in CAA records
	prefix  string   // of draft -02
	account Account
	until   time.Time // of new records
}

// terms finds out what the CA wants of an account. c may be nil: then the CA is not asked, and counts for one of draft
// -01 unless the settings say otherwise.
func (i *Issuer) terms(ctx context.Context, c *ca, a Account) (terms, error) {
	names, err := i.Issuers(ctx)
	if err != nil {
		return terms{}, err
	}
	t := terms{Draft: i.Draft, issuers: names, caa: names, account: a, until: i.Until}
	if t.Draft == persist.Draft01 || c == nil && t.Draft == "" {
		t.Draft = persist.Draft01
		return t, nil
	}
	_, raw, err := c.directory(ctx)
	if err != nil {
		return terms{}, c.failed(ctx, err, "asking %s for its directory", i.Server)
	}
	offer, err := persist.ParseOffer(raw, nil)
	if err != nil {
		return terms{}, fault.Errorf(fault.Other, "%s: %w", i.Server, err)
	}
	if t.Draft == persist.Draft02 && offer.Prefix == "" {
		return terms{}, fault.Errorf(fault.Usage, "the CA at %s does not offer draft -02 of dns-persist-01: its directory has no accountHashPrefix", i.Server).
			WithHint("take PERSIST_DRAFT or --draft away, or set it to 01")
	}
	t.adopt(offer)
	return t, nil
}

// adopt takes over what an offer tells, and reports whether that changes what records have to say.
func (t *terms) adopt(o persist.Offer) (changed bool) {
	before := *t
	if t.Draft == "" {
		t.Draft = persist.Draft01
		if o.Draft != "" {
			t.Draft = o.Draft
		}
	}
	if t.Draft != o.Draft {
		return t.Draft != before.Draft
	}
	if len(o.Issuers) > 0 {
		t.issuers = o.Issuers
	}
	t.prefix = o.Prefix
	if o.Draft == persist.Draft01 && o.Account != "" {
		t.account.URI = o.Account
	}
	return t.Draft != before.Draft || !slices.Equal(t.issuers, before.issuers) || t.prefix != before.prefix || t.account.URI != before.account.URI
}

// accountURI is what a record for the domain says in accounturi.
func (t terms) accountURI(domain string) string {
	if t.Draft == persist.Draft02 {
		return persist.HashedAccount(t.prefix, domain, t.account.Thumbprint(), t.account.URI)
	}
	return t.account.URI
}

// record is the one to create for a domain.
func (t terms) record(domain string, wildcard bool) persist.Record {
	return persist.Record{Issuer: t.issuers[0], Account: t.accountURI(domain), Wildcard: wildcard, Until: t.until, Draft: t.Draft}
}

// judge says what the CA makes of what is seen. A record for any of the CA's names will do.
func (t terms) judge(seen persist.Seen, domain string, wildcard bool, now time.Time) persist.Verdict {
	var first persist.Verdict
	for n, issuer := range t.issuers {
		v := seen.Evaluate(t.asked(issuer, domain, wildcard, now))
		if v.OK {
			return v
		}
		if n == 0 {
			first = v
		}
	}
	return first
}

// asked is what the CA asks of the TXT records under one of its names.
func (t terms) asked(issuer, domain string, wildcard bool, now time.Time) persist.Question {
	q := persist.Question{Issuer: issuer, Account: t.accountURI(domain), Wildcard: wildcard, Now: now, Draft: t.Draft}
	if t.Draft == persist.Draft02 {
		q.Shared = t.accountURI("*")
	}
	return q
}

// question is what to ask of CAA records.
func (t terms) question(domain string, wildcard bool) caa.Question {
	return caa.Question{
		Domain: domain, Wildcard: wildcard, Issuer: t.caa[0], Also: t.caa[1:], Method: Method, Account: t.account.URI,
	}
}

// site is a domain of a certificate: a name, or its wildcard, or both. One record covers both.
type site struct {
	domain   string   // without "*."
	names    []string // as the certificate has them
	wildcard bool     // a wildcard is among them
}

// sites sorts names by their domains, in the order of their first appearance.
func sites(names []string) []site {
	var all []site
	for _, name := range names {
		domain, wildcard := strings.CutPrefix(name, "*.")
		at := slices.IndexFunc(all, func(s site) bool { return s.domain == domain })
		if at < 0 {
			at = len(all)
			all = append(all, site{domain: domain})
		}
		all[at].names = append(all[at].names, name)
		all[at].wildcard = all[at].wildcard || wildcard
	}
	return all
}

// experimental says what every record and every outcome has to be read with.
func (t terms) experimental() string {
	return "dns-persist-01, draft -" + string(t.Draft) + ", experimental"
}

package issuance

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/acme"

	"github.com/certhook/certhook/pkg/bundle"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/persist"
)

// material is a new certificate.
type material struct {
	chain []*x509.Certificate
	key   []byte // PEM
}

// order gets a certificate for the lineage. start is when its time began. found is what the self-check has seen.
func (i *Issuer) order(ctx context.Context, a Account, l *Lineage, start time.Time) (m material, t terms, found []sighting, err error) {
	c := i.dial(a)
	if t, err = i.terms(ctx, c, a); err != nil {
		return m, t, nil, err
	}
	found = i.selfCheck(ctx, t, l.Names, start.Add(i.Budget/2))
	var options []acme.OrderOption
	if l.Profile != "" {
		options = append(options, acme.WithOrderIssuanceProfile(acme.ProfileName(l.Profile)))
	}
	o, err := c.client.AuthorizeOrder(ctx, acme.DomainIDs(l.Names...), options...)
	if err != nil {
		return m, t, found, c.failed(ctx, err, "the order for %s", strings.Join(l.Names, ", "))
	}
	if err = i.authorize(ctx, c, &t, o, found); err != nil {
		return m, t, found, err
	}
	if err = c.awaitReady(ctx, o, l.Names); err != nil {
		return m, t, found, err
	}
	p, err := i.begin(l, o, a, t)
	if err != nil {
		return m, t, found, err
	}
	m, err = c.finalize(ctx, o, p)
	return m, t, found, err
}

// authorize has the CA look at the records, and returns when it has found all of them good. Every refusal is told.
func (i *Issuer) authorize(ctx context.Context, c *ca, t *terms, o *acme.Order, found []sighting) error {
	var open []string
	var accept []*acme.Challenge
	adopted := false
	for _, url := range o.AuthzURLs {
		a, err := c.client.GetAuthorization(ctx, url)
		if err != nil {
			return c.failed(ctx, err, "asking for an authorization")
		}
		switch a.Status {
		case acme.StatusValid:
			continue
		case acme.StatusPending:
		default:
			return c.refused(a)
		}
		ch := c.challengeOf(a)
		if ch.Challenge == nil {
			return fault.Errorf(fault.Other, "the CA does not offer %s for %s, but %s; the lineage stays at %s",
				Method, name(a), clean(strings.Join(ch.types, ", ")), Method).WithHint("the method is experimental, and not with every CA yet")
		}
		if !adopted {
			adopted = true
			if err := i.compare(ctx, c, t, ch.raw, found); err != nil {
				return err
			}
		}
		open, accept = append(open, url), append(accept, ch.Challenge)
	}
	for _, ch := range accept {
		if _, err := c.client.Accept(ctx, ch); err != nil {
			return c.failed(ctx, err, "telling the CA to look")
		}
	}
	var refused []error
	for _, url := range open {
		if err := c.awaitAuthorization(ctx, url); err != nil {
			refused = append(refused, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(refused...)
}

// compare takes over what the challenge tells of the records that the CA will look for. Where that is something else
// than what was looked for, it says so before the CA looks.
func (i *Issuer) compare(ctx context.Context, c *ca, t *terms, raw []byte, found []sighting) error {
	_, dir, err := c.directory(ctx)
	if err != nil {
		return c.failed(ctx, err, "asking %s for its directory", i.Server)
	}
	offer, err := persist.ParseOffer(dir, raw)
	if err != nil {
		i.Log.Warn(fmt.Sprintf("what the CA wants of records cannot be told: %v", err))
		return nil
	}
	if offer.Draft != "" && offer.Draft != t.Draft {
		i.Log.Warn(fmt.Sprintf("the CA offers draft -%s of dns-persist-01 and may not take a record of -%s", offer.Draft, t.Draft))
		return nil
	}
	if !t.adopt(offer) {
		return nil
	}
	for n := range found {
		s := &found[n]
		if s.err == nil {
			s.verdict = t.judge(s.seen, s.domain, s.wildcard, time.Now())
		}
		if text := t.lacks(*s); text != "" {
			i.Log.Warn(text)
		}
	}
	return nil
}

// awaitAuthorization returns when the CA has decided.
func (c *ca) awaitAuthorization(ctx context.Context, url string) error {
	var a *acme.Authorization
	var err error
	decided := c.poll(ctx, url, func() bool {
		a, err = c.client.GetAuthorization(ctx, url)
		return err != nil || a.Status != acme.StatusPending
	})
	switch {
	case err != nil:
		return c.failed(ctx, err, "asking for an authorization")
	case !decided:
		return fault.Errorf(fault.Other, "the CA has not decided on %s in time", name(a)).WithHint("PERSIST_BUDGET or --timeout gives it more")
	case a.Status != acme.StatusValid:
		return c.refused(a)
	}
	return nil
}

// poll asks until done, as often as the CA wants to be asked, and leaves a little time for what follows.
func (c *ca) poll(ctx context.Context, url string, ask func() (done bool)) bool {
	const followed = 2 * time.Second
	deadline, bounded := ctx.Deadline()
	for pause := 200 * time.Millisecond; !ask(); pause = min(2*pause, 5*time.Second) {
		d := max(pause, c.wire.last(url).after)
		if bounded {
			d = min(d, time.Until(deadline)-followed)
		}
		if !sleep(ctx, d) {
			return false
		}
	}
	return true
}

// refused is the CA's no to one name.
func (c *ca) refused(a *acme.Authorization) error {
	for _, ch := range a.Challenges {
		if ch.Error != nil {
			return fault.Errorf(fault.Other, "%s by %s is refused: %w", name(a), ch.Type, plain(ch.Error))
		}
	}
	return fault.Errorf(fault.Other, "%s is refused: its authorization is %s, and the CA does not say why", name(a), clean(a.Status))
}

// name is the name that an authorization is for, as a certificate has it.
func name(a *acme.Authorization) string {
	if a.Wildcard {
		return "*." + clean(strings.TrimPrefix(a.Identifier.Value, "*."))
	}
	return clean(a.Identifier.Value)
}

// awaitReady returns when the certificate of an order can be asked for.
func (c *ca) awaitReady(ctx context.Context, o *acme.Order, names []string) error {
	what := "the order for " + strings.Join(names, ", ")
	var now *acme.Order
	var err error
	ready := c.poll(ctx, o.URI, func() bool {
		now, err = c.client.GetOrder(ctx, o.URI)
		return err != nil || now.Status != acme.StatusPending
	})
	switch {
	case err != nil:
		return c.failed(ctx, err, "%s", what)
	case !ready:
		return fault.Errorf(fault.Other, "%s is not ready in time", what)
	case now.Status != acme.StatusReady:
		return c.failed(ctx, &acme.OrderError{OrderURL: o.URI, Status: now.Status, Problem: now.Error}, "%s", what)
	}
	return nil
}

// finalize gets the certificate of an order that is ready.
func (c *ca) finalize(ctx context.Context, o *acme.Order, p *pending) (material, error) {
	key, err := p.Key.parse()
	if err != nil {
		return material{}, err
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{DNSNames: p.Names}, key)
	if err != nil {
		return material{}, err
	}
	der, _, err := c.client.CreateCertFromOrder(ctx, o, csr, true)
	if err != nil {
		return material{}, c.failed(ctx, err, "the certificate for %s", strings.Join(p.Names, ", "))
	}
	return p.material(der)
}

// check refuses a certificate that no server could use, or that is for other names.
func (m material) check(names []string) error {
	const hint = "nothing on disk has changed"
	now := time.Now()
	if begin := m.chain[0].NotBefore; now.Before(begin) {
		now = begin // a clock that is behind is no reason to throw the certificate away
	}
	b, err := bundle.Parse(chainPEM(m.chain...), m.key, now)
	if err != nil {
		return fault.Errorf(fault.Other, "the CA sends a certificate of no use: %w", err).WithHint(hint)
	}
	if err := b.Covers(names); err != nil {
		return fault.Errorf(fault.Other, "the CA sends another certificate than was ordered: %w", err).WithHint(hint)
	}
	return nil
}

func chainPEM(certs ...*x509.Certificate) []byte {
	var text []byte
	for _, c := range certs {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	return slices.Clip(text)
}

package issuance

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/certhook/certhook/pkg/bundle"
	"github.com/certhook/certhook/pkg/certbot"
	"github.com/certhook/certhook/pkg/fault"
)

// Outcome is what became of a lineage.
type Outcome struct {
	Lineage  string    `json:"lineage"`
	Names    []string  `json:"names"`
	Issued   bool      `json:"issued"`
	Serial   string    `json:"serial,omitempty"`
	NotAfter time.Time `json:"not_after,omitzero"`
	Due      time.Time `json:"due,omitzero"`    // when it is to be renewed; zero where that is not known
	Method   string    `json:"method"`          // with the draft that the record is of, and that it is experimental
	Account  string    `json:"account"`         // URI
	Error    string    `json:"error,omitempty"` // why it was not issued
}

// Issue gets a certificate for names, all canonical, as the lineage of that name: a new one, or one that exists. Where
// that one is for the same names at the same CA and not due, nothing is done unless force is set.
func (i *Issuer) Issue(ctx context.Context, lineage string, names []string, force bool) (Outcome, error) {
	start := time.Now()
	ctx, cancel := i.within(ctx, start)
	defer cancel()
	if err := checkName(lineage); err != nil {
		return Outcome{}, err
	}
	release, err := i.lock(ctx, start.Add(i.Budget/2))
	if err != nil {
		return Outcome{}, err
	}
	defer release()
	l, err := i.lineage(lineage)
	if err != nil && !errors.Is(err, errNoLineage) && fault.KindOf(err) != fault.Lineage {
		return Outcome{}, err
	}
	if err != nil || !same(l.Names, names) || l.Server != i.Server {
		l, force = &Lineage{Name: lineage, Profile: profileOf(l)}, true
	}
	l.Names, l.Server = names, i.Server
	return i.bring(ctx, l, force, start)
}

func profileOf(l *Lineage) string {
	if l == nil {
		return ""
	}
	return l.Profile
}

// Renew renews the lineages that are due, or those named if they are; with force whether they are or not. One that
// fails keeps none of the others from its turn. The error joins all failures.
func (i *Issuer) Renew(ctx context.Context, lineages []string, force bool) ([]Outcome, error) {
	release, err := i.lock(ctx, time.Now().Add(i.Budget/2))
	if err != nil {
		return nil, err
	}
	defer release()
	if len(lineages) == 0 {
		if lineages, err = i.Lineages(); err != nil {
			return nil, err
		}
	}
	var all []Outcome
	var failed []error
	for _, name := range lineages {
		o, err := i.renew(ctx, name, force)
		o.Lineage = name
		if err != nil {
			o.Error = err.Error()
			failed = append(failed, err)
		}
		all = append(all, o)
		if ctx.Err() != nil {
			break
		}
	}
	return all, errors.Join(failed...)
}

func (i *Issuer) renew(ctx context.Context, name string, force bool) (Outcome, error) {
	start := time.Now()
	ctx, cancel := i.within(ctx, start)
	defer cancel()
	l, err := i.lineage(name)
	if err != nil {
		return Outcome{}, err
	}
	if l.Server != i.Server {
		return Outcome{Names: l.Names}, fault.Errorf(fault.Usage, "the lineage %q is of the CA at %s, and the settings name %s", name, l.Server, i.Server).
			WithHint("set ACME_SERVER to the lineage's, or get a certificate of the other one: persist-issue issue --name %s -d %s", name, strings.Join(l.Names, " -d "))
	}
	return i.bring(ctx, l, force, start)
}

// bring gets a new certificate for the lineage if it is due or forced.
func (i *Issuer) bring(ctx context.Context, l *Lineage, force bool, start time.Time) (Outcome, error) {
	o := Outcome{Lineage: l.Name, Names: l.Names}
	if err := i.checkBeside(l.Name); err != nil {
		return o, err
	}
	a, err := i.Account()
	if err != nil {
		return o, err
	}
	o.Account = a.URI
	if !force {
		due, leaf := i.due(ctx, l)
		if leaf != nil && time.Now().Before(due) {
			o.Due, o.NotAfter, o.Serial = due, leaf.NotAfter, serial(leaf)
			o.Method, o.Account = terms{Draft: l.Draft}.experimental(), l.Account
			return o, nil
		}
	}
	if err := i.checkDisk(l.Name); err != nil {
		return o, err
	}
	if i.Profile != "" {
		l.Profile = i.Profile
	}
	var t terms
	var found []sighting
	m, p, resumed := i.resume(ctx, a, l)
	if resumed {
		t.Draft = p.Draft
	} else if m, t, found, err = i.order(ctx, a, l, start); err != nil {
		return o, err
	}
	leaf := m.chain[0]
	l.Version, l.Challenge, l.Draft, l.Account, l.Renewal = lineageVersion, Method, t.Draft, a.URI, nil
	if err := i.install(l, m); err != nil {
		return o, err
	}
	i.done(l.Name)
	o.Issued, o.Serial, o.NotAfter, o.Method = true, serial(leaf), leaf.NotAfter, t.experimental()
	i.Log.Info("issued", "lineage", l.Name, "names", strings.Join(l.Names, " "), "serial", o.Serial, "account", a.URI, "method", o.Method)
	for _, text := range t.endBefore(found, leaf.NotAfter) {
		i.Log.Warn(text)
	}
	return o, nil
}

// leafOf reads the lineage's certificate; nil where it has none that is of use.
func (i *Issuer) leafOf(ctx context.Context, l *Lineage) *x509.Certificate {
	m, err := certbot.ReadLive(ctx, i.Root, l.Name)
	if err != nil {
		return nil
	}
	b, err := bundle.Parse(m.Chain, m.Key, time.Now())
	if err != nil || b.Covers(l.Names) != nil {
		return nil
	}
	return b.Leaf()
}

func serial(leaf *x509.Certificate) string { return fmt.Sprintf("%X", leaf.SerialNumber) }

func same(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

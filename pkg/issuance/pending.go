package issuance

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/crypto/acme"

	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/persist"
)

// pending is an order that the CA is asked to fill, with the key of its certificate: renewal/NAME.order, from before that
// question until the certificate is the lineage's. What is lost in between, an answer or this process, the next run
// fetches in place of ordering anew: CAs count certificates, also those that never arrived.
type pending struct {
	Version int           `json:"version"`
	Order   string        `json:"order"` // URL
	Server  string        `json:"server"`
	Account string        `json:"account"`
	Names   []string      `json:"names"`
	Profile string        `json:"profile,omitempty"`
	Draft   persist.Draft `json:"draft"` // of the records that let the account have it
	Key     keyPEM        `json:"key"`
}

const pendingVersion = 1

func (i *Issuer) pendingFile(lineage string) string {
	return filepath.Join(i.Root, "renewal", lineage+".order")
}

// begin makes a key for an order and puts both on disk.
func (i *Issuer) begin(l *Lineage, o *acme.Order, a Account, t terms) (*pending, error) {
	_, key, err := newKey()
	if err != nil {
		return nil, err
	}
	p := &pending{Version: pendingVersion, Order: o.URI, Server: i.Server, Account: a.URI, Names: l.Names, Profile: l.Profile, Draft: t.Draft, Key: key}
	if _, err := i.makeDir("renewal"); err != nil {
		return nil, err
	}
	raw, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return nil, err
	}
	if err := replace(i.pendingFile(l.Name), append(raw, '\n')); err != nil {
		return nil, err
	}
	i.step("order kept")
	return p, nil
}

// done forgets the lineage's order.
func (i *Issuer) done(lineage string) {
	if err := os.Remove(i.pendingFile(lineage)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		i.Log.Warn("what is kept of an order that is done cannot be removed", "error", err)
	}
}

// resume returns the certificate that an earlier run has ordered and not got. Anything that keeps it from that is no
// error: a new order is what helps.
func (i *Issuer) resume(ctx context.Context, a Account, l *Lineage) (material, *pending, bool) {
	raw, err := os.ReadFile(i.pendingFile(l.Name))
	if err != nil {
		return material{}, nil, false
	}
	p := &pending{}
	err = json.Unmarshal(raw, p)
	if err != nil || p.Version != pendingVersion || p.Server != i.Server || p.Account != a.URI || p.Profile != l.Profile || !same(p.Names, l.Names) {
		i.done(l.Name)
		return material{}, nil, false
	}
	m, err := i.dial(a).resume(ctx, p)
	if err != nil {
		i.Log.Info("an order that was cut short is given up", "lineage", l.Name, "order", p.Order, "error", err)
		if fault.KindOf(err) == fault.Verdict {
			i.done(l.Name)
		}
		return material{}, nil, false
	}
	leaf := m.chain[0]
	if has := i.leafOf(ctx, l); has != nil && has.Equal(leaf) || !time.Now().Before(unsuggested(leaf.NotBefore, leaf.NotAfter)) {
		i.done(l.Name)
		return material{}, nil, false
	}
	return m, p, true
}

// resume goes on where an order is. An error of kind Verdict means that it leads nowhere.
func (c *ca) resume(ctx context.Context, p *pending) (material, error) {
	o, err := c.client.GetOrder(ctx, p.Order)
	if err == nil && o.Status == acme.StatusProcessing {
		o, err = c.client.WaitOrder(ctx, p.Order)
	}
	switch _, refused := errors.AsType[*acme.Error](err); {
	case refused:
		return material{}, fault.Errorf(fault.Verdict, "%w", plain(err))
	case err != nil:
		return material{}, err
	}
	switch o.Status {
	case acme.StatusReady:
		o.URI = p.Order
		return c.finalize(ctx, o, p)
	case acme.StatusValid:
		der, err := c.client.FetchCert(ctx, o.CertURL, true)
		if err != nil {
			return material{}, err
		}
		return p.material(der)
	}
	return material{}, fault.Errorf(fault.Verdict, "it is %s", clean(o.Status))
}

// material puts a certificate and its key together, and checks both.
func (p *pending) material(der [][]byte) (material, error) {
	m := material{key: []byte(p.Key)}
	for _, raw := range der {
		cert, err := x509.ParseCertificate(raw)
		if err != nil {
			return material{}, fault.Errorf(fault.Other, "the CA sends a certificate that cannot be read: %w", err)
		}
		m.chain = append(m.chain, cert)
	}
	return m, m.check(p.Names)
}

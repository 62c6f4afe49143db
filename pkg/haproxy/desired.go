package haproxy

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/certhook/certhook/pkg/bundle"
	"github.com/certhook/certhook/pkg/certbot"
	"github.com/certhook/certhook/pkg/fault"
)

// desired is what one lineage wants HAProxy to have.
type desired struct {
	bundle *bundle.Bundle
	pem    []byte // canonical
}

// lineages reads those that are named, or all. One that cannot be used is a state with an error and stops
// no other. The error is of kind Usage: the names themselves are no good.
func (a *Applier) lineages(ctx context.Context, names []string) ([]State, error) {
	root, err := a.find()
	if err != nil {
		return nil, err
	}
	a.found = root
	if a.Renewed.Dir != "" && !slices.ContainsFunc(a.Roots, func(r string) bool {
		return sameDir(filepath.Dir(a.Renewed.Dir), filepath.Join(r, "live"))
	}) {
		return nil, fault.Errorf(fault.Usage, "certbot has renewed %q, which lies in none of %s", a.Renewed.Dir, strings.Join(a.Roots, ", ")).
			WithHint("set CERTBOT_CONFIG_DIR to certbot's --config-dir")
	}
	for _, name := range names {
		if root[name] == "" {
			return nil, fault.Errorf(fault.Usage, "there is no lineage %q in %s", name, strings.Join(a.Roots, " or ")).
				WithHint("certbot certificates lists certbot's; without a name all are applied")
		}
	}
	if len(names) == 0 {
		for name := range root {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var states []State
	for _, name := range slices.Compact(names) {
		s := State{Name: name, File: filepath.Join(a.CertDir, name+".pem"), Action: None}
		var b *bundle.Bundle
		if b, s.Err = a.read(ctx, root[name], name); s.Err == nil {
			s.desired = &desired{bundle: b, pem: b.PEM()}
			if file, err := a.place(name, b.Leaf()); err != nil {
				s.Err = err
			} else {
				s.File = file
			}
		}
		if b != nil {
			s.Names, s.NotAfter = b.Leaf().DNSNames, b.Leaf().NotAfter
			s.Serial, s.Fingerprint = b.Serial(), b.Fingerprint()
		}
		states = append(states, s)
	}
	apart(states)
	return states, nil
}

// find maps the lineages to the roots that hold them.
func (a *Applier) find() (map[string]string, error) {
	root := map[string]string{}
	if !slices.ContainsFunc(a.Roots, func(r string) bool { _, err := os.Stat(r); return err == nil }) {
		return nil, fault.Errorf(fault.Usage, "there is neither %s", strings.Join(a.Roots, " nor ")).
			WithHint("set CERTBOT_CONFIG_DIR to certbot's --config-dir")
	}
	for _, r := range a.Roots {
		names, err := certbot.LiveNames(r)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if other := root[name]; other != "" {
				return nil, fault.Errorf(fault.Usage, "the lineage %q is both in %q and in %q, and HAProxy can have one %s.pem only", name, other, r, name).
					WithHint("delete or rename one of them")
			}
			root[name] = r
		}
	}
	return root, nil
}

// read reads a lineage. Where there is an error, the bundle is what there is of a certificate nobody could use, or nil.
func (a *Applier) read(ctx context.Context, root, name string) (*bundle.Bundle, error) {
	m, err := certbot.ReadLive(ctx, root, name)
	if err != nil {
		return nil, err
	}
	b, err := bundle.Parse(m.Chain, m.Key, a.now())
	if err != nil {
		b, _ = bundle.Read(m.Chain)
		return b, fault.Errorf(fault.Lineage, "lineage %q: %w", name, err)
	}
	if len(b.Leaf().DNSNames) == 0 {
		return b, fault.Errorf(fault.Lineage, "lineage %q: the certificate is for IP addresses alone, of which nobody could see that HAProxy serves it", name)
	}
	if a.Renewed.Dir != "" && sameDir(a.Renewed.Dir, m.Dir) {
		if err := b.Covers(a.Renewed.Names); err != nil {
			return b, fault.Errorf(fault.Lineage, "lineage %q: certbot says that it renewed more names: %w", name, err)
		}
	}
	return b, nil
}

// sameDir reports whether two paths lead to one folder.
func sameDir(a, b string) bool {
	one, err := os.Stat(a)
	other, err2 := os.Stat(b)
	return errors.Join(err, err2) == nil && os.SameFile(one, other)
}

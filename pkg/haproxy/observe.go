package haproxy

import (
	"bytes"
	"context"
	"crypto/sha1" //nolint:gosec // it is what HAProxy calls certificates by
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/certhook/certhook/pkg/bundle"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/haproxy/wire"
)

// atOnce is how many handshakes are made at a time.
const atOnce = 16

// observeDisk compares the PEM file with the lineage: what it holds, and who may read it.
func (a *Applier) observeDisk(s *State) error {
	mode, gid, err := a.access()
	if err != nil {
		return err
	}
	got, err := os.ReadFile(s.File)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.Disk = Absent
	case err != nil:
		return fault.Errorf(fault.Usage, "look at HAProxy's certificates: %w", err)
	case bytes.Equal(got, s.desired.pem):
		s.Disk = Same
		if info, err := os.Stat(s.File); err != nil || info.Mode().Perm() != mode || gid >= 0 && int(info.Sys().(*syscall.Stat_t).Gid) != gid {
			s.Disk = Other
		}
	default:
		s.Disk = Other
		if b, err := bundle.Read(got); err == nil {
			s.seen(b.Leaf().NotBefore)
		}
	}
	return nil
}

// seen notes when a certificate in the place of ours was made.
func (s *State) seen(notBefore time.Time) {
	if notBefore.After(s.desired.bundle.Leaf().NotBefore) && notBefore.After(s.younger) {
		s.younger = notBefore
	}
}

// observeMemory compares the stores that come from the lineage's file.
func (s *State) observeMemory(i *instance) {
	s.Memory, s.asked = nil, true
	for _, name := range i.storesOf(s.File) {
		c, asked := i.certs[name]
		h := Held{Name: name, State: Other, Used: c.Status == "Used", Serial: c.Serial}
		switch {
		case !asked, c.SHA1 == "" && c.Serial == s.Serial:
			h.State = Unseen // not asked about, or of a kind (Ed25519) that HAProxy 2.6 describes in part only
		case c.SHA1 == s.Fingerprint:
			h.State = Same
		default:
			s.seen(c.NotBefore)
		}
		s.Memory = append(s.Memory, h)
	}
}

// held reports whether every store has what the lineage has, as far as can be known; there has to be one. Where it
// cannot be known the wire has to tell, so that it has to be looked at.
func (s *State) held() bool {
	for _, h := range s.Memory {
		if h.State != Same && (h.State != Unseen || len(s.Wire) == 0) {
			return false
		}
	}
	return len(s.Memory) > 0
}

// unseen reports whether it is unknown what a store holds.
func (s *State) unseen() bool {
	return slices.ContainsFunc(s.Memory, func(h Held) bool { return h.State == Unseen })
}

// observeWire makes a handshake for each name at each place where the lineage has to show, if it has changed or
// is in the sample.
func (a *Applier) observeWire(ctx context.Context, i *instance, s *State, changed bool) {
	s.Wire = nil
	// Without a stats socket the wire is the only witness.
	if a.ProbesOff || !a.VerifyAll && !changed && !a.sample[s.Name] && i.admin != nil {
		return
	}
	targets := a.targets(i, s.File)
	for _, t := range targets {
		for _, name := range s.Names {
			s.Wire = append(s.Wire, Seen{Bind: t.Address, Name: name})
		}
	}
	var wg sync.WaitGroup
	turns := make(chan struct{}, atOnce)
	n := 0
	for _, t := range targets {
		for range s.Names {
			seen := &s.Wire[n]
			n++
			wg.Go(func() {
				turns <- struct{}{}
				defer func() { <-turns }()
				*seen = s.desired.probe(ctx, t, seen.Name)
			})
		}
	}
	wg.Wait()
}

func (d *desired) probe(ctx context.Context, t target, name string) Seen {
	seen := Seen{Bind: t.Address, Name: name}
	answer, err := wire.Probe(ctx, t.Target, name, wire.AlgorithmOf(d.bundle.Leaf()))
	switch {
	case errors.Is(err, wire.ErrUnasked), t.doubtful && errors.Is(err, wire.ErrDown):
		// TLS 1.3 leaves it to the server which of its certificates it shows; and nobody has to listen there.
		seen.State, seen.Detail = Unasked, err.Error()
	case errors.Is(err, wire.ErrNoCertificate):
		seen.State, seen.Detail = Absent, err.Error()
	case err != nil:
		seen.State, seen.Detail = Unseen, err.Error()
	case wire.Same(answer.Chain, d.bundle.Chain):
		seen.State = Same
	case t.maybe:
		seen.State = Unasked
	default:
		seen.State = Other
	}
	if err == nil && len(answer.Chain) > 0 {
		if leaf, err := x509.ParseCertificate(answer.Chain[0]); err == nil {
			seen.Serial = (&bundle.Bundle{Chain: []*x509.Certificate{leaf}}).Serial()
			if seen.State == Other {
				seen.Detail = "serves " + strings.Join(leaf.DNSNames, ", ")
			}
		}
		seen.sha1 = fmt.Sprintf("%X", sha1.Sum(answer.Chain[0]))
	}
	return seen
}

// served reports whether every handshake showed what the lineage has.
func (s *State) served() bool {
	for _, w := range s.Wire {
		if w.State != Same && w.State != Unasked {
			return false
		}
	}
	return true
}

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
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/certhook/certhook/pkg/bundle"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/haproxy/wire"
)

// atOnce is how many handshakes are made at a time.
const atOnce = 16

// observeDisk compares the PEM file with the lineage.
func (s *State) observeDisk() error {
	got, err := os.ReadFile(s.File)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.Disk = Absent
	case err != nil:
		return fault.Errorf(fault.Usage, "look at HAProxy's certificates: %w", err)
	case bytes.Equal(got, s.desired.pem):
		s.Disk = Same
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
func (s *State) observeMemory(ctx context.Context, i *instance) error {
	s.Memory = nil
	for _, name := range i.stores.Names {
		if !i.isFile(name, s.File) {
			continue
		}
		c, err := i.admin.Show(ctx, name)
		if err != nil {
			return err
		}
		h := Held{Name: name, State: Other, Used: c.Status == "Used", Serial: c.Serial}
		// What exceeds HAProxy's buffer comes without its end, where the fingerprint stands.
		if c.SHA1 == s.Fingerprint || c.SHA1 == "" && c.Serial == s.Serial {
			h.State = Same
		} else {
			s.seen(c.NotBefore)
		}
		s.Memory = append(s.Memory, h)
	}
	return nil
}

// isFile reports whether a store's name, which is a path as the configuration wrote it, leads to a file.
func (i *instance) isFile(name, file string) bool {
	if !filepath.IsAbs(name) && i.process != nil {
		name = filepath.Join(fmt.Sprintf("/proc/%d/cwd", i.process.PID), name)
	}
	if filepath.Base(name) != filepath.Base(file) && !isLink(name) {
		return false
	}
	return samePath(name, file) || filepath.Clean(name) == filepath.Clean(file)
}

func isLink(name string) bool {
	info, err := os.Lstat(name)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// held reports whether every store has what the lineage has; there has to be one.
func (s *State) held() bool {
	for _, h := range s.Memory {
		if h.State != Same {
			return false
		}
	}
	return len(s.Memory) > 0
}

// observeWire makes a handshake for each name at each place where the lineage has to show, if it has changed or
// is in the sample.
func (a *Applier) observeWire(ctx context.Context, i *instance, s *State, changed bool) {
	s.Wire = nil
	if a.ProbesOff || !a.VerifyAll && !changed && !a.sample[s.Name] {
		return
	}
	for _, t := range a.targets(i, s.File) {
		for _, name := range s.Names {
			s.Wire = append(s.Wire, Seen{Bind: t.Address, Name: name})
		}
	}
	var wg sync.WaitGroup
	turns := make(chan struct{}, atOnce)
	n := 0
	for _, t := range a.targets(i, s.File) {
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

func (d *desired) probe(ctx context.Context, t wire.Target, name string) Seen {
	seen := Seen{Bind: t.Address, Name: name}
	answer, err := wire.Probe(ctx, t, name, wire.AlgorithmOf(d.bundle.Leaf()))
	switch {
	case errors.Is(err, wire.ErrNoCertificate):
		seen.State, seen.Detail = Absent, err.Error()
	case err != nil:
		seen.State, seen.Detail = Unseen, err.Error()
	case wire.Same(answer.Chain, d.bundle.Chain):
		seen.State = Same
	default:
		seen.State = Other
	}
	if err == nil && len(answer.Chain) > 0 {
		if leaf, err := x509.ParseCertificate(answer.Chain[0]); err == nil {
			seen.Serial = fmt.Sprintf("%X", leaf.SerialNumber)
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
		if w.State != Same {
			return false
		}
	}
	return true
}

// culprit names the store that HAProxy serves in place of ours: an older certificate for the same name, in
// another file that it prefers.
func (i *instance) culprit(ctx context.Context, seen Seen) string {
	if i.admin == nil {
		return ""
	}
	for _, name := range i.stores.Names {
		if c, err := i.admin.Show(ctx, name); err == nil && c.SHA1 == seen.sha1 {
			return name
		}
	}
	return ""
}

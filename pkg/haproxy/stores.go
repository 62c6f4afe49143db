package haproxy

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/certhook/certhook/pkg/bundle"
	"github.com/certhook/certhook/pkg/haproxy/admin"
)

// identity is a file, whatever path leads to it.
type identity struct{ device, inode uint64 }

func identify(path string) (identity, bool) {
	info, err := os.Stat(path)
	if err != nil {
		return identity{}, false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{}, false
	}
	return identity{uint64(stat.Dev), stat.Ino}, true
}

// index finds out which files the stores in memory come from. Their names are paths as the configuration has them,
// and several may lead to one file.
func (i *instance) index() {
	i.byFile, i.byPath = map[identity][]string{}, map[string][]string{}
	for _, name := range i.stores.Names {
		path := i.path(name)
		if id, ok := identify(path); ok {
			i.byFile[id] = append(i.byFile[id], name)
		}
		i.byPath[filepath.Clean(path)] = append(i.byPath[filepath.Clean(path)], name)
	}
}

// path leads to the file that a store comes from.
func (i *instance) path(name string) string {
	if !filepath.IsAbs(name) && i.process != nil {
		return filepath.Join(fmt.Sprintf("/proc/%d/cwd", i.process.PID), name)
	}
	return name
}

// storesOf lists the stores that come from a file, also from one that is gone.
func (i *instance) storesOf(file string) []string {
	names := slices.Clone(i.byPath[filepath.Clean(file)])
	if id, ok := identify(file); ok {
		for _, name := range i.byFile[id] {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// maxDescription is how large, in octets, HAProxy's description of a certificate may get before it is not asked for:
// of one that comes near its buffer of 16384 octets HAProxy 2.6 has crashed.
const maxDescription = 12 << 10

// description estimates how large HAProxy's description of a certificate is: the names make it long.
func description(leaf *x509.Certificate) int {
	n := 1024 + 2*len(leaf.RawSubject) + 2*len(leaf.RawIssuer)
	for _, name := range leaf.DNSNames {
		n += len("DNS:, ") + len(name)
	}
	return n
}

// learn asks for what the stores of some lineages hold. What is too large to ask for, or has a name that cannot be told
// to HAProxy, stays unknown; the wire tells.
func (i *instance) learn(ctx context.Context, states []*State) error {
	i.certs = map[string]admin.Certificate{}
	if i.admin == nil || !i.up {
		return nil
	}
	var names []string
	for _, s := range states {
		// HAProxy may hold what the lineage has, or what its file on disk has.
		large := description(s.desired.bundle.Leaf()) > maxDescription
		if raw, err := os.ReadFile(s.File); err == nil {
			b, err := bundle.Read(raw)
			large = large || err == nil && description(b.Leaf()) > maxDescription
		}
		for _, name := range i.storesOf(s.File) {
			if !large && admin.Plain(name) {
				names = append(names, name)
			}
		}
	}
	certs, err := i.admin.ShowAll(ctx, names)
	if !errors.Is(err, admin.ErrUnknownName) {
		i.certs = certs
		return pending(err)
	}
	// One of them has gone meanwhile, which is no trouble of the others'.
	for _, name := range names {
		c, err := i.admin.Show(ctx, name)
		if err == nil {
			i.certs[name] = c
		} else if !errors.Is(err, admin.ErrUnknownName) {
			return pending(err)
		}
	}
	return nil
}

// culprit names the store that HAProxy serves in place of ours: another certificate for the same name, in a file that
// it prefers. It is looked for on disk.
func (i *instance) culprit(seen Seen) string {
	for _, name := range i.stores.Names {
		raw, err := os.ReadFile(i.path(name))
		if err != nil {
			continue
		}
		if b, err := bundle.Read(raw); err == nil && b.Fingerprint() == seen.sha1 {
			return name
		}
	}
	return ""
}

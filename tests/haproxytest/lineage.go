package haproxytest

import (
	"fmt"
	"os"
	"path/filepath"
)

// Lineages is a folder in certbot's layout.
type Lineages struct {
	Root string
	tb   TB
	n    map[string]int
}

// NewLineages makes one that vanishes with the test.
func NewLineages(tb TB) *Lineages {
	tb.Helper()
	root, err := os.MkdirTemp("", "lineages-")
	if err != nil {
		tb.Fatalf("haproxytest: %v", err)
	}
	tb.Cleanup(func() { os.RemoveAll(root) })
	l := &Lineages{Root: root, tb: tb, n: map[string]int{}}
	l.put(filepath.Join(root, "live", "README"), []byte("This directory contains your keys and certificates.\n"))
	return l
}

func (l *Lineages) put(path string, content []byte) {
	l.tb.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		l.tb.Fatalf("haproxytest: %v", err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		l.tb.Fatalf("haproxytest: %v", err)
	}
}

// Live is the folder of a lineage.
func (l *Lineages) Live(name string) string { return filepath.Join(l.Root, "live", name) }

// Renew gives a lineage its next version, as certbot does: four files, then their links, one after the other.
func (l *Lineages) Renew(name string, p Pair) {
	l.tb.Helper()
	l.RenewWith(name, p.Cert, p.Issuer, p.PrivateKey)
}

// RenewWith is Renew with whatever there is to be in the files.
func (l *Lineages) RenewWith(name string, cert, chain, key []byte) {
	l.tb.Helper()
	l.n[name]++
	n := l.n[name]
	files := []struct {
		name    string
		content []byte
	}{{"cert", cert}, {"privkey", key}, {"chain", chain}, {"fullchain", append(append([]byte(nil), cert...), chain...)}}
	for _, f := range files {
		l.put(filepath.Join(l.Root, "archive", name, fmt.Sprintf("%s%d.pem", f.name, n)), f.content)
	}
	if err := os.MkdirAll(l.Live(name), 0o700); err != nil {
		l.tb.Fatalf("haproxytest: %v", err)
	}
	for _, f := range files {
		link := filepath.Join(l.Live(name), f.name+".pem")
		_ = os.Remove(link + ".new")
		if err := os.Symlink(fmt.Sprintf("../../archive/%s/%s%d.pem", name, f.name, n), link+".new"); err != nil {
			l.tb.Fatalf("haproxytest: %v", err)
		}
		if err := os.Rename(link+".new", link); err != nil {
			l.tb.Fatalf("haproxytest: %v", err)
		}
	}
}

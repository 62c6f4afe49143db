package haproxytest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// Lineages is a folder in certbot's layout: live/NAME holds links to the newest files in archive/NAME.
type Lineages struct {
	Root string

	tb TB
	mu sync.Mutex
	n  map[string]int // newest version, by lineage
}

// Kinds are the four files of a version, in the order in which certbot switches the links.
var Kinds = []string{"cert", "privkey", "chain", "fullchain"}

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
	l.must(os.MkdirAll(filepath.Dir(path), 0o700))
	l.must(os.WriteFile(path, content, 0o600))
}

func (l *Lineages) must(err error) {
	l.tb.Helper()
	if err != nil {
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
	n := l.Archive(name, cert, chain, key)
	for _, kind := range Kinds {
		l.Switch(name, kind, n)
	}
}

// Archive writes the files of the next version and leaves the links alone. It returns the version.
func (l *Lineages) Archive(name string, cert, chain, key []byte) int {
	l.tb.Helper()
	l.mu.Lock()
	l.n[name]++
	n := l.n[name]
	l.mu.Unlock()
	for kind, content := range map[string][]byte{
		"cert": cert, "privkey": key, "chain": chain, "fullchain": append(bytes.Clone(cert), chain...),
	} {
		l.put(filepath.Join(l.Root, "archive", name, fmt.Sprintf("%s%d.pem", kind, n)), content)
	}
	if n == 1 {
		l.put(filepath.Join(l.Live(name), "README"), []byte("This directory contains your keys and certificates.\n"))
		l.put(filepath.Join(l.Root, "renewal", name+".conf"), []byte(l.renewal(name)))
	}
	return n
}

// Switch lets one link of a lineage lead to a version. As with certbot, there is a moment without the link.
func (l *Lineages) Switch(name, kind string, n int) {
	l.tb.Helper()
	link := filepath.Join(l.Live(name), kind+".pem")
	if err := os.Remove(link); !errors.Is(err, fs.ErrNotExist) {
		l.must(err)
	}
	l.must(os.Symlink(fmt.Sprintf("../../archive/%s/%s%d.pem", name, kind, n), link))
}

// renewal is what certbot remembers of a lineage.
func (l *Lineages) renewal(name string) string {
	text := "version = 2.1.0\narchive_dir = " + filepath.Join(l.Root, "archive", name) + "\n"
	for _, kind := range Kinds {
		text += fmt.Sprintf("%s = %s\n", kind, filepath.Join(l.Live(name), kind+".pem"))
	}
	return text
}

package haproxytest

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// Lineages is a folder in certbot's layout, as /etc/letsencrypt: live/NAME holds links to the newest files
// in archive/NAME.
type Lineages struct {
	Root string

	tb      TB
	mu      sync.Mutex
	version map[string]int
}

// kinds are the four files of a version, in the order in which certbot switches the links.
var kinds = []string{"cert", "privkey", "chain", "fullchain"}

// NewLineages makes the folder, which need not exist.
func NewLineages(tb TB, root string) *Lineages {
	tb.Helper()
	l := &Lineages{Root: root, tb: tb, version: map[string]int{}}
	for _, folder := range []string{"live", "archive", "renewal"} {
		l.must(os.MkdirAll(filepath.Join(root, folder), 0o700))
	}
	l.write(filepath.Join(root, "live", "README"), []byte("One folder for every certificate.\n"), 0o644)
	return l
}

// Renew writes the next version of a lineage, the first one if there is none, and switches the links. It
// returns the version's number.
func (l *Lineages) Renew(name string, p Pair) int {
	l.tb.Helper()
	return l.RenewSlowly(name, p, func(string) {})
}

// RenewSlowly is Renew with a call after every link that was switched, by the name of its file without
// ".pem": certbot switches them one after the other, and is not atomic about one either.
func (l *Lineages) RenewSlowly(name string, p Pair, switched func(kind string)) int {
	l.tb.Helper()
	n := l.Archive(name, p)
	for _, kind := range kinds {
		l.Switch(name, kind, n)
		switched(kind)
	}
	return n
}

// Archive writes the files of the next version and leaves the links alone.
func (l *Lineages) Archive(name string, p Pair) int {
	l.tb.Helper()
	l.mu.Lock()
	l.version[name]++
	n := l.version[name]
	l.mu.Unlock()
	l.must(os.MkdirAll(filepath.Join(l.Root, "archive", name), 0o700))
	l.write(l.archived(name, "privkey", n), p.Key, 0o600)
	l.write(l.archived(name, "cert", n), p.Cert(), 0o644)
	l.write(l.archived(name, "chain", n), p.Issuers(), 0o644)
	l.write(l.archived(name, "fullchain", n), p.Chain, 0o644)
	if n == 1 {
		l.must(os.MkdirAll(l.Live(name), 0o700))
		l.write(filepath.Join(l.Live(name), "README"), []byte("The files of one certificate.\n"), 0o644)
		l.write(filepath.Join(l.Root, "renewal", name+".conf"), []byte(l.renewal(name)), 0o644)
	}
	return n
}

// Switch lets one link of a lineage lead to a version. As with certbot, there is a moment without the link.
func (l *Lineages) Switch(name, kind string, n int) {
	l.tb.Helper()
	link := filepath.Join(l.Live(name), kind+".pem")
	if err := os.Remove(link); !os.IsNotExist(err) {
		l.must(err)
	}
	l.must(os.Symlink(fmt.Sprintf("../../archive/%s/%s%d.pem", name, kind, n), link))
}

// Live returns the folder with the links of a lineage.
func (l *Lineages) Live(name string) string { return filepath.Join(l.Root, "live", name) }

// Remove takes the link of one file away: cert, privkey, chain or fullchain.
func (l *Lineages) Remove(name, kind string) {
	l.tb.Helper()
	l.must(os.Remove(filepath.Join(l.Live(name), kind+".pem")))
}

func (l *Lineages) archived(name, kind string, n int) string {
	return filepath.Join(l.Root, "archive", name, fmt.Sprintf("%s%d.pem", kind, n))
}

// renewal is what certbot remembers of a lineage.
func (l *Lineages) renewal(name string) string {
	text := "version = 2.1.0\narchive_dir = " + filepath.Join(l.Root, "archive", name) + "\n"
	for _, kind := range kinds {
		text += fmt.Sprintf("%s = %s\n", kind, filepath.Join(l.Live(name), kind+".pem"))
	}
	return text
}

func (l *Lineages) write(path string, content []byte, mode os.FileMode) {
	l.tb.Helper()
	l.must(os.WriteFile(path, content, mode))
}

func (l *Lineages) must(err error) {
	l.tb.Helper()
	if err != nil {
		l.tb.Fatalf("haproxytest: %v", err)
	}
}

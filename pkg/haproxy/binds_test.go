package haproxy

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/certhook/certhook/pkg/haproxy/conf"
)

// A list of thousands of lines takes no time for each of as many lineages. Looked up line by line it takes ten seconds and more.
func TestLongList(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const n = 3000
	var list strings.Builder
	file := func(i int) string { return filepath.Join(dir, fmt.Sprintf("n%05d.pem", i)) }
	for i := range n {
		fmt.Fprintf(&list, "%s n%05d.test\n", file(i), i)
		if err := os.WriteFile(file(i), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"list": list.String(), "haproxy.cfg": "frontend f\n\tbind :443 ssl crt-list list\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	begin := time.Now()
	c, err := conf.Reader{Dir: dir}.Read([]string{"haproxy.cfg"})
	if err != nil {
		t.Fatal(err)
	}
	i := &instance{conf: c}
	i.indexBinds()
	for k := range n {
		if len(i.loading(file(k))) != 1 {
			t.Fatalf("%s: not found", file(k))
		}
	}
	if len(i.loading(filepath.Join(dir, "other.pem"))) != 0 {
		t.Error("found what is not in the list")
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("%d lines for %d lineages took %v", n, n, took)
	}
}

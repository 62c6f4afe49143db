package haproxy

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The file is one that a collector takes: each metric described before its samples, no sample twice, labels escaped.
func TestMetrics(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077)) // certbot's
	dir := t.TempDir()
	path := filepath.Join(dir, "certhook.prom")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	old, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	states := []State{
		{Name: "a.test", NotAfter: time.Unix(1893456000, 5), Served: true},
		{Name: "b.test"},
		{Name: "odd\\\"\nnäme"},
	}
	if err := WriteMetrics(path, states, true, time.Unix(1893450000, 0)); err != nil {
		t.Fatal(err)
	}
	if b := make([]byte, 10); true {
		if n, _ := old.Read(b); string(b[:n]) != "old" {
			t.Error("who reads the old file meanwhile reads parts of the new one")
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o644 {
		t.Errorf("%v, %v: a collector of another user has to read it", info.Mode(), err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("there is more in the folder now: %v", left)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	samples := grammar(t, string(text))
	for sample, want := range map[string]string{
		`certhook_certificate_not_after_seconds{lineage="a.test"}`: "1893456000",
		`certhook_certificate_not_after_seconds{lineage="b.test"}`: "0",
		`certhook_haproxy_served{lineage="a.test"}`:                "1",
		`certhook_haproxy_served{lineage="b.test"}`:                "0",
		`certhook_haproxy_served{lineage="odd\\\"\nnäme"}`:         "0",
		`certhook_haproxy_looked`:                                  "1",
		`certhook_haproxy_checked_seconds`:                         "1893450000",
	} {
		if samples[sample] != want {
			t.Errorf("%s is %q, want %q", sample, samples[sample], want)
		}
	}
	if err := WriteMetrics(path, nil, false, time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	if text, _ = os.ReadFile(path); grammar(t, string(text))["certhook_haproxy_looked"] != "0" {
		t.Errorf("%s", text)
	}
}

// grammar reads Prometheus' text format strictly and returns the samples.
func grammar(t *testing.T, text string) map[string]string {
	t.Helper()
	line := regexp.MustCompile(`^(?:# (HELP) ([a-z_]+) [^\\]+|# (TYPE) ([a-z_]+) gauge|(([a-z_]+)(?:\{lineage="(?:[^"\\]|\\[\\"n])*"\})?) ([0-9]+))$`)
	samples, helped, typed := map[string]string{}, map[string]bool{}, map[string]bool{}
	if !strings.HasSuffix(text, "\n") {
		t.Error("the last line has no end")
	}
	last := ""
	for l := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		m := line.FindStringSubmatch(l)
		switch {
		case m == nil:
			t.Errorf("line %q is none of the format", l)
		case m[1] != "":
			if helped[m[2]] {
				t.Errorf("%s is described twice", m[2])
			}
			helped[m[2]] = true
		case m[3] != "":
			if typed[m[4]] || !helped[m[4]] {
				t.Errorf("%s: its type comes twice, or before its description", m[4])
			}
			typed[m[4]], last = true, m[4]
		default:
			if _, twice := samples[m[5]]; twice || m[6] != last {
				t.Errorf("%s comes twice, or among another metric's samples", m[5])
			}
			samples[m[5]] = m[7]
		}
	}
	return samples
}

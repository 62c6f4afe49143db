package config

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/certhook/certhook/pkg/fault"
)

var update = flag.Bool("update", false, "rewrite the expected errors in testdata")

// TestInvalid loads every testdata/invalid-*.env and compares the whole error text with the .txt beside it.
func TestInvalid(t *testing.T) {
	files, err := filepath.Glob("testdata/invalid-*.env")
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	for _, fixture := range files {
		t.Run(strings.TrimSuffix(filepath.Base(fixture), ".env"), func(t *testing.T) {
			data, err := os.ReadFile(fixture)
			if err != nil {
				t.Fatal(err)
			}
			path := write(t, filepath.Base(fixture), string(data), 0o600)
			_, err = Load(Options{File: path, Strict: true, NeedProvider: strings.Contains(fixture, "provider-")})
			if err == nil {
				t.Fatal("loaded without an error")
			}
			if kind := fault.KindOf(err); kind != fault.Usage {
				t.Errorf("kind %v, want Usage", kind)
			}
			got := strings.ReplaceAll(err.Error(), filepath.Dir(path)+"/", "") + "\n"
			if strings.Contains(strings.ToLower(got), "s3cr3t") {
				t.Errorf("the error shows a secret:\n%s", got)
			}
			expected := strings.TrimSuffix(fixture, ".env") + ".txt"
			if *update {
				if err := os.WriteFile(expected, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(expected)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("error:\n%swant:\n%s", got, want)
			}
		})
	}
}

// write makes a file in a directory of its own and returns its path.
func write(t *testing.T, name, content string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // past the umask
		t.Fatal(err)
	}
	return path
}

package lab_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/certhook/certhook/tests/lab"
)

func TestTokenSearch(t *testing.T) {
	if !lab.ShowsToken([]byte("x"+lab.Token[5:20]+"x")) || lab.ShowsToken([]byte(lab.Token[:11])) {
		t.Error("a part of the token is to be found, a crumb is not")
	}
	dir := t.TempDir()
	with := filepath.Join(dir, "below", "with")
	if err := os.Mkdir(filepath.Dir(with), 0o755); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{with: "k=" + lab.Token, filepath.Join(dir, "without"): "k="} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found, searched, err := lab.FilesWithToken(filepath.Join(dir, "nowhere"), dir)
	if err != nil || searched != 2 || !slices.Equal(found, []string{with}) {
		t.Errorf("found %q in %d files, %v", found, searched, err)
	}
}

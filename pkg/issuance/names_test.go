package issuance

import (
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/certhook/certhook/pkg/caa"
	"github.com/certhook/certhook/tests/labca"
)

// A name that certbot renews by its hooks has a CAA that allows either method, as far as the account is the same.
func TestShared(t *testing.T) {
	const server, account = "https://ca.test/dir", "https://ca.test/acct/1"
	dir := t.TempDir()
	write := func(path, text string) {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ca, err := labca.New()
	if err != nil {
		t.Fatal(err)
	}
	write("certbot/accounts/ca.test/dir/a/regr.json", fmt.Sprintf(`{"uri": %q}`, account))
	for name, params := range map[string]string{
		"hooks.test":    "authenticator = manual\nserver = " + server,
		"webroot.test":  "authenticator = webroot\nserver = " + server,
		"otherca.test":  "authenticator = manual\nserver = https://other.test/dir",
		"wildcard.test": "authenticator = manual\nserver = " + server,
	} {
		san := name
		if name == "wildcard.test" {
			san = "*." + name
		}
		cert, err := ca.Issue(san)
		if err != nil {
			t.Fatal(err)
		}
		write("certbot/live/"+name+"/cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]})))
		write("certbot/renewal/"+name+".conf", "version = 2.1.0\n[renewalparams]\naccount = a\n"+params+"\n")
	}
	i := &Issuer{Root: filepath.Join(dir, "state"), CertbotDir: filepath.Join(dir, "certbot"), Server: server}
	both := []string{"dns-01", Method}
	for _, tt := range []struct {
		domain, account string
		want            []string
	}{
		{"hooks.test", account, both},
		{"wildcard.test", account, both},
		{"hooks.test", account + "0", []string{Method}},
		{"webroot.test", account, []string{Method}},
		{"otherca.test", account, []string{Method}},
		{"none.test", account, []string{Method}},
	} {
		q := i.shared(caa.Question{Domain: tt.domain, Account: tt.account, Method: Method})
		if got := append([]string{q.Method}, q.Methods...); !slices.Equal(got, tt.want) {
			t.Errorf("%s for %s: %q, want %q", tt.domain, tt.account, got, tt.want)
		}
	}
}

func TestNames(t *testing.T) {
	i := &Issuer{Root: t.TempDir(), Server: "https://ca.test/dir"}
	if names := i.Names(); len(names) > 0 {
		t.Errorf("at first: %q", names)
	}
	for _, l := range []*Lineage{
		{Version: lineageVersion, Name: "a", Names: []string{"a.test", "*.a.test"}, Server: i.Server, Challenge: Method},
		{Version: lineageVersion, Name: "b", Names: []string{"b.test"}, Server: "https://other.test/dir", Challenge: Method},
		{Version: lineageVersion + 1, Name: "c", Names: []string{"c.test"}, Server: i.Server, Challenge: Method},
	} {
		if err := i.saveLineage(l); err != nil {
			t.Fatal(err)
		}
	}
	if names := i.Names(); !slices.Equal(names, []string{"a.test", "*.a.test"}) {
		t.Errorf("got %q", names)
	}
}

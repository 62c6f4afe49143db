package certbot

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

const (
	production = "https://acme-v02.api.letsencrypt.org/directory"
	staging    = "https://acme-staging-v02.api.letsencrypt.org/directory"
	lab        = "https://127.0.0.1:14000/dir"
)

// configDir is certbot's directory, as certbot lays it out.
type configDir struct {
	t    *testing.T
	path string
}

func newConfigDir(t *testing.T) configDir { return configDir{t, t.TempDir()} }

func (c configDir) write(path, text string) {
	c.t.Helper()
	path = filepath.Join(c.path, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// account writes an account's file below a server's path.
func (c configDir) account(serverPath, id string, number int) {
	c.t.Helper()
	c.write(filepath.Join("accounts", serverPath, id, "regr.json"), fmt.Sprintf(`{"body": {}, "uri": %q}`, uri(number)))
}

func uri(number int) string {
	return fmt.Sprintf("https://acme-v02.api.letsencrypt.org/acme/acct/%d", number)
}

// lineage writes a renewal configuration and a certificate.
func (c configDir) lineage(name, server, account string, names ...string) {
	c.t.Helper()
	c.write("renewal/"+name+".conf", "# renew_before_expiry = 30 days\nversion = 2.1.0\nserver = https://wrong.example/\n[renewalparams]\naccount = "+
		account+"\npref_challs = dns-01,\nserver = "+server+"\nauthenticator = manual\nmanual_auth_hook = /usr/local/bin/auth-hook -v \"a=b\"\n[[extra]]\naccount = wrong\n")
	c.certificate(name, names...)
}

func (c configDir) certificate(name string, names ...string) {
	c.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		c.t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: names}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		c.t.Fatal(err)
	}
	c.write("archive/"+name+"/cert1.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	if err := os.MkdirAll(filepath.Join(c.path, "live", name), 0o700); err != nil {
		c.t.Fatal(err)
	}
	c.link("../../archive/"+name+"/cert1.pem", "live/"+name+"/cert.pem")
}

func (c configDir) link(target, path string) {
	c.t.Helper()
	path = filepath.Join(c.path, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		c.t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		c.t.Fatal(err)
	}
}

const (
	v01 = "acme-v01.api.letsencrypt.org/directory"
	v02 = "acme-v02.api.letsencrypt.org/directory"
	stg = "acme-staging-v02.api.letsencrypt.org/directory"
)

func TestAccountFor(t *testing.T) {
	none := func(err error) bool { return errors.Is(err, ErrNoAccount) }
	unreadable := func(err error) bool {
		u, ok := errors.AsType[*UnreadableAccount](err)
		return ok && u.Path != "" && u.Err != nil
	}
	several := func(numbers ...int) func(error) bool {
		return func(err error) bool {
			s, ok := errors.AsType[SeveralAccounts](err)
			var want []string
			for _, n := range numbers {
				want = append(want, uri(n))
			}
			return ok && slices.Equal(s.URIs(), want)
		}
	}
	tests := []struct {
		name    string
		prepare func(configDir)
		server  string   // production unless said
		names   []string // svc.example.com unless said
		want    int      // number of the account
		fails   func(error) bool
	}{
		{name: "nothing", fails: none},
		{name: "no account yet", prepare: func(c configDir) { c.write("accounts/"+v02+"/.keep", "") }, fails: none},
		{name: "the only one", prepare: func(c configDir) { c.account(v02, "a", 1) }, want: 1},
		{name: "of a server with a port", prepare: func(c configDir) { c.account("127.0.0.1:14000/dir", "a", 1) }, server: lab, want: 1},
		{name: "of a server with a slash at its end", prepare: func(c configDir) { c.account("127.0.0.1:14000/dir", "a", 1) }, server: lab + "/", want: 1},
		{name: "staging's is not production's", prepare: func(c configDir) { c.account(stg, "a", 1) }, fails: none},
		{name: "one at each", prepare: func(c configDir) { c.account(stg, "a", 1); c.account(v02, "b", 2) }, server: staging, want: 1},
		{name: "several", prepare: func(c configDir) { c.account(v02, "a", 1); c.account(v02, "b", 2) }, fails: several(1, 2)},
		{name: "one with two ids", prepare: func(c configDir) { c.account(v02, "a", 1); c.account(v02, "b", 1) }, want: 1},

		{name: "directory linked from ACMEv1", prepare: func(c configDir) {
			c.account(v01, "a", 1)
			c.link(filepath.Join(c.path, "accounts", v01), "accounts/"+v02)
		}, want: 1},
		{name: "account linked from ACMEv1", prepare: func(c configDir) {
			c.account(v01, "a", 1)
			c.account(v02, "b", 2)
			c.link(filepath.Join(c.path, "accounts", v01, "a"), "accounts/"+v02+"/a")
		}, fails: several(1, 2)},
		{name: "link to nowhere", prepare: func(c configDir) { c.link("/nowhere", "accounts/"+v02) }, fails: unreadable},
		{name: "account linked to nowhere", prepare: func(c configDir) { c.link("/nowhere", "accounts/"+v02+"/a") }, fails: unreadable},

		{name: "no JSON", prepare: func(c configDir) { c.write("accounts/"+v02+"/a/regr.json", "{") }, fails: unreadable},
		{name: "no URI", prepare: func(c configDir) { c.write("accounts/"+v02+"/a/regr.json", `{"body": {}}`) }, fails: unreadable},
		{name: "a URI that is none", prepare: func(c configDir) { c.write("accounts/"+v02+"/a/regr.json", `{"uri": "https://a/;x=y"}`) }, fails: unreadable},
		{name: "no regr.json", prepare: func(c configDir) { c.write("accounts/"+v02+"/a/meta.json", "{}") }, fails: unreadable},
		{name: "a file in the directory's place", prepare: func(c configDir) { c.write("accounts/"+v02, "") }, fails: unreadable},
		// As certbot does, which leaves out what it cannot load.
		{name: "an unreadable one beside a good one", prepare: func(c configDir) { c.account(v02, "a", 1); c.write("accounts/"+v02+"/b/regr.json", "{") }, want: 1},

		{name: "the lineage's own", prepare: func(c configDir) {
			c.account(v02, "a", 1)
			c.account(v02, "b", 2)
			c.lineage("other", production, "a", "other.example.com")
			c.lineage("svc", production, "b", "svc.example.com", "*.svc.example.com")
		}, names: []string{"SVC.example.com", "svc.example.com"}, want: 2},
		{name: "a lineage with more names", prepare: func(c configDir) {
			c.account(v02, "a", 1)
			c.account(v02, "b", 2)
			c.lineage("svc", production, "b", "svc.example.com", "www.example.com")
		}, fails: several(1, 2)},
		{name: "a lineage with IDN", prepare: func(c configDir) {
			c.account(v02, "a", 1)
			c.account(v02, "b", 2)
			c.lineage("b", production, "b", "xn--bcher-kva.example")
		}, names: []string{"bücher.example"}, want: 2},
		{name: "a lineage of another server", prepare: func(c configDir) {
			c.account(v02, "a", 1)
			c.account(stg, "b", 2)
			c.lineage("svc", staging, "b", "svc.example.com")
		}, want: 1},
		{name: "a lineage whose account is gone", prepare: func(c configDir) {
			c.account(v02, "b", 2)
			c.lineage("svc", production, "a", "svc.example.com")
		}, want: 2},
		{name: "a lineage whose account cannot be read", prepare: func(c configDir) {
			c.account(v02, "b", 2)
			c.write("accounts/"+v02+"/a/regr.json", "")
			c.lineage("svc", production, "a", "svc.example.com")
		}, fails: unreadable},
		{name: "two lineages with one account", prepare: func(c configDir) {
			c.account(v02, "a", 1)
			c.account(v02, "b", 2)
			c.lineage("svc", production, "b", "svc.example.com")
			c.lineage("svc-0001", production, "b", "svc.example.com")
		}, want: 2},
		{name: "two lineages with an account each", prepare: func(c configDir) {
			c.account(v02, "a", 1)
			c.account(v02, "b", 2)
			c.lineage("svc", production, "b", "svc.example.com")
			c.lineage("svc-0001", production, "a", "svc.example.com")
		}, fails: several(1, 2)},
		{name: "lineages that cannot be read", prepare: func(c configDir) {
			c.account(v02, "a", 1)
			c.write("renewal/no-live.conf", "[renewalparams]\naccount = a\n")
			c.write("renewal/no-pem.conf", "[renewalparams]\naccount = a\n")
			c.write("live/no-pem/cert.pem", "nonsense")
			c.write("renewal/no-cert.conf", "[renewalparams]\naccount = a\n")
			c.write("live/no-cert/cert.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
		}, want: 1},
		{name: "a server that leads out", prepare: func(c configDir) { c.account("../x", "a", 1) }, server: "https://../../x", fails: none},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newConfigDir(t)
			if tt.prepare != nil {
				tt.prepare(c)
			}
			if tt.server == "" {
				tt.server = production
			}
			if tt.names == nil {
				tt.names = []string{"svc.example.com"}
			}
			got, err := AccountFor(c.path, tt.server, tt.names)
			switch {
			case tt.fails != nil:
				if err == nil || !tt.fails(err) || got != (Account{}) {
					t.Errorf("got %+v, %v", got, err)
				}
			case err != nil || got.URI != uri(tt.want):
				t.Errorf("got %+v, %v, want number %d", got, err, tt.want)
			}
		})
	}
}

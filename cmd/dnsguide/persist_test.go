package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/acme"

	"github.com/certhook/certhook/pkg/persist"
)

// machine is a host with a CA, certbot and persist-issue, as far as dnsguide reads them.
type machine struct {
	t       *testing.T
	dir     string
	server  string // directory URL
	asked   int    // for the directory
	environ []string
}

// newMachine makes a machine whose CA has that directory.
func newMachine(t *testing.T, directory string) *machine {
	t.Helper()
	m := &machine{t: t, dir: t.TempDir()}
	ca := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		m.asked++
		fmt.Fprint(w, directory)
	}))
	t.Cleanup(ca.Close)
	m.server = ca.URL + "/dir"
	m.environ = []string{
		"ACME_SERVER=" + m.server, "DNS_RESOLVERS=tcp://127.0.0.1:1;tcp://127.0.0.2:1", "CERTHOOK_CONFIG=" + filepath.Join(m.dir, "certhook.env"),
		"CERTBOT_CONFIG_DIR=" + filepath.Join(m.dir, "certbot"), "CERTHOOK_STATE_DIR=" + filepath.Join(m.dir, "state"),
	}
	m.write("certhook.env", "")
	return m
}

func (m *machine) write(path, text string) {
	m.t.Helper()
	path = filepath.Join(m.dir, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

// register gives certbot an account and returns the thumbprint of its key.
func (m *machine) register(uri string) string {
	m.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		m.t.Fatal(err)
	}
	d, err := key.Bytes()
	if err != nil {
		m.t.Fatal(err)
	}
	at := "certbot/accounts/" + strings.TrimPrefix(m.server, "http://") + "/a/"
	m.write(at+"regr.json", fmt.Sprintf(`{"uri": %q}`, uri))
	m.write(at+"private_key.json", fmt.Sprintf(`{"kty": "EC", "crv": "P-256", "d": %q}`, base64.RawURLEncoding.EncodeToString(d)))
	thumbprint, err := acme.JWKThumbprint(key.Public())
	if err != nil {
		m.t.Fatal(err)
	}
	return thumbprint
}

// owns gives persist-issue an account of its own.
func (m *machine) owns(uri string) {
	m.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		m.t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		m.t.Fatal(err)
	}
	m.write("state/accounts/"+strings.TrimPrefix(m.server, "http://")+"/accounts.json",
		fmt.Sprintf(`{"version": 1, "current": {"key": %q, "uri": %q}}`, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), uri))
}

// renews lets certbot renew a name by hooks.
func (m *machine) renews(name string) {
	m.t.Helper()
	var cert bytes.Buffer
	if certificate(m.t.Context(), []string{"certificate", name}, nil, nil, &cert, &cert) != 0 {
		m.t.Fatal(cert.String())
	}
	m.write("certbot/live/"+name+"/cert.pem", cert.String())
	m.write("certbot/renewal/"+name+".conf", "version = 2.1.0\n[renewalparams]\naccount = a\nauthenticator = manual\nserver = "+m.server+"\n")
}

// persists lets persist-issue renew a name.
func (m *machine) persists(name string) {
	m.t.Helper()
	m.write("state/renewal/"+strings.TrimPrefix(name, "*.")+".json", fmt.Sprintf(`{"version": 1, "names": [%q], "server": %q, "challenge": "dns-persist-01", "draft": "01"}`, name, m.server))
}

// records runs dnsguide records and returns the records that it prints, a line each.
func (m *machine) records(code int, args ...string) (records, all string) {
	m.t.Helper()
	var stdout, stderr bytes.Buffer
	args = append([]string{"dnsguide", "records", "--zonefile"}, args...)
	if got := run(m.t.Context(), args, m.environ, nil, &stdout, &stderr); got != code {
		m.t.Fatalf("%q: exit code %d, want %d\n%s%s", args, got, code, &stdout, &stderr)
	}
	for line := range strings.Lines(stdout.String()) {
		if !strings.HasPrefix(line, ";") {
			records += line
		}
	}
	return records, stdout.String() + stderr.String()
}

const acct = "http://127.0.0.1:1/acct/7" // the CA's own host would do as well

// What the CA offers settles the draft, and the key on disk is all that draft 02 takes besides.
func TestRecordsAskTheCA(t *testing.T) {
	const newer = `{"meta": {"caaIdentities": ["ca.example"], "issuerDomainNames": ["CA.example", "other.example"], "accountHashPrefix": "https://ca.example/h/"}}`
	const older = `{"meta": {"caaIdentities": ["ca.example"]}}`
	m := newMachine(t, newer)
	hash := persist.HashedAccount("https://ca.example/h/", "svc.example.com", m.register(acct), acct)
	got, _ := m.records(0, "-d", "svc.example.com", "--challenge", "dns-persist-01")
	if want := `_validation-persist.svc.example.com. 300 IN TXT "ca.example; accounturi=` + hash + `"`; !strings.Contains(got, want) {
		t.Errorf("got %swant %s", got, want)
	}
	if want := `"ca.example;validationmethods=dns-persist-01;accounturi=` + acct + `"`; !strings.Contains(got, want) {
		t.Errorf("got %swant %s", got, want)
	}
	if got, _ := m.records(0, "-d", "svc.example.com", "--challenge", "dns-persist-01", "--draft", "01"); !strings.Contains(got, "; accounturi="+acct+`"`) {
		t.Errorf("for draft 01: %s", got)
	}

	m = newMachine(t, older)
	m.register(acct)
	if got, _ := m.records(0, "-d", "svc.example.com", "--challenge", "dns-persist-01"); !strings.Contains(got, `"ca.example; accounturi=`+acct+`"`) {
		t.Errorf("where the CA offers no draft: %s", got)
	}
	if _, all := m.records(10, "-d", "svc.example.com", "--challenge", "dns-persist-01", "--draft", "02"); !strings.Contains(all, "accountHashPrefix") {
		t.Errorf("draft 02, which the CA does not offer: %s", all)
	}

	m = newMachine(t, newer)
	m.register(acct)
	m.environ = append(m.environ, "ISSUER_DOMAIN_NAME=set.example")
	got, _ = m.records(0, "-d", "svc.example.com", "--challenge", "dns-persist-01")
	if !strings.Contains(got, `"set.example; accounturi=`+acct+`"`) || !strings.Contains(got, `"set.example;validation`) || m.asked > 0 {
		t.Errorf("with the CA's name set it was asked %d times: %s", m.asked, got)
	}
	got, _ = m.records(0, "-d", "svc.example.com", "--challenge", "dns-persist-01", "--draft", "02")
	if !strings.Contains(got, `"set.example; accounturi=https://ca.example/h/sha-256/`) {
		t.Errorf("draft 02 with the CA's name set: %s", got)
	}
}

// A name that both certbot and persist-issue renew needs a CAA that lets in both, whichever of them one asks about.
func TestRecordsForSharedNames(t *testing.T) {
	m := newMachine(t, `{"meta": {"caaIdentities": ["ca.example"]}}`)
	m.register(acct)
	m.renews("hooked.example.com")
	m.persists("*.persisted.example.com")
	const both, hooks, persisted = `"ca.example;validationmethods=dns-01,dns-persist-01;`, `"ca.example;validationmethods=dns-01;`, `"ca.example;validationmethods=dns-persist-01;`
	for _, tt := range []struct{ name, challenge, want string }{
		{"hooked.example.com", "dns-persist-01", both},
		{"hooked.example.com", "dns-01", hooks},
		{"persisted.example.com", "dns-01", both},
		{"persisted.example.com", "dns-persist-01", persisted},
		{"neither.example.com", "dns-01", hooks},
		{"neither.example.com", "both", both},
	} {
		if got, _ := m.records(0, "-d", tt.name, "--challenge", tt.challenge); !strings.Contains(got, tt.name+". 300 IN CAA 0 issue "+tt.want) {
			t.Errorf("%s by %s: %swant %s", tt.name, tt.challenge, got, tt.want)
		}
	}

	// Each has a record of its own where they have different accounts.
	const other = "http://127.0.0.1:1/acct/8"
	m.owns(other)
	got, _ := m.records(0, "-d", "hooked.example.com", "--challenge", "dns-persist-01")
	if !strings.Contains(got, persisted+"accounturi="+other) || !strings.Contains(got, "; accounturi="+other) || strings.Contains(got, acct) {
		t.Errorf("persist-issue's own account: %s", got)
	}
	if got, _ := m.records(0, "-d", "hooked.example.com", "--challenge", "dns-01"); !strings.Contains(got, hooks+"accounturi="+acct) || strings.Contains(got, other) {
		t.Errorf("certbot's account: %s", got)
	}
	if got, all := m.records(0, "-d", "hooked.example.com", "--challenge", "both"); strings.Contains(got, "_validation-persist") || !strings.Contains(all, "PERSIST_ACCOUNT=certbot") {
		t.Errorf("both at once: %s", all)
	}
	m.environ = append(m.environ, "PERSIST_ACCOUNT=certbot")
	if got, _ := m.records(0, "-d", "hooked.example.com", "--challenge", "both"); !strings.Contains(got, both+"accounturi="+acct) || !strings.Contains(got, "; accounturi="+acct) {
		t.Errorf("both at once, with one account: %s", got)
	}
}

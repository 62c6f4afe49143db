package lab

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/certhook/certhook/tests/acmetest"
)

// Register has certbot make its first account and returns the account's URI.
func (l *Lab) Register() string {
	l.tb.Helper()
	l.register()
	return l.Account()
}

func (l *Lab) register(more ...string) {
	l.tb.Helper()
	args := append([]string{"register", "--non-interactive", "--agree-tos", "--register-unsafely-without-email"}, more...)
	if r := l.Certbot(args...); r.Code != 0 {
		l.tb.Fatalf("lab: certbot %q: %v", args, r)
	}
}

// Account returns the URI of certbot's only account at Let's Encrypt.
func (l *Lab) Account() string {
	l.tb.Helper()
	return l.accountAt(CAHost)
}

func (l *Lab) accountAt(host string) string {
	l.tb.Helper()
	files, _ := filepath.Glob(accountFile(host, "*"))
	if len(files) != 1 {
		l.tb.Fatalf("lab: account files %q, want one", files)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		l.tb.Fatalf("lab: %v", err)
	}
	var regr struct{ URI string }
	if err := json.Unmarshal(text, &regr); err != nil {
		l.tb.Fatalf("lab: %s: %v", files[0], err)
	}
	return regr.URI
}

// OtherCA is a CA beside Let's Encrypt: Pebble under a name of its own, with the issuer name that is Pebble's default.
type OtherCA struct {
	*acmetest.Server
	lab *Lab
}

// OtherIssuer is the issuer name of [OtherCA]: what CAA records call it.
const OtherIssuer = "pebble.letsencrypt.org"

// StartOtherCA brings up a CA at OtherCAHost.
func (l *Lab) StartOtherCA() OtherCA {
	l.tb.Helper()
	return OtherCA{acmetest.New(l.tb, acmetest.Options{
		Listen: net.JoinHostPort(otherCAAddr, "443"), Host: OtherCAHost, Issuer: OtherIssuer,
		Resolver: net.JoinHostPort(CAResolver, "53"), Authority: l.authority,
	}), l}
}

// Register has certbot make its first account there and returns the account's URI.
func (c OtherCA) Register() string {
	c.lab.tb.Helper()
	c.lab.register("--server", c.DirectoryURL)
	return c.lab.accountAt(OtherCAHost)
}

// PutAccount makes it look as if certbot had an account, which the CA knows nothing of, and returns its URI.
func (l *Lab) PutAccount(id string) string {
	l.tb.Helper()
	uri := fmt.Sprintf("https://%s/my-account/%s", CAHost, id)
	l.write(accountFile(CAHost, id), 0o644, fmt.Sprintf(`{"body": {}, "uri": %q}`, uri))
	return uri
}

func accountFile(host, id string) string {
	return filepath.Join(CertbotDir, "accounts", host, "directory", id, "regr.json")
}

// AddCAA adds a CAA record to production.
func (l *Lab) AddCAA(owner, tag, value string) {
	l.tb.Helper()
	l.World.Add(ProductionZone, caaRecord(owner, tag, value))
}

// Lock adds the CAA record that lets nobody but an account issue for the domain.
func (l *Lab) Lock(domain, account string) {
	l.tb.Helper()
	l.AddCAA(domain, "issue", lockValue(account))
}

// Unlock removes what [Lab.Lock] added.
func (l *Lab) Unlock(domain, account string) {
	l.tb.Helper()
	l.World.Remove(ProductionZone, caaRecord(domain, "issue", lockValue(account)))
}

func lockValue(account string) string {
	return "letsencrypt.org;validationmethods=dns-01;accounturi=" + account
}

func caaRecord(owner, tag, value string) string {
	return fmt.Sprintf("%s 300 CAA 0 %s %q", owner, tag, value)
}

package lab

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Register has certbot make its first account and returns the account's URI.
func (l *Lab) Register() string {
	l.tb.Helper()
	if r := l.Certbot("register", "--non-interactive", "--agree-tos", "--register-unsafely-without-email"); r.Code != 0 {
		l.tb.Fatalf("lab: certbot register: %v", r)
	}
	return l.Account()
}

// Account returns the URI of certbot's only account.
func (l *Lab) Account() string {
	l.tb.Helper()
	files, _ := filepath.Glob(accountFile("*"))
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

// PutAccount makes it look as if certbot had an account, which the CA knows nothing of, and returns its URI.
func (l *Lab) PutAccount(id string) string {
	l.tb.Helper()
	uri := fmt.Sprintf("https://%s/my-account/%s", CAHost, id)
	l.write(accountFile(id), 0o644, fmt.Sprintf(`{"body": {}, "uri": %q}`, uri))
	return uri
}

func accountFile(id string) string {
	return filepath.Join(CertbotDir, "accounts", CAHost, "directory", id, "regr.json")
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

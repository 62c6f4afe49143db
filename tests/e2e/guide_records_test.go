package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/certhook/certhook/tests/lab"
)

// recordsOf runs dnsguide records and returns its lines: those to paste, and the comments between.
func recordsOf(t *testing.T, l *lab.Lab, args ...string) (records, comments []string) {
	t.Helper()
	r := l.Run(lab.Hook("dnsguide"), append([]string{"records"}, args...)...)
	if r.Code != 0 {
		t.Fatalf("dnsguide records %q: %v", args, r)
	}
	for line := range strings.Lines(r.Stdout) {
		switch line = strings.TrimSpace(line); {
		case line == "":
		case strings.HasPrefix(line, "#"), strings.HasPrefix(line, ";"):
			comments = append(comments, line)
		default:
			records = append(records, line)
		}
	}
	return records, comments
}

// The CAA record names the account that certbot has made, and the CA by its own name for itself. As long as there is
// no account the rest is printed, and what to run.
func TestGuideRecords(t *testing.T) {
	const domain = "svc.example.com"
	l := lab.New(t, lab.Options{})
	challenge := "_acme-challenge." + domain + ". CNAME " + lab.Target(domain, lab.AliasZone) + "."
	caa := func(issuer, account string) string {
		return domain + `. CAA 0 issue "` + issuer + ";validationmethods=dns-01;accounturi=" + account + `"`
	}
	expect := func(about string, want ...string) {
		t.Helper()
		if got, _ := recordsOf(t, l, "-d", domain); !slices.Equal(got, want) {
			t.Errorf("%s:\n got %q\nwant %q", about, got, want)
		}
	}

	records, comments := recordsOf(t, l, "-d", domain)
	if all := strings.Join(comments, "\n"); !slices.Equal(records, []string{challenge}) || !strings.Contains(all, "CAA") || !strings.Contains(all, "certbot register") {
		t.Errorf("without an account:\n%q\n%q", records, comments)
	}

	account := l.Register()
	l.Configure(map[string]string{"ISSUER_DOMAIN_NAME": "letsencrypt.org"})
	expect("with Let's Encrypt named", challenge, caa("letsencrypt.org", account))
	l.Configure(nil)
	expect("with Let's Encrypt known by its address", challenge, caa("letsencrypt.org", account))

	other := l.StartOtherCA()
	l.Configure(map[string]string{"ACME_SERVER": other.DirectoryURL})
	if records, comments := recordsOf(t, l, "-d", domain); !slices.Equal(records, []string{challenge}) || !strings.Contains(strings.Join(comments, "\n"), "--server "+other.DirectoryURL) {
		t.Errorf("without an account at the other CA:\n%q\n%q", records, comments)
	}
	there := other.Register()
	expect("with another CA", challenge, caa(lab.OtherIssuer, there))
	l.Configure(map[string]string{"ACME_SERVER": other.DirectoryURL, "ISSUER_DOMAIN_NAME": "letsencrypt.org"})
	expect("with another CA under this name", challenge, caa("letsencrypt.org", there))
}

// Whoever pastes what records prints is done: verify finds nothing missing, for a wildcard as well.
func TestGuideRecordsAreEnough(t *testing.T) {
	l := lab.New(t, lab.Options{})
	l.Register()
	names := []string{"-d", "svc.example.com", "-d", "*.wild.example.com"}
	verify := append([]string{"verify"}, names...)
	if r := l.Run(lab.Hook("dnsguide"), verify...); r.Code != 3 {
		t.Errorf("before there is any record: %v", r)
	}
	records, _ := recordsOf(t, l, append(names, "--zonefile")...)
	for _, line := range records {
		l.World.Add(lab.ProductionZone, line)
	}
	unbound, bind := l.StartResolvers()
	verify = append(verify, "--resolver", unbound.URL(), "--resolver", bind.URL())
	if r := l.Run(lab.Hook("dnsguide"), verify...); r.Code != 0 {
		t.Errorf("with %q: %v", records, r)
	}
}

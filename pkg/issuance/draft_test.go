package issuance

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/persist"
	"github.com/certhook/certhook/tests/acmetest"
)

const prefix = "https://ca.example/hashed/"

// offer02 makes the CA look like one of draft -02, as far as it tells.
func (s *scene) offer02() {
	s.network.rewrite = func(body string) string {
		body = strings.Replace(body, `"caaIdentities"`, `"accountHashPrefix": "`+prefix+`", "issuerDomainNames": ["LetsEncrypt.org"], "caaIdentities"`, 1)
		body = strings.ReplaceAll(body, `"issuer-domain-names"`, `"issuerDomainNames"`)
		return strings.ReplaceAll(body, `"accounturi"`, `"x"`)
	}
}

// What the CA offers decides which draft a record is for: that of -02 has the account hashed, for each domain anew.
func TestDraft02(t *testing.T) {
	t.Parallel()
	s := newScene(t, acmetest.Options{})
	s.offer02()
	uri := s.register()
	a, err := s.Account()
	if err != nil {
		t.Fatal(err)
	}
	s.publish(pair...)
	want := "letsencrypt.org; accounturi=" + persist.HashedAccount(prefix, "p.example.com", a.Thumbprint(), uri) + "; policy=wildcard"
	if got := s.TXT(zone, "_validation-persist.p.example.com"); len(got) != 1 || got[0] != want {
		t.Errorf("the record is %q, want %q", got, want)
	}
	// Pebble itself knows -01 only: it refuses, and the self-check has nothing to say.
	_, err = s.Issue(t.Context(), "p.example.com", pair, false)
	if said := s.said.take(); err == nil || said != "" {
		t.Errorf("error %v, warnings: %s", err, said)
	}
	// One record for all domains will do as well.
	list, _ := s.Prescribe(t.Context(), pair)
	s.delete(list)
	s.Add(zone, fmt.Sprintf(`_validation-persist.p.example.com 300 IN TXT "letsencrypt.org; accounturi=%s; policy=wildcard"`, persist.HashedAccount(prefix, "*", a.Thumbprint(), uri)))
	_, _ = s.Issue(t.Context(), "p.example.com", pair, false)
	if said := s.said.take(); said != "" {
		t.Errorf("warnings: %s", said)
	}
}

// A record of the other draft is named for what it is.
func TestDraftChanges(t *testing.T) {
	t.Parallel()
	s := newScene(t, acmetest.Options{})
	s.register()
	s.publish(pair...)
	s.issue(pair...)
	s.again()
	s.offer02()
	_, err := s.Renew(t.Context(), nil, true)
	said := s.said.take()
	for _, want := range []string{"draft -02", "is not hashed, as draft -02 wants it", prefix + "sha-256/"} {
		if !strings.Contains(said, want) {
			t.Errorf("it is not said that %q: %v, %s", want, err, said)
		}
	}
	s.again()
	s.Draft = persist.Draft01
	_, err = s.Renew(t.Context(), nil, true)
	if said := s.said.take(); err != nil || !strings.Contains(said, "the CA offers draft -02 of dns-persist-01 and may not take a record of -01") {
		t.Errorf("error %v, said %s", err, said)
	}
	s.again()
	s.network.rewrite = nil
	s.Draft = persist.Draft02
	if _, err = s.Renew(t.Context(), nil, true); fault.KindOf(err) != fault.Usage || !strings.Contains(err.Error(), "does not offer draft -02") {
		t.Errorf("error %v", err)
	}
}

// The challenge may want another accounturi than the account's URI: that one is looked for, and named before the CA looks.
func TestAccountURIOfTheChallenge(t *testing.T) {
	t.Parallel()
	s := newScene(t, acmetest.Options{})
	uri := s.register()
	s.publish(pair...)
	s.network.rewrite = func(body string) string {
		return strings.ReplaceAll(body, `"accounturi": "`+uri, `"accounturi": "https://ca.example/other`)
	}
	s.issue(pair...)
	if said := s.said.take(); !strings.Contains(said, "expected https://ca.example/other, seen "+uri) {
		t.Errorf("it is not said what the challenge wants: %s", said)
	}
}

// Of a record that ends before the certificate does, the next renewal would find nothing.
func TestRecordThatEnds(t *testing.T) {
	t.Parallel()
	s := newScene(t, acmetest.Options{})
	s.register()
	s.Until = time.Now().Add(-time.Hour)
	if _, err := s.Prescribe(t.Context(), pair); fault.KindOf(err) != fault.Usage {
		t.Errorf("a record that has ended is printed: %v", err)
	}
	s.Until = time.Now().Add(24 * time.Hour)
	s.publish(pair...)
	s.issue(pair...)
	if said := s.said.take(); !strings.Contains(said, "before the certificate does") {
		t.Errorf("it is not said that the record ends: %s", said)
	}
	s.Until = time.Now().AddDate(1, 0, 0)
	list, err := s.Prescribe(t.Context(), pair)
	if err != nil {
		t.Fatal(err)
	}
	list[0].Records = list[0].Records[:1] // the CAA stands
	s.create(list)
	s.issue(pair...)
	if said := s.said.take(); said != "" {
		t.Errorf("warnings without a cause: %s", said)
	}
}

// PERSIST_ACCOUNT=certbot never makes an account of our own.
func TestCertbotWithoutAccount(t *testing.T) {
	s := newScene(t, acmetest.Options{})
	s.Choice = Certbot
	if _, err := s.Register(t.Context()); fault.KindOf(err) != fault.Usage || !strings.Contains(fault.HintOf(err), "certbot register") || s.ca.Accounts() > 0 {
		t.Errorf("error %v, hint %q, %d accounts", err, fault.HintOf(err), s.ca.Accounts())
	}
}

package issuance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/certhook/certhook/pkg/certbot"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/tests/acmetest"
)

var pair = []string{"p.example.com", "*.p.example.com"}

// What is wrong with the record the self-check names, with what it expects and what it sees; the CA is asked all the same,
// and what it says of it is the error.
func TestRecordOfNoUse(t *testing.T) {
	const owner = "_validation-persist.p.example.com"
	s := newScene(t, acmetest.Options{})
	uri := s.register()
	good := "letsencrypt.org; accounturi=" + uri
	for name, tc := range map[string]struct {
		values []string
		check  []string // said by us
		ca     string   // said by the CA
	}{
		"absent":         {nil, []string{"seen: no TXT at " + owner}, "unauthorized: "},
		"wrong account":  {[]string{good + "0; policy=wildcard"}, []string{"it is for another account", "seen " + uri + "0"}, "accounturi"},
		"expired":        {[]string{good + "; policy=wildcard; persistUntil=1700000000"}, []string{"it has expired", "2023-11-14T22:13:20Z"}, "persistUntil"},
		"missing policy": {[]string{good}, []string{"does not cover the wildcard"}, "policy"},
		"malformed":      {[]string{good + ";; policy=wildcard"}, []string{"it is malformed", "trailing semicolon"}, "malformed"},
		"other CA":       {[]string{"ca.example; accounturi=" + uri + "; policy=wildcard"}, []string{"it is for another CA"}, "unauthorized"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, v := range tc.values {
				s.Add(zone, fmt.Sprintf("%s 300 IN TXT %q", owner, v))
				defer s.Remove(zone, fmt.Sprintf("%s 300 IN TXT %q", owner, v))
			}
			s.said.take()
			validated := len(s.ca.Validations())
			o, err := s.Issue(t.Context(), "p.example.com", pair, false)
			if err == nil || o.Issued || fault.KindOf(err) != fault.Other {
				t.Fatalf("%+v, error %v of kind %v, want one of kind Other", o, err, fault.KindOf(err))
			}
			if len(s.ca.Validations()) == validated {
				t.Error("the CA was not asked")
			}
			if !strings.Contains(err.Error(), "*.p.example.com by dns-persist-01 is refused: the CA says: ") || !strings.Contains(err.Error(), tc.ca) {
				t.Errorf("the error does not have the CA's words (%q): %v", tc.ca, err)
			}
			said := s.said.take()
			for _, want := range append(tc.check, "expected: "+owner+". TXT", "policy=wildcard", "draft -01", "experimental") {
				if !strings.Contains(said, want) {
					t.Errorf("the self-check lacks %q: %s", want, said)
				}
			}
			if names, _ := certbot.LiveNames(s.Root); len(names) > 0 {
				t.Errorf("there is a lineage: %q", names)
			}
		})
	}
}

// A record that is written in another way and is legal all the same is taken, and so is one beside others.
func TestRecordWrittenDifferently(t *testing.T) {
	s := newScene(t, acmetest.Options{})
	uri := s.register()
	s.Add(zone, fmt.Sprintf(`_validation-persist.p.example.com 300 IN TXT "  letsencrypt.org ;  policy = WildCard; foo=bar" "; ACCOUNTURI = %s; persistUntil=+4102444800 "`, uri))
	s.Add(zone, `_validation-persist.p.example.com 300 IN TXT "ca.example; accounturi=x"`)
	s.issue(pair...)
	if said := s.said.take(); said != "" {
		t.Errorf("warnings without a cause: %s", said)
	}
	if leaf := s.leaf("p.example.com"); !slices.Contains(leaf.DNSNames, "*.p.example.com") {
		t.Errorf("the certificate is for %q", leaf.DNSNames)
	}
}

// The record appears while the self-check waits for it, and the CA is asked only then.
func TestRecordThatComesLate(t *testing.T) {
	t.Parallel()
	s := newScene(t, acmetest.Options{})
	s.register()
	s.Patience = 20 * time.Second
	time.AfterFunc(1500*time.Millisecond, func() { s.publish(pair...) })
	s.issue(pair...)
	if said := s.said.take(); strings.Contains(said, "not seen (") {
		t.Errorf("what came in time is missed: %s", said)
	}
}

// What one look has seen the next one, which nobody answers any more, does not make unseen.
func TestServersThatFallSilent(t *testing.T) {
	t.Parallel()
	s := newScene(t, acmetest.Options{})
	uri := s.register()
	s.Add(zone, fmt.Sprintf(`_validation-persist.p.example.com 300 IN TXT "letsencrypt.org; accounturi=%s"`, uri))
	s.Patience = 4 * time.Second
	time.AfterFunc(500*time.Millisecond, func() { s.server.SetDead(true) })
	_, err := s.Issue(t.Context(), "p.example.com", pair, false)
	if said := s.said.take(); err == nil || !strings.Contains(said, "does not cover the wildcard") {
		t.Errorf("error %v, said: %s", err, said)
	}
}

// A CAA record that forbids the method is named.
func TestForbiddenByCAA(t *testing.T) {
	s := newScene(t, acmetest.Options{})
	uri := s.register()
	s.publish("p.example.com")
	s.Add(zone, `q.example.com A 192.0.2.1`)
	s.Add(zone, fmt.Sprintf(`_validation-persist.q.example.com 300 IN TXT "letsencrypt.org; accounturi=%s"`, uri))
	s.Add(zone, fmt.Sprintf(`q.example.com 300 IN CAA 0 issue "letsencrypt.org;validationmethods=dns-01;accounturi=%s"`, uri))
	s.issue("p.example.com", "q.example.com")
	said := s.said.take()
	for _, want := range []string{"a CAA record keeps the CA from issuing for q.example.com by dns-persist-01", "add q.example.com. CAA 0 issue"} {
		if !strings.Contains(said, strings.ReplaceAll(want, `"`, `\"`)) {
			t.Errorf("it is not said that %q: %s", want, said)
		}
	}
	if strings.Contains(said, "for p.example.com") {
		t.Errorf("p.example.com is not forbidden: %s", said)
	}
}

// Where the CA does not offer the method, nothing else is tried.
func TestMethodNotOffered(t *testing.T) {
	s := newScene(t, acmetest.Options{})
	s.register()
	s.publish("p.example.com")
	s.network.rewrite = func(body string) string { return strings.ReplaceAll(body, "dns-persist-01", "dns-other-01") }
	_, err := s.Issue(t.Context(), "p.example.com", []string{"p.example.com"}, false)
	if err == nil || !strings.Contains(err.Error(), "does not offer dns-persist-01 for p.example.com") || len(s.ca.Validations()) > 0 {
		t.Errorf("error %v, %d validations", err, len(s.ca.Validations()))
	}
}

// A CA that is never done costs the order's time, and no more.
func TestOutOfTime(t *testing.T) {
	t.Parallel()
	s := newScene(t, acmetest.Options{})
	s.register()
	s.publish("p.example.com")
	s.Budget = 4 * time.Second
	s.network.rewrite = func(body string) string {
		return strings.ReplaceAll(body, `"status": "valid"`, `"status": "pending"`)
	}
	start := time.Now()
	_, err := s.Issue(context.Background(), "p.example.com", []string{"p.example.com"}, false)
	if took := time.Since(start); err == nil || took > s.Budget || took < s.Budget/4 {
		t.Errorf("error %v after %v, want one within %v", err, took, s.Budget)
	}
}

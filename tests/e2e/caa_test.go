package e2e

import (
	"strings"
	"testing"

	"github.com/certhook/certhook/tests/lab"
)

// The account that certbot has made is the one that the printed record names; once that stands, the hooks have
// nothing to say any more. A record for another CA keeps them from writing.
func TestCAA(t *testing.T) {
	record := lab.Target("svc.example.com", lab.AliasZone)
	s := newScene(t, lab.Options{}, record)
	s.Delegate("svc.example.com")
	const complaint = "error output" // as certbot calls what a hook writes on stderr
	advice := `add svc.example.com. CAA 0 issue "letsencrypt.org;validationmethods=dns-01;accounturi=`

	r := s.Issue("svc.example.com", "*.svc.example.com")
	account := s.Account()
	if all := r.Stdout + r.Stderr; r.Code != 0 || strings.Count(all, advice+account+`"`) != 1 {
		t.Errorf("certbot is to have success and to show %s once: %v", advice+account, r)
	}

	s.FreshAccount()
	s.Lock("svc.example.com", s.Account())
	if r = s.Renew(); r.Code != 0 || strings.Contains(r.Stdout+r.Stderr, complaint) {
		t.Errorf("renewal under the lock: %v", r)
	}

	// The account has changed, and the lock has not.
	s.FreshAccount()
	s.API.Forget()
	r = s.Renew()
	if !strings.Contains(r.Stdout+r.Stderr, advice+s.Account()) || !strings.Contains(r.Stdout+r.Stderr, "code 3") {
		t.Errorf("renewal with another account: %v", r)
	}
	if r.Code == 0 || len(s.writes()) != 0 {
		t.Errorf("%d values were written, certbot ends with %d", len(s.writes()), r.Code)
	}
}

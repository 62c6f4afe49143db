package e2e

import (
	"testing"

	"github.com/certhook/certhook/tests/lab"
)

// Two lineages are renewed with an empty environment: what the hooks need is in the settings file, and what
// certbot leaves in the environment of the second lineage's hooks from the first one does not mislead them.
func TestRenewTwoLineages(t *testing.T) {
	svc, base := lab.Target("svc.example.com", lab.AliasZone), lab.Target("example.com", lab.AliasZone)
	s := newScene(t, lab.Options{}, svc, base)
	s.Delegate("svc.example.com", "example.com")
	s.issue("svc.example.com")
	s.issue("example.com", "*.example.com")
	before := s.checkLineage("svc.example.com", "svc.example.com").SerialNumber
	before2 := s.checkLineage("example.com", "example.com", "*.example.com").SerialNumber

	s.FreshAccount()
	s.API.Forget()
	validated := len(s.CA.Validations())
	if r := s.Renew(); r.Code != 0 {
		t.Fatalf("certbot renew: %v", r)
	}
	if s.checkLineage("svc.example.com", "svc.example.com").SerialNumber.Cmp(before) == 0 ||
		s.checkLineage("example.com", "example.com", "*.example.com").SerialNumber.Cmp(before2) == 0 {
		t.Error("a lineage has its old certificate")
	}
	if n := len(s.CA.Validations()) - validated; n != 3 {
		t.Errorf("the CA validated %d names, want 3", n)
	}
	if n := len(s.writes()); n != 3 {
		t.Errorf("%d values were written, want 3", n)
	}
}

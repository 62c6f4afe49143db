package e2e

import (
	"net/http"
	"testing"

	"github.com/certhook/certhook/tests/cloudflaretest"
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

// What the cleanup of one lineage could not remove does not get in the way of the next one in the same renew,
// though it is about the same record, and is removed by the first hook call that can. The CA may reuse the
// authorization of a name for another order, but not for the wildcard.
func TestFailedCleanupOfALineage(t *testing.T) {
	const name, wildcard, also = "a.example.com", "*.a.example.com", "b.example.com"
	s := sceneFor(t, lab.Options{}, name, also)
	var onNext func() // of the second lineage's first auth call
	b := s.between(func(c call) {
		if c.hook == "auth" && c.remaining == 1 && onNext != nil {
			onNext()
		}
	})
	for lineage, names := range map[string][]string{"1": {name}, "2": {wildcard, also}} { // renewed in this order
		if r := s.Certbot(append(b.args(names...), "--cert-name", lineage)...); r.Code != 0 {
			t.Fatalf("certbot for %q: %v", names, r)
		}
	}
	for what, mendEarly := range map[string]bool{"mended before the second lineage": true, "mended later": false} {
		s.FreshAccount()
		s.API.Forget()
		first, second := s.checkLineage("1", name).SerialNumber, s.checkLineage("2", wildcard, also).SerialNumber
		auths, cleanups := len(b.ended("auth")), len(b.ended("cleanup"))
		mend := s.API.Break(cloudflaretest.Forbidden.On(http.MethodDelete, cloudflaretest.OneRecord))
		leftByFirst := 0
		onNext = func() {
			leftByFirst = len(s.ours())
			if mendEarly {
				mend()
			}
		}
		if r := s.Renew(); r.Code != 0 {
			t.Errorf("%s: certbot renew: %v", what, r)
		}
		onNext = nil
		if leftByFirst != 1 {
			t.Errorf("%s: the first lineage left %d values, want 1", what, leftByFirst)
		}
		for i, c := range b.ended("auth")[auths:] {
			if c.code != 0 {
				t.Errorf("%s: auth call %d has exit code %d", what, i, c.code)
			}
		}
		if c := b.ended("cleanup")[cleanups:]; len(c) != 3 || c[0].code == 0 || (c[1].code == 0) != mendEarly {
			t.Errorf("%s: cleanup calls %+v", what, c)
		}
		if s.checkLineage("1", name).SerialNumber.Cmp(first) == 0 || s.checkLineage("2", wildcard, also).SerialNumber.Cmp(second) == 0 {
			t.Errorf("%s: a lineage has its old certificate", what)
		}
		if left := len(s.ours()); left != 0 && mendEarly || left != 3 && !mendEarly {
			t.Errorf("%s: %d values are left", what, left)
		}
		mend()
		s.sweep()
		if left := s.ours(); len(left) > 0 {
			t.Errorf("%s: left after the sweep: %q", what, left)
		}
	}
}

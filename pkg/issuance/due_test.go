package issuance

import (
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"math/big"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/certhook/certhook/tests/acmetest"
)

func TestUnsuggested(t *testing.T) {
	begin := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	const day = 24 * time.Hour
	for life, want := range map[time.Duration]time.Duration{
		90 * day: 60 * day, 47 * day: 47 * day * 2 / 3, 10 * day: 10 * day * 2 / 3, 6 * day: 3 * day, time.Hour: 30 * time.Minute,
	} {
		if got := unsuggested(begin, begin.Add(life)).Sub(begin); (got - want).Abs() > time.Second {
			t.Errorf("of %v renewed after %v, want %v", life, got, want)
		}
	}
}

// The example of RFC 9773, section 4.1.
func TestCertID(t *testing.T) {
	akid, err := hex.DecodeString("69885b6b87464041e1b37b847bd0ae2cde01c8d4")
	if err != nil {
		t.Fatal(err)
	}
	serial := big.NewInt(0x87654321)
	got, err := certID(&x509.Certificate{AuthorityKeyId: akid, SerialNumber: serial})
	if want := "aYhba4dGQEHhs3uEe9CuLN4ByNQ.AIdlQyE"; err != nil || got != want {
		t.Errorf("certID = %q, %v, want %q", got, err, want)
	}
	if _, err := certID(&x509.Certificate{SerialNumber: serial}); err == nil {
		t.Error("a certificate without an authority key identifier has an id")
	}
}

func TestReadRenewalInfo(t *testing.T) {
	now := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	const good = `{"suggestedWindow": {"start": "2027-02-01T00:00:00Z", "end": "2027-02-03T00:00:00Z"}, "explanationURL": "https://ca.example/"}`
	for _, tc := range []struct{ after, again time.Duration }{
		{0, 6 * time.Hour},
		{time.Second, time.Minute},
		{time.Hour, time.Hour},
		{1000 * time.Hour, 24 * time.Hour},
	} {
		r, err := readRenewalInfo("id", []byte(good), tc.after, now)
		if err != nil || !r.Again.Equal(now.Add(tc.again)) {
			t.Errorf("after %v: %+v, %v", tc.after, r, err)
			continue
		}
		if at := r.moment(); at.Before(r.Start) || !at.Before(r.End) || !at.Equal(r.moment()) {
			t.Errorf("moment %v is not one in the window", at)
		}
	}
	for _, text := range []string{
		"", "{}", `{"suggestedWindow": {"start": "2027-02-03T00:00:00Z", "end": "2027-02-01T00:00:00Z"}}`,
		`{"suggestedWindow": {"start": "2027-02-03T00:00:00Z", "end": "2027-02-03T00:00:00Z"}}`, `{"suggestedWindow": {"start": "soon", "end": "later"}}`,
	} {
		if r, err := readRenewalInfo("id", []byte(text), 0, now); err == nil {
			t.Errorf("%s: %+v", text, r)
		}
	}
}

// Moments of many certificates are spread over the window.
func TestMomentsAreSpread(t *testing.T) {
	var quarters [4]int
	for n := range 400 {
		r := renewalInfo{ID: fmt.Sprint(n), Start: time.Unix(0, 0), End: time.Unix(400, 0)}
		quarters[r.moment().Unix()/100]++
	}
	for n, count := range quarters {
		if count < 60 {
			t.Errorf("%d of 400 in quarter %d", count, n)
		}
	}
}

// The CA says when, and is not asked more often than it wants; where it says nothing of use, the lifetime decides.
func TestRenewWhenTheCASays(t *testing.T) {
	t.Parallel()
	s := newScene(t, acmetest.Options{})
	s.register()
	s.publish("p.example.com")
	s.issue("p.example.com")
	asked := func() int {
		n := 0
		for _, r := range s.ca.Requests() {
			if strings.Contains(r.Path, "renewalInfo") {
				n++
			}
		}
		return n
	}
	renewed := func() bool {
		t.Helper()
		all, err := s.Renew(t.Context(), nil, false)
		if err != nil || len(all) != 1 {
			t.Fatalf("%+v, %v", all, err)
		}
		return all[0].Issued
	}
	forget := func() {
		t.Helper()
		l, err := s.lineage("p.example.com")
		if err != nil {
			t.Fatal(err)
		}
		l.Renewal = nil
		if err := s.saveLineage(l); err != nil {
			t.Fatal(err)
		}
	}
	say := func(from, to time.Duration) {
		t.Helper()
		if err := s.ca.SetRenewalInfo(s.leaf("p.example.com").SerialNumber, fmt.Sprintf(`{"suggestedWindow": {"start": %q, "end": %q}}`,
			time.Now().Add(from).Format(time.RFC3339), time.Now().Add(to).Format(time.RFC3339))); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if renewed() {
			t.Error("renewed before it is due")
		}
	}
	if n := asked(); n != 1 {
		t.Errorf("the CA was asked %d times at once", n)
	}
	forget()
	say(time.Hour, 2*time.Hour)
	if renewed() {
		t.Error("renewed before the window that the CA suggests")
	}
	forget()
	say(-2*time.Hour, -time.Hour)
	if !renewed() {
		t.Error("not renewed when the CA says so")
	}
	if err := s.ca.SetRenewalInfo(s.leaf("p.example.com").SerialNumber, "nonsense"); err != nil {
		t.Fatal(err)
	}
	if renewed() {
		t.Error("renewed before a third of the lifetime is left")
	}
	if _, err := os.Stat(s.renewalFile("p.example.com")); err != nil {
		t.Error(err)
	}
}

// A profile is asked for by name, stays with the lineage, and one that the CA does not have is an error of its own.
func TestProfile(t *testing.T) {
	t.Parallel()
	s := newScene(t, acmetest.Options{Profiles: map[string]time.Duration{"classic": 90 * 24 * time.Hour, "short": 6 * 24 * time.Hour}})
	s.register()
	s.publish("p.example.com")
	life := func() time.Duration {
		leaf := s.leaf("p.example.com")
		return leaf.NotAfter.Sub(leaf.NotBefore).Round(24 * time.Hour)
	}
	s.Profile = "short"
	s.issue("p.example.com")
	for range 4 { // Pebble picks any profile where an order has none
		s.Profile = ""
		if _, err := s.Renew(t.Context(), nil, true); err != nil || life() != 6*24*time.Hour {
			t.Fatalf("renewed for %v, %v", life(), err)
		}
	}
	s.Profile = "long"
	if _, err := s.Issue(t.Context(), "p.example.com", []string{"p.example.com"}, true); err == nil || !strings.Contains(err.Error(), "classic, short") {
		t.Errorf("error %v, want one that names the profiles there are", err)
	}
}

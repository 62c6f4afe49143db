package issuance

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/certhook/certhook/pkg/bundle"
	"github.com/certhook/certhook/pkg/certbot"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/tests/acmetest"
)

// Who reads a lineage while it is renewed over and over always gets one whole version of it.
func TestLineageIsSwitchedAtOnce(t *testing.T) {
	t.Parallel()
	s := newScene(t, acmetest.Options{})
	s.register()
	s.publish("p.example.com")
	s.issue("p.example.com")
	ctx, cancel := context.WithCancel(t.Context())
	read := make(chan int)
	go func() {
		n := 0
		for ; ctx.Err() == nil; n++ {
			chain, err := os.ReadFile(filepath.Join(s.Root, "live", "p.example.com", "fullchain.pem"))
			if err != nil {
				t.Error(err)
				break
			}
			m, err := certbot.ReadLive(t.Context(), s.Root, "p.example.com")
			if err == nil {
				_, err = bundle.Parse(m.Chain, m.Key, time.Now())
			}
			if err != nil || len(chain) == 0 {
				t.Error(err)
				break
			}
		}
		read <- n
	}()
	for range 10 {
		s.issue("p.example.com")
	}
	cancel()
	if n := <-read; n < 10 {
		t.Errorf("read %d times only", n)
	}
	names, err := certbot.LiveNames(s.Root)
	if err != nil || len(names) != 1 {
		t.Errorf("lineages %q, %v", names, err)
	}
}

// Killed anywhere while a certificate is written, what is served stays whole, and the next run goes on.
func TestInstallCutShort(t *testing.T) {
	for _, step := range []string{"lineage noted", "files written", "certificate written"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, acmetest.Options{})
			s.register()
			s.publish("p.example.com")
			whole := func() *x509.Certificate {
				t.Helper()
				m, err := certbot.ReadLive(t.Context(), s.Root, "p.example.com")
				if err != nil {
					t.Fatal(err)
				}
				b, err := bundle.Parse(m.Chain, m.Key, time.Now())
				if err != nil {
					t.Fatal(err)
				}
				return b.Leaf()
			}
			kill := func() {
				t.Helper()
				if !s.cutShort(step, func() { _, _ = s.Issue(t.Context(), "p.example.com", []string{"p.example.com"}, true) }) {
					t.Fatal("was not cut short")
				}
			}
			kill() // the first one, of which there is nothing yet
			if names, err := certbot.LiveNames(s.Root); err != nil || len(names) > 0 {
				t.Errorf("lineages %q, %v", names, err)
			}
			s.issue("p.example.com")
			before := whole()
			kill()
			if !whole().Equal(before) {
				t.Error("the lineage has changed")
			}
			s.issue("p.example.com")
			if whole().Equal(before) {
				t.Error("the lineage has not changed")
			}
		})
	}
}

// Where a certificate could not be kept, none is ordered.
func TestNoRoom(t *testing.T) {
	s := newScene(t, acmetest.Options{})
	s.register()
	s.publish("p.example.com")
	dir, err := s.makeDir("archive")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "p.example.com"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Issue(t.Context(), "p.example.com", []string{"p.example.com"}, false); fault.KindOf(err) != fault.Usage || len(s.ca.Validations()) > 0 {
		t.Errorf("error %v, %d validations", err, len(s.ca.Validations()))
	}
}

// What a killed run has left in the folders is no lineage, and goes away with the next certificate.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	s := newScene(t, acmetest.Options{})
	s.register()
	s.publish("p.example.com")
	s.issue("p.example.com")
	archive := filepath.Join(s.Root, "archive", "p.example.com")
	for _, path := range []string{filepath.Join(archive, unfinished+"1"), filepath.Join(s.Root, "archive", "p.example.com", "3")} {
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("nowhere", filepath.Join(s.Root, "live", ".new-p.example.com")); err != nil {
		t.Fatal(err)
	}
	before := s.leaf("p.example.com")
	s.issue("p.example.com")
	if s.leaf("p.example.com").Equal(before) {
		t.Error("the lineage has the old certificate")
	}
	if to, err := os.Readlink(filepath.Join(s.Root, "live", "p.example.com")); err != nil || to != "../archive/p.example.com/4" {
		t.Errorf("the lineage leads to %q, %v", to, err)
	}
	if _, err := os.Stat(filepath.Join(archive, unfinished+"1")); err == nil {
		t.Error("an unfinished folder is left")
	}
}

// A name that certbot's lineages have is refused before anything is ordered, also where certbot takes it later.
func TestNameOfCertbots(t *testing.T) {
	t.Parallel()
	s := newScene(t, acmetest.Options{})
	s.register()
	s.publish("p.example.com")
	take := func() {
		dir := filepath.Join(s.CertbotDir, "live", "p.example.com")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "cert.pem"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	take()
	if _, err := s.Issue(t.Context(), "p.example.com", []string{"p.example.com"}, true); fault.KindOf(err) != fault.Usage || len(s.ca.Validations()) > 0 {
		t.Errorf("error %v, %d validations", err, len(s.ca.Validations()))
	}
	if err := os.RemoveAll(s.CertbotDir); err != nil {
		t.Fatal(err)
	}
	s.issue("p.example.com")
	take()
	n := len(s.ca.Validations())
	if _, err := s.Renew(t.Context(), nil, true); fault.KindOf(err) != fault.Usage || len(s.ca.Validations()) > n {
		t.Errorf("error %v", err)
	}
}

// Nothing is written over that persist-issue has not made.
func TestForeignLiveFolder(t *testing.T) {
	s := newScene(t, acmetest.Options{})
	s.register()
	s.publish("p.example.com")
	dir, err := s.makeDir("live", "p.example.com")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Issue(t.Context(), "p.example.com", []string{"p.example.com"}, true); fault.KindOf(err) != fault.Usage || len(s.ca.Validations()) > 0 {
		t.Errorf("error %v, %d validations", err, len(s.ca.Validations()))
	}
	if _, err := os.Stat(dir); err != nil {
		t.Error(err)
	}
}

// The challenge of a lineage is on record, and one that is not ours is not renewed by another way.
func TestChallengeOnRecord(t *testing.T) {
	s := newScene(t, acmetest.Options{})
	s.register()
	s.publish("p.example.com")
	s.issue("p.example.com")
	path := s.renewalFile("p.example.com")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var kept Lineage
	if err := json.Unmarshal(text, &kept); err != nil || kept.Challenge != Method || kept.Draft != "01" {
		t.Errorf("kept %+v, %v", kept, err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), Method, "dns-01", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	n := len(s.ca.Validations())
	if _, err := s.Renew(t.Context(), nil, true); fault.KindOf(err) != fault.Lineage || len(s.ca.Validations()) > n {
		t.Errorf("error %v of kind %v", err, fault.KindOf(err))
	}
}

// Issue orders again only where there is a reason.
func TestIssueAgain(t *testing.T) {
	t.Parallel()
	s := newScene(t, acmetest.Options{})
	s.register()
	s.publish(pair...)
	for _, step := range []struct {
		names  []string
		issued bool
	}{
		{[]string{"p.example.com"}, true},
		{[]string{"p.example.com"}, false},
		{pair, true},
		{[]string{pair[1], pair[0]}, false},
		{[]string{"p.example.com"}, true},
	} {
		o, err := s.Issue(t.Context(), "p.example.com", step.names, false)
		if err != nil || o.Issued != step.issued || !o.NotAfter.After(time.Now()) {
			t.Fatalf("%q: %+v, %v, want issued %v", step.names, o, err, step.issued)
		}
	}
	// A lineage without its files is due, whatever it says of itself.
	if err := os.Remove(filepath.Join(s.Root, "live", "p.example.com")); err != nil {
		t.Fatal(err)
	}
	if all, err := s.Renew(t.Context(), nil, false); err != nil || !all[0].Issued {
		t.Errorf("%+v, %v", all, err)
	}
}

// One lineage that fails keeps no other from its turn.
func TestRenewGoesOn(t *testing.T) {
	t.Parallel()
	s := newScene(t, acmetest.Options{})
	s.register()
	s.Add(zone, "a.example.com A 192.0.2.1")
	s.publish("a.example.com", "p.example.com")
	for _, name := range []string{"a.example.com", "p.example.com"} {
		if _, err := s.Issue(t.Context(), name, []string{name}, false); err != nil {
			t.Fatal(err)
		}
	}
	gone, err := s.Prescribe(t.Context(), []string{"a.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	s.delete(gone)
	all, err := s.Renew(t.Context(), nil, true)
	if len(all) != 2 || all[0].Error == "" || all[0].Issued || !all[1].Issued || err == nil || strings.Contains(err.Error(), "p.example.com") {
		t.Errorf("%+v, %v", all, err)
	}
}

// Two at once do not get into each other's way.
func TestTwoAtOnce(t *testing.T) {
	t.Parallel()
	s := newScene(t, acmetest.Options{})
	s.register()
	s.publish("p.example.com")
	release, err := s.lock(t.Context(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	s.Budget = 2 * time.Second
	start := time.Now()
	if _, err := s.Issue(t.Context(), "p.example.com", []string{"p.example.com"}, true); err == nil || !strings.Contains(err.Error(), "another persist-issue is at work") {
		t.Errorf("error %v", err)
	}
	if took := time.Since(start); took > s.Budget {
		t.Errorf("waited %v", took)
	}
	release()
	s.Budget = 30 * time.Second
	s.issue("p.example.com")
}

package e2e

import (
	"slices"
	"testing"
	"time"

	"github.com/certhook/certhook/tests/cloudflaretest"
	"github.com/certhook/certhook/tests/lab"
)

// How an order is written together: by its last auth call, waited for once, and removed by its first cleanup
// call. The order in which certbot takes the names is random.

var three = []string{"a.example.com", "b.example.com", "c.example.com"}

// Whatever stands between certbot and the hook, the calls of one order find each other.
func TestThreeNamesBehindAWrapper(t *testing.T) {
	for name, wrap := range map[string]func(string) string{
		"shell script":            func(hook string) string { return hook },
		"shell script in a shell": func(hook string) string { return hook + " ; exit $?" },
		"Python and shell": func(hook string) string {
			return "/usr/bin/python3 -c 'import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))' sh -c '" + hook + "; exit $?'"
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := sceneFor(t, lab.Options{}, three...)
			b := s.between(nil)
			if r := s.Certbot(lab.IssueArgsWith(wrap(b.auth), wrap(b.cleanup), three...)...); r.Code != 0 {
				t.Fatalf("certbot: %v", r)
			}
			s.checkLineage(three[0], three...)
			s.checkOrder(b.begun("auth"), b.ended("auth"), 3)
			s.checkRemovedAtOnce(b.ended("cleanup"), 3)
			lookups := 0
			for _, c := range s.calls("GET") {
				if c.Path == cloudflaretest.Zones {
					lookups++
				}
			}
			if lookups != 1 {
				t.Errorf("%d look-ups of the zone", lookups)
			}
			for _, record := range s.records {
				s.checkSeen(record)
			}
		})
	}
}

// checkOrder checks that an order of n names went well in calls numbered downwards, and that n values were
// written in the last of them.
func (s *scene) checkOrder(begun, ended []call, n int) {
	s.t.Helper()
	if len(begun) != n || len(ended) != n {
		s.t.Fatalf("%d auth calls began, %d ended, want %d", len(begun), len(ended), n)
	}
	for i, c := range ended {
		if c.code != 0 || c.remaining != n-1-i {
			s.t.Errorf("auth call %d has exit code %d, %d remain", i, c.code, c.remaining)
		}
	}
	s.checkWrites(begun[n-1], ended[n-1], n)
}

// checkWrites checks that n values were written, all of them within a call.
func (s *scene) checkWrites(begun, ended call, n int) {
	s.t.Helper()
	writes := s.writes()
	if len(writes) != n {
		s.t.Errorf("%d values were written, want %d", len(writes), n)
	}
	for _, w := range writes {
		if w.Start.Before(begun.at) || w.End.After(ended.at) {
			s.t.Errorf("written at %v, not in the call from %v to %v", w.Start, begun.at, ended.at)
		}
	}
}

// checkRemovedAtOnce checks that the cleanup calls of an order went well and that the first removed n values.
func (s *scene) checkRemovedAtOnce(ended []call, n int) {
	s.t.Helper()
	removals := s.calls("DELETE")
	if len(removals) != n {
		s.t.Errorf("%d values were removed, want %d", len(removals), n)
	}
	for i, c := range ended {
		if c.code != 0 {
			s.t.Errorf("cleanup call %d has exit code %d", i, c.code)
		}
	}
	for _, r := range removals {
		if r.End.After(ended[0].at) {
			s.t.Errorf("removed at %v, after the first cleanup call's end at %v", r.End, ended[0].at)
		}
	}
}

// checkSeen checks that whenever the CA looked at a record a value was there.
func (s *scene) checkSeen(record string) {
	s.t.Helper()
	for _, values := range s.seenByCA(record) {
		if len(values) == 0 {
			s.t.Errorf("the CA saw nothing at %s", record)
		}
	}
}

// Certbot says nothing to the hooks of names that the CA needs no proof of, and leaves them out of its count.
func TestSomeAuthorizationsValidAlready(t *testing.T) {
	s := sceneFor(t, lab.Options{Reuse: true}, three...)
	s.issue(three[0])
	s.API.Forget()
	b := s.between(nil)
	args := append(b.args(three...), "--cert-name", "all")
	if r := s.Certbot(args...); r.Code != 0 {
		t.Fatalf("certbot: %v", r)
	}
	s.checkLineage("all", three...)
	for _, c := range b.begun("auth") {
		if c.domain == three[0] {
			t.Errorf("the hook was called for %s", c.domain)
		}
	}
	s.checkOrder(b.begun("auth"), b.ended("auth"), 2)
	s.checkRemovedAtOnce(b.ended("cleanup"), 2)

	s.API.Forget()
	if r := s.Certbot(append(args, "--force-renewal")...); r.Code != 0 {
		t.Fatalf("certbot: %v", r)
	}
	if n := len(b.begun("auth")); n != 2 {
		t.Errorf("%d more auth calls, though all authorizations are valid", n-2)
	}
	if calls := s.API.Calls(); len(calls) > 0 {
		t.Errorf("the provider was asked: %v", calls)
	}
}

// A name that is refused, wherever in the order, keeps no other from being written and waited for: with
// --allow-subset-of-names certbot gets a certificate for those.
func TestRefusedNameInEachPlace(t *testing.T) {
	for place, name := range []string{"first", "middle", "last"} {
		t.Run(name, func(t *testing.T) {
			const lag = 1500 * time.Millisecond
			s := sceneFor(t, lab.Options{}, three...)
			var refused string
			b := s.between(func(c call) {
				if c.hook == "auth" && c.remaining == len(three)-1-place && refused == "" {
					refused = c.domain
					s.Undelegate(c.domain)
				}
			})
			s.Alias[1].SetLag(lag)
			if r := s.Certbot(append(b.args(three...), "--allow-subset-of-names", "--cert-name", "subset")...); r.Code != 0 {
				t.Fatalf("certbot: %v", r)
			}
			others := slices.DeleteFunc(slices.Clone(three), func(n string) bool { return n == refused })
			s.checkLineage("subset", others...)

			begun, ended := b.begun("auth"), b.ended("auth")
			if len(ended) < 3 {
				t.Fatalf("calls: %+v", ended)
			}
			for i, c := range ended {
				if failed := c.code != 0; failed != (i == place) {
					t.Errorf("auth call %d, for %s of which %s is refused, has exit code %d", i, c.domain, refused, c.code)
				}
			}
			var first []cloudflaretest.Call // round; in the second one certbot leaves the refused name out
			for _, w := range s.writes() {
				if w.Start.Before(ended[2].at) {
					first = append(first, w)
				}
			}
			if len(first) != 2 || first[0].Start.Before(begun[2].at) {
				t.Fatalf("the first round wrote %v, want both values after %v", first, begun[2].at)
			}
			// Certbot goes to the CA when this call ends, which has waited for the slowest server.
			last := slices.MaxFunc(first, func(a, b cloudflaretest.Call) int { return a.End.Compare(b.End) })
			if waited := ended[2].at.Sub(last.End); waited < lag-100*time.Millisecond {
				t.Errorf("the last call ended %v after the last write; the slowest server takes %v", waited, lag)
			}
			for _, n := range others {
				s.checkSeen(lab.Target(n, lab.AliasZone))
			}
			if !s.askedByCA(refused, time.Time{}) {
				t.Errorf("the CA was not asked about %s", refused)
			}
		})
	}
}

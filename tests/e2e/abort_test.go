package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/certhook/certhook/tests/cloudflaretest"
	"github.com/certhook/certhook/tests/lab"
)

// CERTBOT_ABORT_ON_FAILURE rests on certbot taking output that is not UTF-8 for a failure of the lineage at
// hand. If a new certbot does not, these tests are to notice.
var aborting = map[string]string{"CERTBOT_ABORT_ON_FAILURE": "true"}

// decodingError is what certbot says of the byte that ends the output of an aborting hook.
const decodingError = "codec can't decode byte 0xff"

func TestAbort(t *testing.T) {
	for name, tt := range map[string]struct {
		locale   string
		breakage func(*scene)
		written  int
	}{
		"a name without its CNAME": {breakage: func(s *scene) { s.Undelegate(three[1]) }},
		"in the C locale":          {locale: "C", breakage: func(s *scene) { s.Undelegate(three[1]) }},
		"one value refused by the provider": {written: 2, breakage: func(s *scene) {
			s.API.Break(cloudflaretest.Forbidden.On(http.MethodPost, cloudflaretest.RecordSet).Times(1))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := sceneFor(t, lab.Options{Settings: aborting}, three...)
			tt.breakage(s)
			post, b := newPostHook(t), s.between(nil)
			certbot := []string{"LC_ALL=" + tt.locale, "/usr/bin/certbot"}
			r := s.Run("/usr/bin/env", slices.Concat(certbot, b.args(three...), post.args())...)
			if r.Code != 1 || !strings.Contains(r.Stderr, decodingError) {
				t.Errorf("certbot does not report a decoding error: %v", r)
			}
			if n := len(s.CA.Validations()); n > 0 {
				t.Errorf("certbot answered %d challenges", n)
			}
			for _, n := range three {
				if s.askedByCA(n, time.Time{}) {
					t.Errorf("the CA has looked for the challenge of %s", n)
				}
			}
			post.check()
			removals := s.calls(http.MethodDelete)
			if len(removals) != tt.written {
				t.Errorf("%d values were removed, want %d", len(removals), tt.written)
			}
			// Certbot calls no cleanup for the call that aborts, so that one has to do it.
			for _, r := range removals {
				if last := b.ended("auth")[2]; r.End.After(last.at) {
					t.Errorf("removed at %v, after the last auth call's end at %v", r.End, last.at)
				}
			}
			if left := s.ours(); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
			s.sweep()
		})
	}
}

// postHook tells whether certbot has come to its regular end, at which it runs its post-hook; one that was
// stopped by a signal does not.
type postHook struct {
	t    *testing.T
	file string
}

func newPostHook(t *testing.T) postHook { return postHook{t, filepath.Join(t.TempDir(), "post-hook")} }

// args are the arguments that certbot takes for its own; a renewal remembers them.
func (p postHook) args() []string { return []string{"--post-hook", "touch " + p.file} }

// check checks that the hook ran, once more.
func (p postHook) check() {
	p.t.Helper()
	if err := os.Remove(p.file); err != nil {
		p.t.Errorf("certbot's post-hook did not run: %v", err)
	}
}

// Of three lineages the middle one is broken. The others are renewed either way; whether the CA is asked
// about the broken one is up to the setting.
func TestBrokenLineageAmongThree(t *testing.T) {
	s := sceneFor(t, lab.Options{}, three...)
	post := newPostHook(t)
	serials := make(map[string]string)
	serial := func(name string) string { return s.checkLineage(name, name).SerialNumber.String() }
	for _, n := range three {
		if r := s.Certbot(append(lab.IssueArgs(n), post.args()...)...); r.Code != 0 {
			t.Fatalf("certbot for %s: %v", n, r)
		}
		post.check()
		serials[n] = serial(n)
	}
	broken := three[1]
	s.Undelegate(broken)

	for _, tt := range []struct {
		name        string
		settings    map[string]string
		validations int
		says        string
	}{
		{"aborted", aborting, 2, decodingError},
		{"the CA is asked", nil, 3, "Some challenges have failed"},
	} {
		s.FreshAccount()
		s.Configure(tt.settings)
		before, began := len(s.CA.Validations()), time.Now()
		r := s.Renew()
		if r.Code != 1 || !strings.Contains(r.Stderr, "Failed to renew certificate "+broken) || !strings.Contains(r.Stderr, tt.says) {
			t.Errorf("%s: certbot does not say of %s %q: %v", tt.name, broken, tt.says, r)
		}
		if n := len(s.CA.Validations()) - before; n != tt.validations {
			t.Errorf("%s: certbot answered %d challenges, want %d", tt.name, n, tt.validations)
		}
		if asked := s.askedByCA(broken, began); asked != (tt.settings == nil) {
			t.Errorf("%s: CA looked for the challenge of %s: %v", tt.name, broken, asked)
		}
		for _, n := range three {
			now := serial(n)
			if renewed := now != serials[n]; renewed == (n == broken) {
				t.Errorf("%s: %s renewed: %v", tt.name, n, renewed)
			}
			serials[n] = now
		}
		post.check()
		if left := s.ours(); len(left) > 0 {
			t.Errorf("%s: left: %q", tt.name, left)
		}
		s.sweep()
	}
}

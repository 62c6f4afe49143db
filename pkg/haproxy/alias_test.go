package haproxy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/tests/haproxytest"
)

// HAProxy keeps one file under every path by which the configuration leads to it. All of them are updated, and one
// that takes no commands has the whole go by a reload.
func TestAliases(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		certs string
		want  Action
		count int
	}{
		"another spelling and a link": {certs: "crt {certs}/ crt {certs}//a.test.pem crt {dir}/link.pem", want: Hot, count: 3},
		"a link with a space":         {certs: "crt {certs}/ crt '{dir}/a link.pem'", want: Reload, count: 2},
		"a link with quotes":          {certs: `crt {certs}/ crt '{dir}/"link".pem'`, want: Hot, count: 2},
		"a link that is called .crt":  {certs: "crt {certs}/ crt {dir}/link.crt", want: Reload, count: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, haproxytest.Options{Certs: tt.certs})
			s.renew("a.test", haproxytest.Wish{})
			file := filepath.Join(s.CertDir, "a.test.pem")
			for _, link := range []string{"link.pem", "link.crt", "a link.pem", `"link".pem`} {
				if err := os.Symlink(file, filepath.Join(s.Dir, link)); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := s.apply(); err == nil {
				t.Fatal("HAProxy is down")
			}
			s.Start()
			if _, err := s.apply(); err != nil {
				t.Fatal(err)
			}
			other := s.renew("b.test", haproxytest.Wish{})
			if states, err := s.apply(); err != nil {
				t.Errorf("another lineage: %s, %v", brief(states), err)
			}
			s.serves(other)
			fresh := s.renew("a.test", haproxytest.Wish{})
			states, err := s.apply()
			if err != nil || states[0].Action != tt.want || len(states[0].Memory) != tt.count {
				t.Errorf("%s, %v, memory %+v, steps %q", brief(states), err, states[0].Memory, s.steps)
			}
			s.serves(fresh)
			for _, h := range states[0].Memory {
				if got := s.Command("show ssl cert " + strings.ReplaceAll(h.Name, " ", `\ `)); !strings.Contains(got, haproxytest.SHA1(fresh.Leaf)) {
					t.Errorf("%s is stale: %s", h.Name, got)
				}
			}
		})
	}
}

// The pidfile names another process by now: nobody is signalled, and HAProxy counts as down.
func TestReusedPID(t *testing.T) {
	t.Parallel()
	s := newScene(t, haproxytest.Options{NoStatsSocket: true, NoMasterSocket: true})
	s.Start()
	s.renew("a.test", haproxytest.Wish{})
	if _, err := s.apply(); err != nil {
		t.Fatal(err)
	}
	s.Kill()
	if err := os.WriteFile(s.PIDFile, []byte("1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.renew("a.test", haproxytest.Wish{})
	_, err := s.apply()
	kind(t, err, fault.Pending)
}

// More lineages than are looked at in one run: the one whose wire is wrong is found within a few.
func TestSample(t *testing.T) {
	t.Parallel()
	s := newScene(t, haproxytest.Options{})
	names := []string{}
	for i := range 3*sampleSize + 1 {
		name := "n" + string(rune('a'+i/26)) + string(rune('a'+i%26)) + ".test"
		s.renew(name, haproxytest.Wish{})
		names = append(names, name)
	}
	if _, err := s.apply(); err == nil {
		t.Fatal("HAProxy is down")
	}
	victim := names[len(names)-1]
	s.put("zz-old.pem", s.ca.Issue(haproxytest.Wish{}, victim))
	s.put("000-old.pem", s.ca.Issue(haproxytest.Wish{}, victim)) // whichever it prefers, it is not ours
	s.Start()
	found := false
	for range 5 {
		if _, err := s.apply(); err != nil {
			kind(t, err, fault.Verdict)
			found = true
		}
	}
	if !found {
		t.Error("the wrong certificate is not seen")
	}
}

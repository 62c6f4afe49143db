package authority

import (
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/tests/dnstest"
)

// recursive returns the names that a recursive resolver was asked about, but for addresses of servers.
func recursive(w *dnstest.World) (names []string) {
	for _, q := range w.Queries() {
		if q.Recursive && q.Type != dns.TypeA && q.Type != dns.TypeAAAA {
			names = append(names, q.Name)
		}
	}
	return names
}

// TestFind finds zones of names that do not exist, mostly, and holds what a recursive resolver was asked
// against what it may be asked.
func TestFind(t *testing.T) {
	tests := []struct {
		name, ask, want string
		asked           []string // of the resolver, in order
		prepare         func(*dnstest.World, map[string]*dnstest.Server)
	}{
		{"nothing there", "svc.example.com", "example.com", []string{"example.com"}, nil},
		{"far below", "a.b.c.example.com", "example.com", []string{"example.com"}, nil},
		{"a challenge", "_acme-challenge.svc.example.com", "example.com", []string{"example.com"}, nil},
		{"apex", "example.com", "example.com", []string{"example.com"}, nil},
		{"delegated child", "a.child.example.com", "child.example.com", []string{"example.com"}, func(w *dnstest.World, s map[string]*dnstest.Server) {
			w.AddZone("child.example.com", s["ns.other.net"])
		}},
		{"child on the same servers", "a.child.example.com", "child.example.com", []string{"example.com"}, func(w *dnstest.World, s map[string]*dnstest.Server) {
			w.AddZone("child.example.com", s["ns1.example.com"], s["ns2.example.com"])
		}},
		{"not registered", "svc.example-two.com", "com", []string{"example-two.com", "com"}, nil},
		{"public suffix", "com", "com", []string{"com"}, nil},
		{"public suffix of two labels", "svc.example.co.uk", "example.co.uk", []string{"example.co.uk"}, func(w *dnstest.World, s map[string]*dnstest.Server) {
			w.AddZone("uk", s["tld.example.org"])
			w.AddZone("example.co.uk", s["ns.other.net"])
		}},
		{"suffix without a zone of its own", "co.uk", "uk", []string{"co.uk", "uk"}, func(w *dnstest.World, s map[string]*dnstest.Server) {
			w.AddZone("uk", s["tld.example.org"])
		}},
		{"suffix of no registry", "svc.user.github.io", "github.io", []string{"github.io"}, func(w *dnstest.World, s map[string]*dnstest.Server) {
			w.AddZone("io", s["tld.example.org"])
			w.AddZone("github.io", s["ns.other.net"])
		}},
		{"top level that nobody registers in", "svc.dept.corp", "corp", []string{"dept.corp", "corp"}, func(w *dnstest.World, s map[string]*dnstest.Server) {
			w.AddZone("corp", s["ns.other.net"])
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w, c, s := world(t)
			if tt.prepare != nil {
				tt.prepare(w, s)
			}
			z, err := c.Find(t.Context(), tt.ask)
			if err != nil || z.Name != tt.want || len(z.Servers) == 0 {
				t.Errorf("Find = %v, %v, want %s", z, err, tt.want)
			}
			if asked := recursive(w); !slices.Equal(asked, tt.asked) {
				t.Errorf("the resolver was asked about %q, want %q", asked, tt.asked)
			}
		})
	}
}

func TestFindFailure(t *testing.T) {
	for name, prepare := range map[string]func(*dnstest.World, map[string]*dnstest.Server){
		"the resolver fails": func(w *dnstest.World, _ map[string]*dnstest.Server) { w.FailAsk("example.com", dnstest.ServFail) },
		"the servers are dead": func(_ *dnstest.World, s map[string]*dnstest.Server) {
			s["ns1.example.com"].SetDead(true)
			s["ns2.example.com"].SetDead(true)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, c, s := world(t)
			prepare(w, s)
			if z, err := c.Find(t.Context(), "svc.example.com"); fault.KindOf(err) != fault.Unknown {
				t.Errorf("Find = %v, %v, want an error of kind Unknown", z, err)
			}
			if asked := recursive(w); slices.ContainsFunc(asked, func(n string) bool { return dnsname.Below(n, "example.com") }) {
				t.Errorf("the resolver was asked about %q", asked)
			}
		})
	}
}

// TestEnclosing starts from what is known, and asks a resolver only about the rest.
func TestEnclosing(t *testing.T) {
	w, c, s := world(t)
	w.AddZone("child.example.com", s["ns1.example.com"], s["ns2.example.com"])
	known := []Zone{start("com", s), start("example.com", s), {}}
	for name, want := range map[string]string{
		"a.b.child.example.com": "child.example.com",
		"www.example.com":       "example.com",
		"example.com":           "example.com",
		"a.b.c.other.net":       "other.net",
		"other.net":             "other.net",
		"net":                   "net",
	} {
		if z, err := c.Enclosing(t.Context(), name, known...); err != nil || z.Name != want {
			t.Errorf("Enclosing %s = %v, %v, want %s", name, z, err, want)
		}
	}
	for _, name := range recursive(w) {
		if strings.Count(name, ".") > 1 || dnsname.Within(name, "com") {
			t.Errorf("a recursive resolver was asked about %s", name)
		}
	}
}

func TestRegistered(t *testing.T) {
	for name, want := range map[string]string{
		"a.b.example.com":           "example.com",
		"example.com":               "example.com",
		"com":                       "com",
		"a.example.co.uk":           "example.co.uk",
		"co.uk":                     "co.uk",
		"a.github.io":               "github.io",
		"github.io":                 "github.io",
		"a.b.s3.amazonaws.com":      "amazonaws.com",
		"a.b.city.kawasaki.jp":      "city.kawasaki.jp", // an exception to *.kawasaki.jp
		"a.b.c.kawasaki.jp":         "b.c.kawasaki.jp",
		"x.lab":                     "x.lab",
		"a.x.lab":                   "x.lab",
		"lab":                       "lab",
		"_acme-challenge.a.x.co.uk": "x.co.uk",
	} {
		if got := Registered(name); got != want {
			t.Errorf("registered %s = %s, want %s", name, got, want)
		}
	}
}

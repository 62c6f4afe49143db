package authority

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/tests/dnstest"
)

// Whoever knows of a zone may ask its servers and those of the zones below, which need not agree where these are cut.
func TestQueryEveryone(t *testing.T) {
	const name = "www.svc.example.com"
	tests := []struct {
		name    string
		prepare func(w *dnstest.World, one, two, other *dnstest.Server)
		want    []string // zones and what their servers do
	}{
		{name: "one zone", want: []string{"example.com: one answers, two answers"}},
		{name: "one is dead", prepare: func(_ *dnstest.World, one, _, _ *dnstest.Server) { one.SetDead(true) }, want: []string{"example.com: one fails, two answers"}},
		{
			name:    "delegated to another server",
			prepare: func(w *dnstest.World, _, _, other *dnstest.Server) { w.AddZone("svc.example.com", other) },
			want:    []string{"example.com: refers", "svc.example.com: other answers"},
		},
		{
			name: "delegated to a dead one",
			prepare: func(w *dnstest.World, _, _, other *dnstest.Server) {
				w.AddZone("svc.example.com", other)
				other.SetDead(true)
			},
			want: []string{"example.com: refers", "svc.example.com: other fails, dead"},
		},
		{
			name:    "delegated to the same servers and another",
			prepare: func(w *dnstest.World, one, two, other *dnstest.Server) { w.AddZone("svc.example.com", one, two, other) },
			want:    []string{"example.com: one answers, two answers", "svc.example.com: one answers, other answers, two answers"},
		},
		{
			name:    "delegated to one of the servers and another",
			prepare: func(w *dnstest.World, one, _, other *dnstest.Server) { w.AddZone("svc.example.com", one, other) },
			want:    []string{"example.com: one answers, refers", "svc.example.com: one answers, other answers"},
		},
		{
			name: "delegated by one only",
			prepare: func(w *dnstest.World, _, two, other *dnstest.Server) {
				two.SetLag(time.Hour)
				w.AddZone("svc.example.com", other)
			},
			want: []string{"example.com: two answers, refers", "svc.example.com: other answers"},
		},
		{
			name: "two zones below each other",
			prepare: func(w *dnstest.World, _, two, other *dnstest.Server) {
				w.AddZone("svc.example.com", other)
				w.AddZone(name, two)
			},
			want: []string{"example.com: two answers, refers", "svc.example.com: refers", "www.svc.example.com: two answers"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := dnstest.New(t)
			one, two, other := w.AddServer("one.test"), w.AddServer("two.test"), w.AddServer("other.test")
			zone := w.AddZone("example.com", one, two)
			if tt.prepare != nil {
				tt.prepare(w, one, two, other)
			}
			c := &Client{Recursive: w, Port: w.Port, Timeout: 300 * time.Millisecond}
			from, err := c.Zone(t.Context(), zone.Name)
			if err != nil {
				t.Fatal(err)
			}
			before := len(w.Queries())
			var got []string
			for _, s := range c.QueryEveryone(t.Context(), from, name, dns.TypeTXT) {
				var parts []string
				for _, a := range s.Answers {
					did := "answers"
					if a.Err != nil {
						did = "fails"
					}
					parts = append(parts, strings.TrimSuffix(a.Server, ".test")+" "+did)
				}
				if s.Refers {
					parts = append(parts, "refers")
				}
				if s.Dead() != nil {
					parts = append(parts, "dead")
				}
				got = append(got, s.Zone.Name+": "+strings.Join(parts, ", "))
			}
			slices.Sort(got)
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			asked := map[string]bool{}
			for _, q := range w.Queries()[before:] {
				key := q.Server + q.Transport + q.Name + dns.TypeToString[q.Type]
				if !q.Recursive && asked[key] {
					t.Errorf("asked again: %v", q)
				}
				asked[key] = true
			}
		})
	}
}

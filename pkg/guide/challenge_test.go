package guide

import (
	"strings"
	"testing"
)

// Where the name exists and no CNAME is seen, the operator may have made one that the DNS provider does not show.
func TestFlattenedCNAME(t *testing.T) {
	t.Parallel()
	const name = "_acme-challenge." + domain
	tests := []struct {
		name string
		zone []string
		want bool
	}{
		{name: "nothing"},
		{name: "no TXT, as at a flattened CNAME before there is a challenge", zone: []string{name + " A 192.0.2.1"}, want: true},
		{name: "a TXT, as at one during a challenge", zone: []string{name + ` TXT "x"`}, want: true},
		{name: "a CNAME elsewhere", zone: []string{name + " CNAME x.example.org"}},
		{name: "as it should be", zone: []string{cnameRR}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			for _, rr := range tt.zone {
				s.Add("example.com", rr)
			}
			f := finding(t, s.Check(t.Context(), []Plan{plan(t, domain)}), ChallengeCNAME)
			if got := strings.Contains(strings.Join(f.Notes, "\n"), "flattens"); got != tt.want {
				t.Errorf("%+v", f)
			}
		})
	}
}

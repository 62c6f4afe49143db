package provider_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/provider"
)

func TestJudge(t *testing.T) {
	const edit, read, unknown = provider.AccessEdit, provider.AccessRead, provider.AccessUnknown
	type zones = map[string]provider.Access
	alias := []string{"deleg.example.net"}
	for name, tc := range map[string]struct {
		zones   zones
		partial string
		aliases []string
		domains []string // default svc.example.com
		extent  provider.Extent
		own     string
		excess  string // in order, each with what it serves
		seen    string
		says    string // in the error
	}{
		"the alias zone alone":       {zones: zones{"deleg.example.net": edit}, aliases: alias, extent: provider.Confined, own: "deleg.example.net"},
		"a zone inside":              {zones: zones{"deleg.example.net": edit, "sub.deleg.example.net": edit}, aliases: alias, extent: provider.Confined, own: "deleg.example.net sub.deleg.example.net"},
		"look-alike":                 {zones: zones{"deleg.example.net": edit, "notdeleg.example.net": edit}, aliases: alias, extent: provider.TooWide, own: "deleg.example.net", excess: "notdeleg.example.net[]", says: `"notdeleg.example.net"`},
		"two alias zones":            {zones: zones{"a.example": edit, "b.example": edit}, aliases: []string{"a.example", "b.example"}, extent: provider.Confined, own: "a.example b.example"},
		"the parent of the alias":    {zones: zones{"deleg.example.net": edit, "example.net": edit}, aliases: alias, extent: provider.TooWide, own: "deleg.example.net", excess: "example.net[]", says: `"example.net"`},
		"only the parent":            {zones: zones{"example.net": edit}, aliases: alias, extent: provider.TooWide, excess: "example.net[]"},
		"production":                 {zones: zones{"aaa.example": edit, "bbb.example": edit, "deleg.example.net": edit, "example.com": edit}, aliases: alias, extent: provider.TooWide, own: "deleg.example.net", excess: "example.com[svc.example.com] aaa.example[] bbb.example[]", says: `"example.com", which holds svc.example.com, and 2 more zones`},
		"production's subzone":       {zones: zones{"deleg.example.net": edit, "example.com": edit, "svc.example.com": edit}, aliases: alias, extent: provider.TooWide, own: "deleg.example.net", excess: "example.com[svc.example.com] svc.example.com[svc.example.com]", says: "one more zone"},
		"unknown access":             {zones: zones{"deleg.example.net": unknown, "example.com": unknown}, aliases: alias, extent: provider.TooWide, own: "deleg.example.net", excess: "example.com[svc.example.com]"},
		"seen, not changed":          {zones: zones{"deleg.example.net": edit, "example.com": read}, aliases: alias, extent: provider.Confined, own: "deleg.example.net", seen: "example.com"},
		"seen and more":              {zones: zones{"deleg.example.net": edit, "example.com": read, "other.example": edit}, aliases: alias, extent: provider.TooWide, own: "deleg.example.net", seen: "example.com", excess: "other.example[]"},
		"partial":                    {zones: zones{"deleg.example.net": edit}, partial: "nobody says", aliases: alias, extent: provider.Unclear, own: "deleg.example.net", says: "nobody says"},
		"partial, yet too wide":      {zones: zones{"example.com": edit}, partial: "nobody says", aliases: alias, extent: provider.TooWide, excess: "example.com[svc.example.com]"},
		"partial, seen":              {zones: zones{"example.com": read}, partial: "nobody says", aliases: alias, extent: provider.Unclear, seen: "example.com", says: "nobody says"},
		"alias zone not listed":      {zones: zones{"other.example": read}, aliases: alias, extent: provider.Unclear, seen: "other.example", says: `"deleg.example.net" is not among`},
		"second alias zone missing":  {zones: zones{"deleg.example.net": edit}, aliases: []string{"deleg.example.net", "b.example"}, extent: provider.Unclear, own: "deleg.example.net", says: `"b.example"`},
		"nothing listed":             {aliases: alias, extent: provider.Unclear, says: "deleg.example.net"},
		"a domain in the alias zone": {zones: zones{"example.com": edit}, aliases: []string{"example.com"}, extent: provider.TooWide, excess: "example.com[svc.example.com]"},

		"no delegation":                   {zones: zones{"example.com": edit}, extent: provider.Confined, own: "example.com"},
		"no delegation, and others":       {zones: zones{"example.com": edit, "example.org": edit}, extent: provider.TooWide, own: "example.com", excess: "example.org[]", says: "the domains' own zones"},
		"no delegation, zone above":       {zones: zones{"example.com": edit, "svc.example.com": edit}, extent: provider.TooWide, own: "svc.example.com", excess: "example.com[svc.example.com]"},
		"no delegation, both needed":      {zones: zones{"example.com": edit, "svc.example.com": edit}, domains: []string{"svc.example.com", "www.example.com"}, extent: provider.Confined, own: "example.com svc.example.com"},
		"no delegation, zone not listed":  {zones: zones{"example.com": edit}, domains: []string{"svc.example.com", "a.example.org"}, extent: provider.Unclear, own: "example.com", says: `"a.example.org"`},
		"many domains in a zone, counted": {zones: zones{"deleg.example.net": edit, "example.com": edit}, aliases: alias, domains: []string{"a.example.com", "b.example.com", "c.example.com", "d.example.com"}, extent: provider.TooWide, own: "deleg.example.net", excess: "example.com[a.example.com b.example.com c.example.com d.example.com]", says: "a.example.com, b.example.com and 2 more"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.domains == nil {
				tc.domains = []string{"svc.example.com"}
			}
			r := provider.Reach{Partial: tc.partial, Advice: "look there"}
			for zone, access := range tc.zones {
				r.Zones = append(r.Zones, provider.Reached{Name: zone, Access: access})
			}
			slices.SortFunc(r.Zones, func(a, b provider.Reached) int { return strings.Compare(a.Name, b.Name) })
			got := r.Judge(tc.aliases, tc.domains)
			if got.Extent != tc.extent {
				t.Errorf("extent %q, want %q", got.Extent, tc.extent)
			}
			var excess []string
			for _, x := range got.Excess {
				excess = append(excess, fmt.Sprint(x.Name, x.Serves))
			}
			for what, pair := range map[string][2]string{
				"own": {names(got.Own), tc.own}, "seen": {names(got.Seen), tc.seen}, "excess": {strings.Join(excess, " "), tc.excess},
			} {
				if pair[0] != pair[1] {
					t.Errorf("%s: %q, want %q", what, pair[0], pair[1])
				}
			}
			kind := map[provider.Extent]fault.Kind{provider.TooWide: fault.Verdict, provider.Unclear: fault.Unknown}[tc.extent]
			err := got.Err()
			if fault.KindOf(err) != kind || (err == nil) != (tc.extent == provider.Confined) {
				t.Errorf("error %v of kind %d, want kind %d", err, fault.KindOf(err), kind)
			}
			if err != nil && (!strings.Contains(err.Error(), tc.says) || fault.HintOf(err) != "look there") {
				t.Errorf("error %q with hint %q, want %q in it", err, fault.HintOf(err), tc.says)
			}
			if (got.Why != "") != (tc.extent == provider.Unclear) {
				t.Errorf("with %q, why is %q", tc.extent, got.Why)
			}
		})
	}
}

func names(zones []provider.Reached) string {
	var list []string
	for _, z := range zones {
		list = append(list, z.Name)
	}
	return strings.Join(list, " ")
}

func TestZoneNames(t *testing.T) {
	got := provider.ZoneNames([]string{"b.svc.example.com", "a.example.co.uk", "me.github.io", "svc.example.com", "lan", "com"})
	want := []string{"a.example.co.uk", "b.svc.example.com", "example.co.uk", "example.com", "github.io", "me.github.io", "svc.example.com"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

package challenge

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/certhook/certhook/pkg/delegation"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/tests/dnstest"
)

func TestZone(t *testing.T) {
	below := "acme." + alias
	tests := map[string]struct {
		aliases []string
		zones   []string // what the provider serves; nil means the alias zone
		prepare func(l *lab)
		domain  string
		want    string // zone; empty means refused
		lookups []string
		kind    fault.Kind
		word    string // in the error
	}{
		"alias is the apex":                  {want: alias, lookups: []string{alias}},
		"beside zones of similar names":      {zones: []string{"example.net", "notdeleg.example.net", alias}, want: alias, lookups: []string{alias}},
		"alias below the apex":               {aliases: []string{below}, want: alias, lookups: []string{alias}},
		"alias below a zone that is not cut": {aliases: []string{"uncut.example.net"}, zones: []string{"example.net"}, want: "example.net", lookups: []string{"example.net"}},
		"alias is a delegated child": {
			aliases: []string{below}, zones: []string{alias, below}, want: below, lookups: []string{below},
			prepare: func(l *lab) { l.world.AddZone(below, l.world.AddServer("ns1."+below)) },
		},
		"child on the same servers": {
			aliases: []string{below}, zones: []string{alias, below}, want: below, lookups: []string{below},
			prepare: func(l *lab) { l.world.AddZone(below, l.ns...) },
		},
		"a cut that the provider does not serve": {
			word: "com." + alias, lookups: []string{"com." + alias},
			prepare: func(l *lab) { l.world.AddZone("com."+alias, l.world.AddServer("ns1.com."+alias)) },
		},
		"alias zone that nobody delegated": {
			aliases: []string{"uncut.example.net"}, zones: []string{"uncut.example.net"},
			kind: fault.Verdict, word: "uncut.example.net is not delegated", lookups: []string{"example.net", "uncut.example.net"},
		},
		"no zone at all":  {zones: []string{}, word: alias, lookups: []string{alias}},
		"only the parent": {zones: []string{"example.net"}, word: alias, lookups: []string{alias}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			if tt.aliases != nil {
				l.Targets.Aliases = tt.aliases
			}
			if tt.zones != nil {
				l.provider.zones = tt.zones
			}
			if tt.prepare != nil {
				tt.prepare(l)
			}
			target, err := l.Targets.Target("a.example.com")
			if err != nil {
				t.Fatal(err)
			}
			got := l.locate(t.Context(), []delegation.Target{target})[0]
			if tt.kind == fault.Other {
				tt.kind = fault.Provider
			}
			if tt.want == "" {
				wantKind(t, got.err, tt.kind, tt.word)
			} else if got.err != nil || got.zone.Name != tt.want || got.dns.Name != tt.want {
				t.Errorf("zone %q (%q in DNS), %v; want %q", got.zone.Name, got.dns.Name, got.err, tt.want)
			}
			if calls := l.provider.called("zone"); !slices.Equal(calls, tt.lookups) {
				t.Errorf("looked up %q, want %q", calls, tt.lookups)
			}
			for _, q := range l.world.Queries() {
				if q.Recursive && q.Name != "" && q.Name[0] == '_' {
					t.Errorf("a resolver was asked about %s", q.Name)
				}
			}
		})
	}
}

// Where DNS says nothing, the provider's zones decide alone: the longest that it serves, and a look-up
// that fails ends the search instead of leading to a zone above.
func TestZoneWithoutDNS(t *testing.T) {
	tests := map[string]struct {
		zones  []string
		fail   string
		pinned string
		want   string
	}{
		"longest suffix":           {zones: []string{"example.net", "notdeleg.example.net", alias}, want: alias},
		"longer still":             {zones: []string{alias, "example.com." + alias}, want: "example.com." + alias},
		"not above the alias zone": {zones: []string{"example.net"}},
		"none":                     {zones: []string{"other.example"}},
		"not a public suffix":      {zones: []string{"net"}},
		"failed look-up":           {zones: []string{"example.net", alias}, fail: "zone " + alias},
		"failed look-up far below": {zones: []string{"example.net", alias}, fail: "zone com." + alias},
		"pinned id without a name": {zones: []string{alias}, pinned: "0123"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.world.FailAsk(alias, dnstest.ServFail)
			l.world.FailAsk("example.net", dnstest.ServFail)
			l.provider.zones = tt.zones
			l.PinnedZoneID = tt.pinned
			if tt.fail != "" {
				l.provider.fail[tt.fail] = errRefused
			}
			target, err := l.Targets.Target("a.example.com")
			if err != nil {
				t.Fatal(err)
			}
			got := l.locate(t.Context(), []delegation.Target{target})[0]
			if tt.want == "" {
				wantKind(t, got.err, fault.Provider)
			} else if got.err != nil || got.zone.Name != tt.want {
				t.Errorf("zone %q, %v; want %q", got.zone.Name, got.err, tt.want)
			}
		})
	}
}

// With port 53 blocked, resolvers still tell which zone the alias lies in: a zone above it is never tried.
func TestZoneWithoutItsServers(t *testing.T) {
	for _, tt := range []struct {
		alias, serves, want string
	}{
		{alias, alias, alias},
		{alias, "example.net", ""},
		{"label.example.net", "example.net", "example.net"},
	} {
		l := newLab(t)
		l.DNS.Timeout = 300 * time.Millisecond
		l.parent.SetBlocked(netip.MustParseAddr("127.0.0.1"))
		for _, ns := range l.ns {
			ns.SetBlocked(netip.MustParseAddr("127.0.0.1"))
		}
		l.Targets.Aliases = []string{tt.alias}
		l.provider.zones = []string{tt.serves}
		target, err := l.Targets.Target("a.example.com")
		if err != nil {
			t.Fatal(err)
		}
		got := l.locate(t.Context(), []delegation.Target{target})[0]
		if got.zone.Name != tt.want || (got.err != nil) != (tt.want == "") {
			t.Errorf("%+v: zone %q, %v", tt, got.zone.Name, got.err)
		}
	}
}

func TestPinnedZoneIDSkipsTheLookUp(t *testing.T) {
	l := newLab(t)
	l.PinnedZoneID = "0123"
	if _, err := l.Present(t.Context(), order(1, "a.example.com")[0], caller(t)); err != nil {
		t.Fatal(err)
	}
	if got := l.provider.called("zone"); len(got) != 0 {
		t.Errorf("looked up %q", got)
	}
	l.wantValues(t, "a.example.com", val(1))
}

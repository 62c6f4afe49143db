package cloudflare_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/provider"
	"github.com/certhook/certhook/tests/cloudflaretest"
)

func TestZones(t *testing.T) {
	read := func(zones ...string) cloudflaretest.Token {
		return cloudflaretest.Token{Zones: zones, ZoneRead: true, DNSEdit: true}
	}
	tests := []struct {
		name   string
		token  cloudflaretest.Token
		status map[string]string // of further zones
		ask    string
		want   string // a zone name; "" = none
		hint   string // set = an error of kind Provider with this in its hint
	}{
		{name: "the only zone", token: read(zone), ask: zone, want: zone},
		{name: "beside parent and look-alike", token: read(allZones...), ask: zone, want: zone},
		{name: "parent", token: read(allZones...), ask: "example.net", want: "example.net"},
		{name: "look-alike", token: read(allZones...), ask: "not" + zone, want: "not" + zone},
		{name: "parent with a token for the child", token: read(zone), ask: "example.net"},
		{name: "below the zone", token: read(zone), ask: "_acme-challenge.svc.example.com." + zone},
		{name: "above all zones", token: read(allZones...), ask: "net"},
		{name: "token for all zones", token: cloudflaretest.Token{AllZones: true, ZoneRead: true}, ask: zone, want: zone},
		{name: "no such zone", token: read(allZones...), ask: "example.org"},
		{name: "pending zone", token: read("new.example.net"), status: map[string]string{"new.example.net": "pending"}, ask: "new.example.net", want: "new.example.net"},
		{name: "moved zone", token: read("old.example.net"), status: map[string]string{"old.example.net": "moved"}, ask: "old.example.net", hint: " "},
		{name: "IDN zone is not found by its A-label", token: read("xn--bcher-kva.example"), status: map[string]string{"xn--bcher-kva.example": "active"}, ask: "xn--bcher-kva.example"},
		{name: "token without Zone:Read", token: cloudflaretest.Token{Zones: []string{zone}, DNSEdit: true}, ask: zone, hint: "Zone:Read"},
		{name: "the way out is named", token: cloudflaretest.Token{Zones: []string{zone}, DNSEdit: true}, ask: zone, hint: "CLOUDFLARE_ZONE_ID=" + zone + "="},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := newLab(t)
			for z, status := range tt.status {
				l.AddZoneStatus(z, status)
			}
			tt.token.Secret = token
			l.AddToken(tt.token)
			got, err := l.provider(nil).Zone(t.Context(), tt.ask)
			switch {
			case tt.hint != "":
				checkProvider(t, err)
				if !strings.Contains(fault.HintOf(err)+" ", tt.hint) {
					t.Errorf("hint %q, want %q in it", fault.HintOf(err), tt.hint)
				}
			case tt.want == "" && !errors.Is(err, provider.ErrNoZone):
				t.Errorf("Zone(%q) = %+v, %v; want ErrNoZone", tt.ask, got, err)
			case tt.want != "" && (err != nil || got != provider.Zone{Name: tt.want, ID: cloudflaretest.ZoneID(tt.want)}):
				t.Errorf("Zone(%q) = %+v, %v; want %q", tt.ask, got, err, tt.want)
			}
			if got := l.asked(); !slices.Equal(got, []string{"GET zones"}) {
				t.Errorf("requests were %q", got)
			}
		})
	}
}

// Two accounts may have a zone of one name; the operator has to say which is meant.
func TestZoneInTwoAccounts(t *testing.T) {
	l := newLab(t)
	l.AddZoneStatus(zone, "pending")
	_, err := l.provider(nil).Zone(t.Context(), zone)
	checkProvider(t, err)
	if !strings.Contains(fault.HintOf(err), "CLOUDFLARE_ZONE_ID") {
		t.Errorf("hint %q does not name the setting", fault.HintOf(err))
	}
}

// An answer that is not a success about this very zone is not believed, even where it holds a zone.
func TestZoneAnswers(t *testing.T) {
	entry := func(id, name, status string) string {
		return fmt.Sprintf(`{"id":%q,"name":%q,"status":%q}`, id, name, status)
	}
	good := entry(pinned.ID, zone, "active")
	tests := []struct {
		name, body string
		ok         bool
	}{
		{"good", `{"success":true,"errors":[],"result":[` + good + `]}`, true},
		{"upper case and dot", `{"success":true,"errors":[],"result":[` + entry(pinned.ID, strings.ToUpper(zone)+".", "active") + `]}`, true},
		{"no success", `{"success":false,"errors":[],"result":[` + good + `]}`, false},
		{"success not said", `{"errors":[],"result":[` + good + `]}`, false},
		{"errors", `{"success":true,"errors":[{"code":1,"message":"but"}],"result":[` + good + `]}`, false},
		{"parent", `{"success":true,"errors":[],"result":[` + entry(cloudflaretest.ZoneID("example.net"), "example.net", "active") + `]}`, false},
		{"look-alike", `{"success":true,"errors":[],"result":[` + entry(pinned.ID, "not"+zone, "active") + `]}`, false},
		{"two", `{"success":true,"errors":[],"result":[` + good + "," + entry(pinned.ID, "example.net", "active") + `]}`, false},
		{"no status", `{"success":true,"errors":[],"result":[` + entry(pinned.ID, zone, "") + `]}`, false},
		{"path as id", `{"success":true,"errors":[],"result":[` + entry("../x", zone, "active") + `]}`, false},
		{"not a list", `{"success":true,"errors":[],"result":` + good + `}`, false},
		{"more after the end", `{"success":true,"errors":[],"result":[` + good + `]}{}`, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := newLab(t)
			l.Break(cloudflaretest.Fault{Body: tt.body})
			got, err := l.provider(nil).Zone(t.Context(), zone)
			if tt.ok && (err != nil || got != pinned) {
				t.Errorf("Zone = %+v, %v", got, err)
			}
			if !tt.ok {
				checkProvider(t, err)
			}
		})
	}
}

// An account's list shows 20 zones a page, 50 at most: the zone must be found wherever it stands in it.
func TestManyZones(t *testing.T) {
	for _, n := range []int{21, 130} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			l := newLab(t)
			for i := range n {
				l.AddZone(fmt.Sprintf("z%03d.example.net", i))
			}
			last := fmt.Sprintf("_acme.z%03d.example.net", n-1)
			id := l.AddZone(last)
			l.AddToken(cloudflaretest.Token{Secret: token, AllZones: true, ZoneRead: true, DNSEdit: true})
			got, err := l.provider(nil).Zone(t.Context(), last)
			if err != nil || got != (provider.Zone{Name: last, ID: id}) {
				t.Errorf("Zone(%q) = %+v, %v", last, got, err)
			}
			l.wantAsked("GET zones")
		})
	}
}

// With the id known, DNS:Edit alone is enough.
func TestPinnedZone(t *testing.T) {
	l := newLab(t)
	l.AddToken(cloudflaretest.Token{Secret: token, Zones: []string{zone}, DNSEdit: true})
	p := l.provider(map[string]string{strings.ToUpper(zone) + ".": pinned.ID})
	z, err := p.Zone(t.Context(), zone)
	if err != nil || z != pinned {
		t.Fatalf("Zone = %+v, %v", z, err)
	}
	if err := p.Add(t.Context(), z, challenge); err != nil {
		t.Fatal(err)
	}
	if removed, err := p.Remove(t.Context(), z, challenge); err != nil || !removed {
		t.Fatalf("Remove = %v, %v", removed, err)
	}
	l.wantAsked("POST records", "GET records", "DELETE record")
}

// An id that is another zone's: nothing may stay in that zone, and it must be said.
func TestWrongZoneID(t *testing.T) {
	for _, wrong := range allZones {
		if dnsname.Within(zone, wrong) {
			continue
		}
		for _, name := range []string{owner, "_acme-challenge." + zone, zone} {
			t.Run(wrong+" for "+name, func(t *testing.T) {
				l := newLab(t, allZones...)
				l.Seed(wrong, "TXT", "_acme-challenge.svc."+wrong, foreign)
				before := l.everything()
				p := l.provider(map[string]string{zone: cloudflaretest.ZoneID(wrong)})
				rec := provider.TXT{Name: name, Value: value, TTL: challenge.TTL}
				err := p.Add(t.Context(), provider.Zone{Name: zone}, rec)
				checkProvider(t, err)
				if !strings.Contains(fault.HintOf(err), "CLOUDFLARE_ZONE_ID") {
					t.Errorf("hint %q does not name the setting", fault.HintOf(err))
				}
				l.wantUnchanged(before)
				removed, err := p.Remove(t.Context(), provider.Zone{Name: zone}, rec)
				if removed || err != nil {
					t.Errorf("Remove = %v, %v", removed, err)
				}
				l.wantUnchanged(before)
			})
		}
	}
}

// The id of a zone above is no way to another name: the record has its own name there, too, where the zone
// cut hides it until it is removed again.
func TestZoneIDOfTheParent(t *testing.T) {
	l := newLab(t, allZones...)
	l.Seed("example.net", "TXT", "_acme-challenge.svc.example.net", foreign)
	before := l.everything()
	p := l.provider(map[string]string{zone: cloudflaretest.ZoneID("example.net")})
	if err := p.Add(t.Context(), provider.Zone{Name: zone}, challenge); err != nil {
		t.Fatal(err)
	}
	made := l.Records("example.net")
	if len(made) != 2 || made[1].Name != challenge.Name && made[0].Name != challenge.Name {
		t.Errorf("records of the parent: %+v", made)
	}
	if removed, err := p.Remove(t.Context(), provider.Zone{Name: zone}, challenge); err != nil || !removed {
		t.Errorf("Remove = %v, %v", removed, err)
	}
	l.wantUnchanged(before)
}

// If a stray record cannot be taken back, the error names it.
func TestWrongZoneIDStuck(t *testing.T) {
	for name, broken := range map[string]cloudflaretest.Fault{
		"look-up fails":  cloudflaretest.Forbidden.On(http.MethodGet, cloudflaretest.RecordSet),
		"deletion fails": cloudflaretest.Forbidden.On(http.MethodDelete, cloudflaretest.OneRecord),
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, allZones...)
			l.Break(broken)
			err := l.provider(map[string]string{zone: cloudflaretest.ZoneID("example.com")}).Add(t.Context(), provider.Zone{Name: zone}, challenge)
			checkProvider(t, err)
			left := l.Records("example.com")
			if len(left) != 1 || !strings.Contains(err.Error(), left[0].ID) || !strings.Contains(err.Error(), left[0].Name) {
				t.Errorf("%+v is left, which the error does not tell: %v", left, err)
			}
		})
	}
}

// Nor is anything else deleted in its place, whatever id the answer names.
func TestWrongZoneIDLyingEcho(t *testing.T) {
	l := newLab(t, allZones...)
	victim := l.Seed("example.com", "TXT", "www.example.com", foreign)
	anyID := regexp.MustCompile(`"id":"[0-9a-f]{32}"`)
	l.Break(cloudflaretest.Fault{Rewrite: func(body []byte) []byte {
		return anyID.ReplaceAll(body, []byte(`"id":"`+victim+`"`))
	}}.On(http.MethodPost, cloudflaretest.RecordSet))
	err := l.provider(map[string]string{zone: cloudflaretest.ZoneID("example.com")}).Add(t.Context(), provider.Zone{Name: zone}, challenge)
	checkProvider(t, err)
	if got := l.dns("www.example.com"); !slices.Equal(got, []string{foreign}) {
		t.Errorf("a foreign record was deleted: %q", got)
	}
}

// Taking a stray record back has time of its own.
func TestWrongZoneIDOutOfTime(t *testing.T) {
	t.Parallel()
	l := newLab(t, allZones...)
	l.Break(cloudflaretest.Fault{Delay: 1300 * time.Millisecond}.On(http.MethodGet, cloudflaretest.RecordSet))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	err := l.provider(map[string]string{zone: cloudflaretest.ZoneID("example.com")}).Add(ctx, provider.Zone{Name: zone}, challenge)
	checkProvider(t, err)
	if ctx.Err() == nil {
		t.Error("the deadline did not pass meanwhile")
	}
	l.wantUnchanged(nil)
}

// An id of a zone that the token has not, or of nothing.
func TestForeignZoneID(t *testing.T) {
	for name, id := range map[string]string{
		"zone of others": cloudflaretest.ZoneID("example.com"),
		"nobody's":       strings.Repeat("0", 32),
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.TolerateOutside()
			p := l.provider(map[string]string{zone: id})
			err := p.Add(t.Context(), provider.Zone{Name: zone}, challenge)
			checkProvider(t, err)
			if !strings.Contains(fault.HintOf(err), "CLOUDFLARE_ZONE_ID") {
				t.Errorf("hint %q does not name the setting", fault.HintOf(err))
			}
			removed, err := p.Remove(t.Context(), provider.Zone{Name: zone}, challenge)
			checkProvider(t, err)
			if removed || !errors.Is(err, provider.ErrZoneID) {
				t.Errorf("Remove = %v, %v", removed, err)
			}
			l.wantUnchanged(nil)
		})
	}
	l := newLab(t)
	l.Break(cloudflaretest.HTML502)
	if _, err := l.provider(nil).Remove(t.Context(), pinned, challenge); errors.Is(err, provider.ErrZoneID) {
		t.Errorf("of an API that is down the id is blamed: %v", err)
	}
}

// A domain below the alias zone gives a relative name that itself ends in the zone's.
func TestNameThatEndsInTheZoneTwice(t *testing.T) {
	l := newLab(t)
	p := l.provider(nil)
	rec := provider.TXT{Name: "_acme-challenge.host." + zone + "." + zone, Value: value, TTL: challenge.TTL}
	if err := p.Add(t.Context(), pinned, rec); err != nil {
		t.Fatal(err)
	}
	if got := l.dns(rec.Name); !slices.Equal(got, []string{value}) {
		t.Errorf("DNS has %q at %q", got, rec.Name)
	}
	if removed, err := p.Remove(t.Context(), pinned, rec); err != nil || !removed {
		t.Errorf("Remove = %v, %v", removed, err)
	}
	l.wantUnchanged(nil)
}

// A zone without id that was never looked up is refused; libdns would ask for it.
func TestUnknownZone(t *testing.T) {
	l := newLab(t)
	p := l.provider(nil)
	checkProvider(t, p.Add(t.Context(), provider.Zone{Name: zone}, challenge))
	_, err := p.Remove(t.Context(), provider.Zone{Name: zone}, challenge)
	checkProvider(t, err)
	l.wantAsked()
}

package cloudflare_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/certhook/certhook/pkg/provider"
	"github.com/certhook/certhook/pkg/provider/cloudflare"
	"github.com/certhook/certhook/tests/cloudflaretest"
)

// Four requests for one value, three for each further one; three for the first where the zone is known.
func TestRequests(t *testing.T) {
	for _, tt := range []struct {
		name   string
		zones  map[string]string
		values int
		want   []string
	}{
		{"one value", nil, 1, []string{"GET zones", "POST records", "GET records", "DELETE record"}},
		{"one value, zone known", map[string]string{zone: pinned.ID}, 1, []string{"POST records", "GET records", "DELETE record"}},
		{"two values", nil, 2, []string{
			"GET zones", "POST records", "POST records",
			"GET records", "DELETE record", "GET records", "DELETE record",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLab(t)
			p := l.provider(tt.zones)
			var recs []provider.TXT
			for i := range tt.values {
				recs = append(recs, provider.TXT{Name: owner, Value: fmt.Sprintf("%s-%d", value, i), TTL: time.Minute})
			}
			for _, rec := range recs {
				z, err := p.Zone(t.Context(), zone)
				if err != nil {
					t.Fatal(err)
				}
				if err := p.Add(t.Context(), z, rec); err != nil {
					t.Fatal(err)
				}
			}
			for _, rec := range recs {
				if removed, err := p.Remove(t.Context(), pinned, rec); err != nil || !removed {
					t.Fatalf("Remove = %v, %v", removed, err)
				}
			}
			l.wantAsked(tt.want...)
		})
	}
}

// A removal by another process, which knows the zone from the journal, asks for no zone either.
func TestRemoveByAnotherProcess(t *testing.T) {
	l := newLab(t)
	if err := l.provider(map[string]string{zone: pinned.ID}).Add(t.Context(), provider.Zone{Name: zone}, challenge); err != nil {
		t.Fatal(err)
	}
	l.wantAsked("POST records")
	if removed, err := l.provider(nil).Remove(t.Context(), pinned, challenge); err != nil || !removed {
		t.Fatalf("Remove = %v, %v", removed, err)
	}
	l.wantAsked("GET records", "DELETE record")
}

func TestAbsentValueCostsOneRequest(t *testing.T) {
	l := newLab(t)
	if removed, err := l.provider(nil).Remove(t.Context(), pinned, challenge); err != nil || removed {
		t.Fatalf("Remove = %v, %v", removed, err)
	}
	l.wantAsked("GET records")
}

func TestOneLookupForManyAtOnce(t *testing.T) {
	l := newLab(t)
	l.SetDelay(50 * time.Millisecond)
	p := l.provider(nil)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if got, err := p.Zone(t.Context(), zone); err != nil || got != pinned {
				t.Errorf("Zone = %+v, %v", got, err)
			}
		})
	}
	wg.Wait()
	l.wantAsked("GET zones")
}

// A failure is not remembered, nor is absence.
func TestLookupAfterFailure(t *testing.T) {
	l := newLab(t)
	p := l.provider(nil)
	lift := l.Break(cloudflaretest.Forbidden.On(http.MethodGet, cloudflaretest.Zones))
	if _, err := p.Zone(t.Context(), zone); err == nil {
		t.Fatal("a forbidden look-up succeeded")
	}
	lift()
	if got, err := p.Zone(t.Context(), zone); err != nil || got != pinned {
		t.Fatalf("Zone = %+v, %v", got, err)
	}
	if _, err := p.Zone(t.Context(), "late.example.net"); err == nil {
		t.Fatal("found a zone that is not there")
	}
	id := l.AddZone("late.example.net")
	l.AddToken(cloudflaretest.Token{Secret: token, AllZones: true, ZoneRead: true})
	if got, err := p.Zone(t.Context(), "late.example.net"); err != nil || got.ID != id {
		t.Fatalf("Zone = %+v, %v", got, err)
	}
}

func TestParallelWritesOverlap(t *testing.T) {
	l := newLab(t)
	p := l.provider(nil)
	l.SetDelay(150 * time.Millisecond)
	const n = 20
	each := func(do func(rec provider.TXT) error) {
		t.Helper()
		l.Forget()
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				rec := provider.TXT{Name: fmt.Sprintf("_acme-challenge.n%d.%s", i, zone), Value: value, TTL: time.Minute}
				if err := do(rec); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if overlap := cloudflaretest.Overlap(l.Calls()); overlap < n/2 {
			t.Errorf("at most %d of %d requests were under way at once", overlap, n)
		}
	}
	each(func(rec provider.TXT) error { return p.Add(t.Context(), pinned, rec) })
	if got := len(l.Records(zone)); got != n {
		t.Errorf("%d records, want %d", got, n)
	}
	each(func(rec provider.TXT) error { _, err := p.Remove(t.Context(), pinned, rec); return err })
	l.wantUnchanged(nil)
}

// Requests about other zones never happen, not even with a token that could make them.
func TestNothingOutsideTheZone(t *testing.T) {
	l := newLab(t, allZones...)
	p := l.provider(nil)
	z, err := p.Zone(t.Context(), zone)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Add(t.Context(), z, challenge); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Remove(t.Context(), z, challenge); err != nil {
		t.Fatal(err)
	}
	if outside := l.OutsideZone(zone); len(outside) > 0 {
		t.Errorf("requests outside the zone: %+v", outside)
	}
}

func TestTTLAndQuotes(t *testing.T) {
	l := newLab(t)
	if err := l.provider(nil).Add(t.Context(), pinned, challenge); err != nil {
		t.Fatal(err)
	}
	r := l.Records(zone)[0]
	want := cloudflaretest.Record{ID: r.ID, Type: "TXT", Name: owner, Content: `"` + value + `"`, TTL: 60}
	if r != want {
		t.Errorf("record is %+v, want %+v", r, want)
	}
	if got := l.dns(owner); !slices.Equal(got, []string{value}) {
		t.Errorf("DNS has %q", got)
	}
}

// What is not usable as a setting is refused before anything is asked.
func TestSettings(t *testing.T) {
	tests := []struct {
		name string
		cfg  cloudflare.Config
		ok   bool
	}{
		{"defaults", cloudflare.Config{Token: token}, true},
		{"no token", cloudflare.Config{}, false},
		{"line break in token", cloudflare.Config{Token: token + "\n"}, false},
		{"space in token", cloudflare.Config{Token: " " + token}, false},
		{"word before token", cloudflare.Config{Token: "Bearer " + token}, false},
		{"tab in token", cloudflare.Config{Token: token[:20] + "\t" + token[20:]}, false},
		{"letter outside ASCII in token", cloudflare.Config{Token: "é" + token}, false},
		{"https", cloudflare.Config{Token: token, APIURL: "https://api.example.com/client/v4/"}, true},
		{"http to 127.0.0.1", cloudflare.Config{Token: token, APIURL: "http://127.0.0.1:8080"}, true},
		{"http to ::1", cloudflare.Config{Token: token, APIURL: "http://[::1]:8080"}, true},
		{"http to localhost", cloudflare.Config{Token: token, APIURL: "http://localhost:8080"}, true},
		{"http elsewhere", cloudflare.Config{Token: token, APIURL: "http://api.example.com"}, false},
		{"http to a name like loopback", cloudflare.Config{Token: token, APIURL: "http://127.0.0.1.example.com"}, false},
		{"no scheme", cloudflare.Config{Token: token, APIURL: "api.example.com"}, false},
		{"other scheme", cloudflare.Config{Token: token, APIURL: "ftp://127.0.0.1"}, false},
		{"no host", cloudflare.Config{Token: token, APIURL: "https:///client/v4"}, false},
		{"user", cloudflare.Config{Token: token, APIURL: "https://user:" + token + "@api.example.com"}, false},
		{"query", cloudflare.Config{Token: token, APIURL: "https://api.example.com/?x=1"}, false},
		{"zone id", cloudflare.Config{Token: token, Zones: map[string]string{zone: pinned.ID}}, true},
		{"path as zone id", cloudflare.Config{Token: token, Zones: map[string]string{zone: "../accounts"}}, false},
		{"empty zone id", cloudflare.Config{Token: token, Zones: map[string]string{zone: ""}}, false},
		{"no zone name", cloudflare.Config{Token: token, Zones: map[string]string{"": pinned.ID}}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := cloudflare.New(tt.cfg)
			checkUsage(t, err, tt.ok)
		})
	}
}

package cloudflare_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/provider"
	"github.com/certhook/certhook/tests/cloudflaretest"
)

const production = "example.com" // holds the served domain

// reach asks what the lab's token reaches, for a served domain in the production zone, and lists the zones with
// the first letter of what may be done to them.
func (l *lab) reach(ctx context.Context) (provider.Reach, string, error) {
	l.t.Helper()
	r, err := l.provider(nil).Reach(ctx, []string{zone}, []string{"svc." + production})
	var list []string
	for _, z := range r.Zones {
		list = append(list, z.Name+":"+string(z.Access)[:1])
	}
	for _, c := range l.Calls() {
		if c.Method != http.MethodGet {
			l.t.Errorf("%s %s: nothing may be changed", c.Method, c.Path)
		}
	}
	return r, strings.Join(list, " "), err
}

func TestReach(t *testing.T) {
	day := 24 * time.Hour
	one := cloudflaretest.Token{Zones: []string{zone}, ZoneRead: true, DNSEdit: true}
	with := func(token cloudflaretest.Token, change func(*cloudflaretest.Token)) cloudflaretest.Token {
		change(&token)
		return token
	}
	all := cloudflaretest.Token{AllZones: true, ZoneRead: true, DNSEdit: true}
	everything := "deleg.example.net:e example.com:e example.net:e notdeleg.example.net:e sub.deleg.example.net:e"
	for name, tc := range map[string]struct {
		token   cloudflaretest.Token
		quirks  cloudflaretest.Quirks
		zones   string
		extent  provider.Extent
		absent  string // asked by name, and not there
		partial string // a part of it
		expires time.Duration
	}{
		"one zone": {token: one, quirks: cloudflaretest.Quirks{FilteredList: true}, zones: zone + ":e", extent: provider.Confined},
		"one zone, and the list is refused": {
			token: one, zones: zone + ":e", extent: provider.Unclear,
			absent: "example.com example.net svc.example.com", partial: "asked for by name",
		},
		"the account": {token: all, zones: everything, extent: provider.TooWide},
		"two zones, and the list is refused": {
			token: with(one, func(t *cloudflaretest.Token) { t.Zones = []string{zone, production} }),
			zones: zone + ":e example.com:e", extent: provider.TooWide, absent: "example.net svc.example.com", partial: "asked for by name",
		},
		"production can be read": {
			token:  with(one, func(t *cloudflaretest.Token) { t.ReadZones = []string{production} }),
			quirks: cloudflaretest.Quirks{FilteredList: true}, zones: zone + ":e example.com:r", extent: provider.Confined,
		},
		"permissions are not said": {token: all, quirks: cloudflaretest.Quirks{NoPermissions: true}, zones: strings.ReplaceAll(everything, ":e", ":u"), extent: provider.TooWide},
		"without Zone:Read":        {token: cloudflaretest.Token{Zones: []string{zone}, DNSEdit: true}, extent: provider.Unclear, partial: "Zone:Read"},
		"without Zone:Read, everywhere": {
			token: cloudflaretest.Token{AllZones: true, DNSEdit: true}, extent: provider.Unclear, partial: "Zone:Read",
		},
		"without Zone:Read, an empty list": {
			token:  cloudflaretest.Token{AllZones: true, DNSEdit: true},
			quirks: cloudflaretest.Quirks{FilteredList: true, EmptyList: true}, extent: provider.Unclear, partial: "no zone at all",
		},
		"the alias zone is not among them": {
			token:  cloudflaretest.Token{Zones: []string{zone}, DNSEdit: true, ReadZones: []string{"example.net"}},
			quirks: cloudflaretest.Quirks{FilteredList: true}, zones: "example.net:r", extent: provider.Unclear,
		},
		"expires": {
			token:  with(one, func(t *cloudflaretest.Token) { t.Expires = time.Now().Add(10 * day) }),
			quirks: cloudflaretest.Quirks{FilteredList: true}, zones: zone + ":e", extent: provider.Confined, expires: 10 * day,
		},
		"an account's own token": {
			token: with(all, func(t *cloudflaretest.Token) { t.OfAccount, t.Expires = true, time.Now().Add(5*day) }),
			zones: everything, extent: provider.TooWide, expires: 5 * day,
		},
		"an account's own, whose list is refused": {
			token: with(one, func(t *cloudflaretest.Token) { t.OfAccount = true }),
			zones: zone + ":e", extent: provider.Unclear, absent: "example.com example.net svc.example.com", partial: "asked for by name",
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.SetQuirks(tc.quirks)
			tc.token.Secret = token
			l.AddToken(tc.token)
			r, zones, err := l.reach(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if zones != tc.zones {
				t.Errorf("zones %q, want %q", zones, tc.zones)
			}
			if got := strings.Join(r.Absent, " "); got != tc.absent {
				t.Errorf("absent %q, want %q", got, tc.absent)
			}
			if !strings.Contains(r.Partial, tc.partial) || (r.Partial == "") != (tc.partial == "") {
				t.Errorf("partial: %q, want %q in it", r.Partial, tc.partial)
			}
			scope := r.Judge([]string{zone}, []string{"svc." + production})
			if scope.Extent != tc.extent {
				t.Errorf("extent %q, want %q: %v", scope.Extent, tc.extent, scope.Err())
			}
			if tc.extent == provider.TooWide && scope.Excess[0].Name != production {
				t.Errorf("the zone of the served domain does not come first: %+v", scope.Excess)
			}
			left := time.Until(r.Expires).Round(time.Hour)
			if tc.expires == 0 && !r.Expires.IsZero() || tc.expires != 0 && left != tc.expires {
				t.Errorf("expires %v, want in %v", r.Expires, tc.expires)
			}
			for _, want := range []string{"dash.cloudflare.com", "DNS:Edit", zone} {
				if !strings.Contains(r.Advice, want) {
					t.Errorf("advice %q, want %q in it", r.Advice, want)
				}
			}
			l.wantUnchanged(nil)
		})
	}
}

// A page shows 50 zones at most. What stands on the last one counts as much as on the first, which is where an
// alias zone may well be all alone.
func TestReachAllPages(t *testing.T) {
	for _, n := range []int{49, 50, 51, 100, 130} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			l := newLab(t)
			for i := range n - len(allZones) {
				l.AddZone(fmt.Sprintf("a%03d.deleg.example.net", i)) // inside the alias zone
			}
			l.AddToken(cloudflaretest.Token{Secret: token, AllZones: true, ZoneRead: true, DNSEdit: true})
			r, _, err := l.reach(t.Context())
			if err != nil || len(r.Zones) != n || r.Partial != "" {
				t.Fatalf("%d zones, %v, partial: %q; want %d", len(r.Zones), err, r.Partial, n)
			}
			if s := r.Judge([]string{zone}, []string{"svc." + production}); s.Extent != provider.TooWide || s.Excess[0].Name != production {
				t.Errorf("%q, %+v", s.Extent, s.Excess)
			}
			if pages := len(l.Calls()) - 1; pages != (n+49)/50 {
				t.Errorf("%d pages were asked for", pages)
			}
		})
	}
}

// A list that is known to be incomplete, or cannot be read, is never taken for a whole one.
func TestReachIncompleteList(t *testing.T) {
	whole := func(info, zones string) string {
		return `{"success":true,"errors":[],"result":[` + zones + `]` + info + `}`
	}
	good := fmt.Sprintf(`{"id":%q,"name":%q,"permissions":["#zone:read"]}`, pinned.ID, zone)
	info := func(total, pages int) string {
		return fmt.Sprintf(`,"result_info":{"page":1,"per_page":50,"count":1,"total_count":%d,"total_pages":%d}`, total, pages)
	}
	for name, tc := range map[string]struct {
		body   string
		extent provider.Extent // "" = an error
	}{
		"whole":               {whole(info(1, 1), good), provider.Confined},
		"fewer than counted":  {whole(info(2, 1), good), provider.Unclear},
		"the same page twice": {whole(info(60, 2), good), provider.Unclear},
		"an empty page":       {whole(info(50_000, 1000), ""), provider.Unclear},
		"pages without end":   {whole(info(50_000, 1000), good), provider.Unclear},
		"no count":            {whole("", good), ""},
		"no list":             {`{"success":true,"errors":[],"result":{}` + info(1, 1) + `}`, ""},
		"no name":             {whole(info(1, 1), `{"id":"0123","name":"a..b"}`), ""},
		"no success":          {`{"success":false,"errors":[],"result":[` + good + `]` + info(1, 1) + `}`, ""},
		"no result":           {`{"success":true,"errors":[],"result":null}`, ""},
		"not JSON":            {"<html>", ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.Break(cloudflaretest.Fault{Body: tc.body}.On("", cloudflaretest.Zones))
			r, _, err := l.reach(t.Context())
			if n := len(l.Calls()); n > 1000 || name == "an empty page" && n > 2 {
				t.Errorf("%d requests", n)
			}
			if tc.extent == "" {
				checkProvider(t, err)
				return
			}
			if got := r.Judge([]string{zone}, []string{"svc." + production}).Extent; err != nil || got != tc.extent {
				t.Errorf("%q, %v; want %q", got, err, tc.extent)
			}
		})
	}
}

// Where the API fails, or the token is no good, nothing is said about zones.
func TestReachFails(t *testing.T) {
	one := cloudflaretest.Token{Secret: token, Zones: []string{zone}, ZoneRead: true, DNSEdit: true}
	for name, tc := range map[string]struct {
		change  func(*cloudflaretest.Token)
		unknown bool // the token is none that was issued
		quirks  cloudflaretest.Quirks
		fault   *cloudflaretest.Fault
		text    string
		hint    string
	}{
		"expired":          {change: func(t *cloudflaretest.Token) { t.Expires = time.Now().Add(-time.Hour) }, text: "expired: it was good until 20", hint: "new token"},
		"disabled":         {change: func(t *cloudflaretest.Token) { t.Disabled = true }, text: "disabled", hint: "new token"},
		"not yet":          {change: func(t *cloudflaretest.Token) { t.NotBefore = time.Now().Add(time.Hour) }, text: "it is good from 20", hint: "new token"},
		"expired, refused": {change: func(t *cloudflaretest.Token) { t.Expires = time.Now().Add(-time.Hour) }, quirks: cloudflaretest.Quirks{DeadUnverified: true}, text: "Invalid API Token", hint: "expired"},
		"nobody's":         {unknown: true, text: "Invalid access token", hint: "wrong"},
		"nobody's, code 10000": {
			unknown: true, quirks: cloudflaretest.Quirks{BadTokenStatus: 401, BadTokenCode: 10000}, text: "code 10000", hint: "wrong",
		},
		"API down":          {fault: &cloudflaretest.HTML502, text: "502", hint: "cloudflarestatus"},
		"rate limit":        {fault: &cloudflaretest.RateLimited, text: "429", hint: "five minutes"},
		"refused by others": {fault: &cloudflaretest.Fault{Status: 403, Body: "<html>no</html>"}, text: "403"},
		"connection lost":   {fault: &cloudflaretest.Fault{Drop: true}, text: "EOF", hint: "network"},
		"slow":              {fault: &cloudflaretest.Fault{Delay: time.Minute}, text: "deadline", hint: "network"},
		"slow body":         {fault: &cloudflaretest.Fault{Slow: time.Second}, text: "deadline", hint: "network"},
		"token in the answer": {
			fault: &cloudflaretest.Fault{Status: 400, Body: `{"success":false,"errors":[{"code":1,"message":"Bearer ` + token + `"}],"result":null}`}, text: "[token]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			if tc.unknown {
				l.Server = cloudflaretest.New(t, nil)
			}
			if tc.change != nil {
				changed := one
				tc.change(&changed)
				l.AddToken(changed)
			}
			l.SetQuirks(tc.quirks)
			if tc.fault != nil {
				l.Break(*tc.fault)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			_, _, err := l.reach(ctx)
			checkProvider(t, err)
			if err != nil && (!strings.Contains(err.Error(), tc.text) || !strings.Contains(fault.HintOf(err), tc.hint)) {
				t.Errorf("error %q with hint %q, want %q and %q", err, fault.HintOf(err), tc.text, tc.hint)
			}
		})
	}
}

// How long a token is good for is worth knowing, but a failure to learn it spoils nothing.
func TestReachWithoutLifetime(t *testing.T) {
	for _, broken := range []cloudflaretest.Fault{cloudflaretest.HTML502, cloudflaretest.NullResult, {Body: `{"success":true,"errors":[],"result":{"status":3}}`}} {
		l := newLab(t)
		l.SetQuirks(cloudflaretest.Quirks{FilteredList: true})
		l.Break(broken.On("", "/user/tokens/verify"))
		r, zones, err := l.reach(t.Context())
		if err != nil || zones != zone+":e" || !r.Expires.IsZero() {
			t.Errorf("%q, %v, %v", zones, r.Expires, err)
		}
	}
	// Nor is an answer without a status word that the token is no good.
	l := newLab(t)
	l.Break(cloudflaretest.Fault{Body: `{"success":true,"errors":[],"result":{"id":"0"}}`}.On("", "/user/tokens/verify"))
	if _, zones, err := l.reach(t.Context()); err != nil || zones != zone+":e" {
		t.Errorf("%q, %v", zones, err)
	}
}

// A lookup by name that fails halfway is no answer.
func TestReachByNameFails(t *testing.T) {
	l := newLab(t)
	f := cloudflaretest.HTML502.On("", cloudflaretest.Zones)
	f.After = 2
	l.Break(f)
	_, _, err := l.reach(t.Context())
	checkProvider(t, err)
	l = newLab(t)
	l.Break(cloudflaretest.Fault{Body: `{"success":true,"errors":[],"result":[{"id":"0123","name":"other.example"}]}`, After: 1}.On("", cloudflaretest.Zones))
	_, _, err = l.reach(t.Context())
	checkProvider(t, err)
}

// Of a zone with letters beyond ASCII the API may say that it is not there when asked for its A-labels.
func TestReachByNameIDN(t *testing.T) {
	l := newLab(t)
	idn := "xn--bcher-kva.example"
	l.AddZone(idn)
	l.AddToken(cloudflaretest.Token{Secret: token, Zones: []string{zone, idn}, ZoneRead: true, DNSEdit: true})
	r, err := l.provider(nil).Reach(t.Context(), []string{zone}, []string{"svc." + idn})
	if err != nil || strings.Contains(strings.Join(r.Absent, " "), "xn--") || r.Partial == "" {
		t.Errorf("%+v, %v", r, err)
	}
	l.SetQuirks(cloudflaretest.Quirks{FilteredList: true})
	r, err = l.provider(nil).Reach(t.Context(), []string{zone}, []string{"svc." + idn})
	if err != nil || r.Judge([]string{zone}, []string{"svc." + idn}).Extent != provider.TooWide {
		t.Errorf("%+v, %v", r, err)
	}
}

// Zones of one name in two accounts are one in the list, with the most that the token may do.
func TestReachTwins(t *testing.T) {
	for _, order := range [][]string{{"#zone:read", "#dns_records:edit"}, {"#dns_records:edit", "#zone:read"}} {
		l := newLab(t)
		var twins []string
		for i, p := range order {
			twins = append(twins, fmt.Sprintf(`{"id":"%d","name":%q,"account":{"id":"a%d"},"permissions":[%q]}`, i, zone, i, p))
		}
		l.Break(cloudflaretest.Fault{Body: `{"success":true,"errors":[],"result":[` + strings.Join(twins, ",") +
			`],"result_info":{"page":1,"per_page":50,"count":2,"total_count":2,"total_pages":1}}`}.On("", cloudflaretest.Zones))
		r, _, err := l.reach(t.Context())
		if want := []provider.Reached{{Name: zone, Access: provider.AccessEdit}}; err != nil || !slices.Equal(r.Zones, want) || r.Partial != "" {
			t.Errorf("%+v, partial %q, %v", r.Zones, r.Partial, err)
		}
	}
}

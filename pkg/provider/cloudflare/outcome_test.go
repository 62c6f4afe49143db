package cloudflare_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/provider"
	"github.com/certhook/certhook/pkg/provider/cloudflare"
	"github.com/certhook/certhook/tests/cloudflaretest"
)

// What a fault at one request leads to, and by how many requests.
func TestAddOutcomes(t *testing.T) {
	post := func(f cloudflaretest.Fault) cloudflaretest.Fault { return f.On(http.MethodPost, "") }
	again := []string{"POST records", "GET records", "POST records"}
	tests := []struct {
		name  string
		fault cloudflaretest.Fault
		ok    bool
		asked []string
	}{
		{"lost reply", post(cloudflaretest.LostReply).Times(1), true, []string{"POST records", "GET records"}},
		{"closed before effect", post(cloudflaretest.Fault{Drop: true}).Times(1), true, again},
		{"502 after effect", post(acted(cloudflaretest.HTML502)).Times(1), true, []string{"POST records", "GET records"}},
		{"502 before effect", post(cloudflaretest.HTML502).Times(1), true, again},
		{"502 for good", post(cloudflaretest.HTML502), false, append(slices.Clone(again), "GET records", "POST records", "GET records")},
		{"rate limit once", post(cloudflaretest.RateLimited).Times(1), true, []string{"POST records", "POST records"}},
		{"cut-off answer", post(cloudflaretest.Fault{Cut: true}), true, []string{"POST records", "GET records"}},
		{"no result, acted", post(acted(cloudflaretest.NullResult)), true, []string{"POST records", "GET records"}},
		{"no result", post(cloudflaretest.NullResult), false, []string{"POST records", "GET records"}},
		{"wrong echo", post(replace(value, "other")), true, []string{"POST records", "GET records"}},
		{"refused", post(cloudflaretest.Forbidden), false, []string{"POST records"}},
		{"times unreadable to libdns", post(replace("2026-01-02", "yesterday")), true, []string{"POST records"}},
		{"lost reply, look-up refused", cloudflaretest.Fault{Act: true, Status: 502, Body: "-"}, false, []string{"POST records", "GET records", "GET records", "GET records", "GET records"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := newLab(t)
			l.Break(tt.fault)
			err := l.provider(nil).Add(t.Context(), pinned, challenge)
			if tt.ok && err != nil {
				t.Errorf("Add: %v", err)
			}
			if !tt.ok {
				checkProvider(t, err)
			}
			l.wantAsked(tt.asked...)
		})
	}
}

func TestRemoveOutcomes(t *testing.T) {
	remove := func(f cloudflaretest.Fault) cloudflaretest.Fault { return f.On(http.MethodDelete, "") }
	list := func(f cloudflaretest.Fault) cloudflaretest.Fault { return f.On(http.MethodGet, "") }
	tests := []struct {
		name    string
		fault   cloudflaretest.Fault
		removed bool
		fails   bool
		asked   []string
	}{
		{"lost reply", remove(cloudflaretest.LostReply).Times(1), true, false, []string{"GET records", "DELETE record", "DELETE record", "GET records"}},
		{"502 once", remove(cloudflaretest.HTML502).Times(1), true, false, []string{"GET records", "DELETE record", "DELETE record"}},
		{"no result, acted", remove(acted(cloudflaretest.NullResult)), true, false, []string{"GET records", "DELETE record", "GET records"}},
		{"no result", remove(cloudflaretest.NullResult), false, true, []string{"GET records", "DELETE record", "GET records"}},
		{"answer about another", remove(replace(`"id":"`, `"id":"x`)), true, false, []string{"GET records", "DELETE record", "GET records"}},
		{"refused", remove(cloudflaretest.Forbidden), false, true, []string{"GET records", "DELETE record"}},
		{"look-up refused", list(cloudflaretest.Forbidden), false, true, []string{"GET records"}},
		{"look-up without result", list(cloudflaretest.NullResult), false, true, []string{"GET records"}},
		{"look-up without success", list(cloudflaretest.Unsuccessful), false, true, []string{"GET records"}},
		{"look-up down once", list(cloudflaretest.HTML502).Times(1), true, false, []string{"GET records", "GET records", "DELETE record"}},
		{"look-up cut off once", list(cloudflaretest.Fault{Cut: true}).Times(1), true, false, []string{"GET records", "GET records", "DELETE record"}},
		{"look-up incomplete", list(replace(`"total_count":`, `"total_count":1`)), false, true, []string{"GET records"}},
		{"look-up unreadable to libdns", list(replace("2026-01-02", "yesterday")), true, false, []string{"GET records", "DELETE record"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := newLab(t)
			l.Seed(zone, "TXT", owner, `"`+value+`"`)
			l.Break(tt.fault)
			removed, err := l.provider(nil).Remove(t.Context(), pinned, challenge)
			if removed != tt.removed || (err != nil) != tt.fails {
				t.Errorf("Remove = %v, %v; want %v, failure %v", removed, err, tt.removed, tt.fails)
			}
			if tt.fails {
				checkProvider(t, err)
			}
			l.wantAsked(tt.asked...)
		})
	}
}

// One value can be there twice, in quotes and not, since the API keeps what it is sent.
func TestTwins(t *testing.T) {
	l := newLab(t)
	for _, content := range []string{value, foreign, `"` + value + `"`} {
		l.Seed(zone, "TXT", owner, content)
	}
	removed, err := l.provider(nil).Remove(t.Context(), pinned, challenge)
	if err != nil || !removed {
		t.Errorf("Remove = %v, %v", removed, err)
	}
	if got := l.dns(owner); !slices.Equal(got, []string{foreign}) {
		t.Errorf("DNS has %q", got)
	}
}

// "Identical record": both codes, and an existing one without quotes.
func TestIdentical(t *testing.T) {
	for _, code := range []int{81057, 81058} {
		for _, content := range []string{value, `"` + value + `"`} {
			t.Run(fmt.Sprint(code, content), func(t *testing.T) {
				l := newLab(t)
				l.SetQuirks(cloudflaretest.Quirks{IdenticalCode: code, IdenticalUnquoted: true, ZoneFields: true})
				l.Seed(zone, "TXT", owner, content)
				before := l.everything()
				if err := l.provider(nil).Add(t.Context(), pinned, challenge); err != nil {
					t.Error(err)
				}
				l.wantAsked("POST records", "GET records")
				l.wantUnchanged(before)
			})
		}
	}
}

// The API gives these back in another spelling, so that they could never be found again.
func TestQuotesRefused(t *testing.T) {
	l := newLab(t)
	p := l.provider(nil)
	for _, v := range []string{`"` + value + `"`, `a"b`, `a\b`, `"`} {
		rec := provider.TXT{Name: owner, Value: v, TTL: time.Minute}
		checkProvider(t, p.Add(t.Context(), pinned, rec))
		_, err := p.Remove(t.Context(), pinned, rec)
		checkProvider(t, err)
	}
	l.wantAsked()
}

// A wait beyond the deadline is not slept through.
func TestRetryAfterTooLong(t *testing.T) {
	limited := cloudflaretest.RateLimited
	limited.RetryAfter = 300
	for name, ask := range map[string]func(context.Context, *lab) error{
		"Zone": func(ctx context.Context, l *lab) error { _, err := l.provider(nil).Zone(ctx, zone); return err },
		"Add":  func(ctx context.Context, l *lab) error { return l.provider(nil).Add(ctx, pinned, challenge) },
		"Remove": func(ctx context.Context, l *lab) error {
			_, err := l.provider(nil).Remove(ctx, pinned, challenge)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.Break(limited)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			err := ask(ctx, l)
			checkProvider(t, err)
			if ctx.Err() != nil {
				t.Error("waited until the deadline")
			}
			for _, part := range []string{"429", "5m0s", "/zones"} {
				if err != nil && !strings.Contains(err.Error(), part) {
					t.Errorf("%q is not in %q", part, err)
				}
			}
			if n := len(l.Calls()); n != 1 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

func TestRetryAfterHonoured(t *testing.T) {
	l := newLab(t)
	limited := cloudflaretest.RateLimited
	limited.RetryAfter = 1
	l.Break(limited.Times(1))
	if _, err := l.provider(nil).Zone(t.Context(), zone); err != nil {
		t.Fatal(err)
	}
	calls := l.Calls()
	if len(calls) != 2 || calls[1].Start.Sub(calls[0].End) < 900*time.Millisecond {
		t.Errorf("calls: %+v", calls)
	}
}

// Giving up says what was asked and answered.
func TestGivingUp(t *testing.T) {
	l := newLab(t)
	l.Break(cloudflaretest.HTML502)
	_, err := l.provider(nil).Zone(t.Context(), zone)
	checkProvider(t, err)
	for _, part := range []string{"GET /zones?name=" + zone, "502", "4 tries"} {
		if err != nil && !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %q", part, err)
		}
	}
}

func TestHints(t *testing.T) {
	tests := []struct {
		name   string
		token  cloudflaretest.Token
		quirks cloudflaretest.Quirks
		fault  cloudflaretest.Fault
		hint   string
	}{
		{name: "unknown token", token: cloudflaretest.Token{Secret: "another"}, hint: "CLOUDFLARE_API_TOKEN"},
		{name: "unknown token, other code", token: cloudflaretest.Token{Secret: "another"}, quirks: cloudflaretest.Quirks{BadTokenStatus: 401, BadTokenCode: 10000}, hint: "CLOUDFLARE_API_TOKEN"},
		{name: "token without DNS:Edit", token: cloudflaretest.Token{Secret: token, Zones: []string{zone}, ZoneRead: true}, hint: "DNS:Edit"},
		{name: "403 without reason", fault: cloudflaretest.Fault{Status: 403}, hint: "DNS:Edit"},
		{name: "rate limit", fault: cloudflaretest.RateLimited, hint: "1200"},
		{name: "malformed token", fault: faults(t)["400"], hint: "CLOUDFLARE_API_TOKEN"},
		{name: "redirect", fault: cloudflaretest.Fault{Status: 301, Location: "https://example.org"}, hint: "CLOUDFLARE_API_URL"},
		{name: "down", fault: cloudflaretest.HTML502, hint: "again"},
		{name: "no success", fault: cloudflaretest.Unsuccessful, hint: "CLOUDFLARE_API_URL"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := newLab(t)
			l.TolerateOutside()
			if tt.token.Secret != "" {
				l.AddToken(cloudflaretest.Token{Secret: token}) // has nothing unless the next line gives it
				l.AddToken(tt.token)
			}
			l.SetQuirks(tt.quirks)
			if tt.fault.Status != 0 || tt.fault.Body != "" {
				l.Break(tt.fault)
			}
			err := l.provider(nil).Add(t.Context(), pinned, challenge)
			checkProvider(t, err)
			if !strings.Contains(fault.HintOf(err), tt.hint) {
				t.Errorf("hint %q, want %q in it", fault.HintOf(err), tt.hint)
			}
		})
	}
}

func TestTTLHint(t *testing.T) {
	l := newLab(t)
	rec := challenge
	rec.TTL = 5 * time.Second
	err := l.provider(nil).Add(t.Context(), pinned, rec)
	checkProvider(t, err)
	if !strings.Contains(fault.HintOf(err), "CHALLENGE_TTL") {
		t.Errorf("hint %q", fault.HintOf(err))
	}
}

// The token is in no error, no log and no dump of the driver, even if the peer sends it back.
func TestSecret(t *testing.T) {
	l := newLab(t)
	var log bytes.Buffer
	p, err := cloudflare.New(cloudflare.Config{
		Token: token, APIURL: l.URL, RetryWait: time.Millisecond,
		Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		t.Fatal(err)
	}
	var escaped strings.Builder
	for _, c := range token {
		fmt.Fprintf(&escaped, `\u%04x`, c)
	}
	for _, body := range []string{
		`{"success":false,"errors":[{"code":1,"message":"` + escaped.String() + `","error_chain":[{"code":2,"message":"Bearer ` + escaped.String()[:6] + token[1:] + `"}]}]}`,
		`{"success":true,"errors":[],"result":[{"id":"` + escaped.String() + `","name":"` + escaped.String() + `","status":"` + escaped.String() + `"}]}`,
		`{"success":false,"errors":[{"code":1,"message":"` + token + `","error_chain":[{"code":2,"message":"` + token + `"}]}]}`,
		`{"success":true,"errors":[],"result":[{"id":"` + token + `","name":"` + token + `","status":"` + token + `"}]}`,
		`{"success":true,"errors":[],"result":[{"id":"1","name":"` + zone + `","status":"` + token + `"}]}`,
		token,
	} {
		lift := l.Break(cloudflaretest.Fault{Body: body, Location: "/" + token})
		_, err := p.Zone(t.Context(), zone)
		checkProvider(t, err)
		checkProvider(t, p.Add(t.Context(), pinned, challenge))
		_, err = p.Remove(t.Context(), pinned, challenge)
		checkProvider(t, err)
		lift()
	}
	if _, err := p.Zone(t.Context(), zone); err != nil {
		t.Error(err)
	}
	dump := log.String() + fmt.Sprintf("%v %+v %#v", p, p, p)
	if strings.Contains(dump, token[5:20]) {
		t.Errorf("the token is in %s", dump)
	}
	if !strings.Contains(log.String(), "/zones?name="+zone) {
		t.Errorf("the log does not show the requests:\n%s", log.String())
	}
}

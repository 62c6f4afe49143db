package cloudflare_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/certhook/certhook/pkg/provider"
	"github.com/certhook/certhook/tests/cloudflaretest"
)

// replace changes the true answer.
func replace(old, with string) cloudflaretest.Fault {
	return cloudflaretest.Fault{Rewrite: func(body []byte) []byte {
		return bytes.ReplaceAll(body, []byte(old), []byte(with))
	}}
}

// acted returns the fault after the call took effect.
func acted(f cloudflaretest.Fault) cloudflaretest.Fault {
	f.Act = true
	return f
}

// faults are all the ways in which a request can go wrong.
func faults(t *testing.T) map[string]cloudflaretest.Fault {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("redirect to another host was followed: %s, with Authorization: %v", r.URL, r.Header.Get("Authorization") != "")
	}))
	t.Cleanup(elsewhere.Close)
	limited := cloudflaretest.RateLimited
	limited.RetryAfter = 300
	return map[string]cloudflaretest.Fault{
		"HTML 502":              cloudflaretest.HTML502,
		"HTML 502 after effect": acted(cloudflaretest.HTML502),
		"500 after effect":      {Act: true, Status: 500, Body: `{"success":false,"errors":[{"code":1000,"message":"oops"}],"result":null}`},
		"403":                   cloudflaretest.Forbidden,
		"400":                   {Status: 400, Body: `{"success":false,"errors":[{"code":6003,"message":"Invalid request headers","error_chain":[{"code":6111,"message":"Invalid format"}]}],"result":null}`},
		"404":                   {Status: 404, Body: `{"success":false,"errors":[{"code":7003,"message":"Could not route"}],"result":null}`},
		"404 without body":      {Status: 404},
		"429":                   cloudflaretest.RateLimited,
		"429 for five minutes":  limited,
		"no success":            cloudflaretest.Unsuccessful,
		"no success, acted":     acted(cloudflaretest.Unsuccessful),
		"no result":             cloudflaretest.NullResult,
		"no result, acted":      acted(cloudflaretest.NullResult),
		"success with errors":   {Body: `{"success":true,"errors":[{"code":1,"message":"but"}],"result":[]}`},
		"empty list":            {Body: `{"success":true,"errors":[],"result":[]}`},
		"empty object":          {Body: `{"success":true,"errors":[],"result":{}}`},
		"text as result":        {Body: `{"success":true,"errors":[],"result":"yes"}`},
		"null in a list":        {Body: `{"success":true,"errors":[],"result":[null]}`},
		"HTML 200":              {Body: "<html>captive portal</html>"},
		"empty body":            {Rewrite: func([]byte) []byte { return nil }},
		"no content":            {Status: 204},
		"another name":          replace(`example.net"`, `example.org"`),
		"name of the parent":    replace(zone+`"`, `example.net"`),
		"another value":         replace(value, strings.ToUpper(value)),
		"another type":          replace(`"TXT"`, `"CNAME"`),
		"another id":            replace(`"id":"`, `"id":"00`),
		"path as id":            replace(`"id":"`, `"id":"../../`),
		"incomplete list":       replace(`"total_count":`, `"total_count":9`),
		"cut off":               {Cut: true},
		"endless":               {Body: `{"success":true,"errors":[],"result":[` + strings.Repeat(" ", 2<<20) + `]}`},
		"byte by byte":          {Slow: 50 * time.Millisecond},
		"no answer in time":     {Delay: time.Minute},
		"closed":                {Drop: true},
		"lost reply":            cloudflaretest.LostReply,
		"redirect":              {Status: 302, Location: elsewhere.URL},
		"redirect 307":          {Status: 307, Location: elsewhere.URL},
		"repeats the token":     {Status: 403, Body: `{"success":false,"errors":[{"code":10000,"message":"Bearer ` + token + `"}],"result":null}`},
		"token as record":       {Body: `{"success":true,"errors":[],"result":{"id":"` + token + `","type":"TXT","name":"` + token + `.example.net","content":"` + token + `"}}`},
		"identical, not there":  {Status: 400, Body: `{"success":false,"errors":[{"code":81058,"message":"An identical record already exists."}],"result":null}`},
		"no such record":        {Status: 404, Body: `{"success":false,"errors":[{"code":81044,"message":"Record does not exist."}],"result":null}`},
	}
}

// requests are the places where it can go wrong. 0 times means always.
var requests = []struct{ method, path string }{
	{http.MethodGet, cloudflaretest.Zones},
	{http.MethodPost, cloudflaretest.RecordSet},
	{http.MethodGet, cloudflaretest.RecordSet},
	{http.MethodDelete, cloudflaretest.OneRecord},
	{"", ""},
}

// Every fault at every request, once and for good. The outcome may be either as long as it is the truth, and
// nothing but our value at our name ever changes.
func TestFaults(t *testing.T) {
	for name, f := range faults(t) {
		for _, r := range requests {
			for _, times := range []int{1, 0} {
				at := fmt.Sprintf("%s at %s %s %d times", name, r.method, r.path, times)
				t.Run(at, func(t *testing.T) {
					t.Parallel()
					f := f.On(r.method, r.path).Times(times)
					t.Run("Zone", func(t *testing.T) { faultyZone(t, f) })
					t.Run("Add", func(t *testing.T) { faultyAdd(t, f) })
					t.Run("Remove", func(t *testing.T) { faultyRemove(t, f) })
				})
			}
		}
	}
}

// faultyLab has other people's records all around ours.
func faultyLab(t *testing.T) (*lab, []string) {
	l := newLab(t, allZones...)
	l.Seed(zone, "TXT", owner, foreign)
	l.Seed(zone, "TXT", owner, strings.ToUpper(value))
	l.Seed(zone, "TXT", "x"+owner, value)
	l.Seed("example.net", "TXT", strings.Replace(owner, "deleg.", "", 1), value)
	l.Seed("example.com", "TXT", "_acme-challenge.svc.example.com", value)
	return l, l.everything()
}

// patience is enough for all repetitions in the lab, and ends what does not come.
func patience(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

const ourRecord = zone + ": " + owner + ` TXT "` + value + `"`

func faultyZone(t *testing.T, f cloudflaretest.Fault) {
	l, before := faultyLab(t)
	lift := l.Break(f)
	p := l.provider(nil)
	got, err := p.Zone(patience(t), zone)
	switch {
	case err == nil && got.Name != zone:
		t.Errorf("Zone = %+v", got)
	case err == nil && got != pinned:
		t.Logf("a wrong id cannot be told here: %+v", got) // but by the first Add
	case err != nil && got != provider.Zone{}:
		t.Errorf("Zone = %+v with error %v", got, err)
	case err != nil && !strings.Contains(err.Error(), "serves no such zone"):
		checkProvider(t, err)
	}
	lift()
	if err != nil { // is not remembered
		if got, err := p.Zone(t.Context(), zone); err != nil || got != pinned {
			t.Errorf("Zone without fault = %+v, %v", got, err)
		}
	}
	l.wantUnchanged(before)
}

func faultyAdd(t *testing.T, f cloudflaretest.Fault) {
	l, before := faultyLab(t)
	l.Break(f)
	err := l.provider(nil).Add(patience(t), pinned, challenge)
	after := append([]string{ourRecord}, before...)
	slices.Sort(after)
	switch {
	case err == nil:
		l.wantUnchanged(after)
		if !slices.Contains(l.dns(owner), value) {
			t.Error("Add succeeded, but DNS has no such value")
		}
	case slices.Contains(l.everything(), ourRecord):
		checkProvider(t, err)
		l.wantUnchanged(after) // the cleanup will find it in the journal
	default:
		checkProvider(t, err)
		l.wantUnchanged(before)
	}
}

func faultyRemove(t *testing.T, f cloudflaretest.Fault) {
	l, before := faultyLab(t)
	l.Seed(zone, "TXT", owner, `"`+value+`"`)
	after := l.everything()
	l.Break(f)
	removed, err := l.provider(nil).Remove(patience(t), pinned, challenge)
	gone := !slices.Contains(l.everything(), ourRecord)
	switch {
	case err != nil:
		checkProvider(t, err)
		if removed {
			t.Errorf("removed, with error %v", err)
		}
	case lies(f):
		// An empty list for a name that has records cannot be told from the truth.
	case !gone:
		t.Errorf("Remove = %v, nil, but the value is there", removed)
	}
	if gone {
		l.wantUnchanged(before)
	} else {
		l.wantUnchanged(after)
	}
}

// lies reports whether a fault is an answer in good order that is not true: an empty list, or another value.
func lies(f cloudflaretest.Fault) bool {
	list := f.Method == "" || f.Method == http.MethodGet && f.Path == cloudflaretest.RecordSet
	return list && (strings.HasSuffix(f.Body, `"result":[]}`) || f.Rewrite != nil && bytes.Contains(f.Rewrite([]byte(value)), []byte(strings.ToUpper(value))))
}

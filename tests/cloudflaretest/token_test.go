package cloudflaretest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestVerify(t *testing.T) {
	s, a, _ := account(t, nil)
	hour := time.Hour
	now := time.Now()
	s.AddToken(Token{Secret: "short", AllZones: true, ZoneRead: true, NotBefore: now.Add(-hour), Expires: now.Add(hour)})
	s.AddToken(Token{Secret: "past", AllZones: true, ZoneRead: true, Expires: now.Add(-hour)})
	s.AddToken(Token{Secret: "early", AllZones: true, ZoneRead: true, NotBefore: now.Add(hour)})
	s.AddToken(Token{Secret: "off", AllZones: true, ZoneRead: true, Disabled: true})
	s.AddToken(Token{Secret: "account", AllZones: true, ZoneRead: true, OfAccount: true})
	user, own := "/user/tokens/verify", "/accounts/"+AccountID+"/tokens/verify"
	for _, tt := range []struct {
		token, path string
		status      int
		code        string
		says        string // the token's status
		works       bool   // whether it can look a zone up
	}{
		{"all", user, 200, "", "active", true},
		{"a-edit", user, 200, "", "active", false}, // no permission is needed
		{"short", user, 200, "", "active", true},
		{"past", user, 200, "", "expired", false},
		{"early", user, 200, "", "disabled", false},
		{"off", user, 200, "", "disabled", false},
		{"nobodys", user, 401, "1000", "", false},
		{"account", user, 401, "1000", "", true},
		{"account", own, 200, "", "active", true},
		{"all", own, 401, "1000", "", true},
	} {
		got := call(t, s, tt.token, "GET", tt.path, "")
		var result struct {
			ID, Status string
			ExpiresOn  string `json:"expires_on"`
		}
		_ = json.Unmarshal(got.Result, &result)
		if got.status != tt.status || got.code() != tt.code || result.Status != tt.says || got.Success != (tt.status == 200) {
			t.Errorf("%s %s: %d %s %q, want %d %s %q", tt.token, tt.path, got.status, got.code(), result.Status, tt.status, tt.code, tt.says)
		}
		if has := result.ExpiresOn != ""; has != (tt.token == "short" || tt.token == "past") {
			t.Errorf("%s: expires_on %q", tt.token, result.ExpiresOn)
		}
		if strings.Contains(string(got.Result), tt.token) {
			t.Errorf("%s: the secret is in %s", tt.token, got.Result)
		}
		if zone := call(t, s, tt.token, "GET", "/zones/"+a, ""); (zone.status == 200) != tt.works {
			t.Errorf("%s: its zone: %d", tt.token, zone.status)
		}
	}
	s.SetQuirks(Quirks{DeadUnverified: true})
	for token, want := range map[string]int{"short": 200, "past": 401, "off": 401} {
		if got := call(t, s, token, "GET", user, ""); got.status != want {
			t.Errorf("%s: %d, want %d", token, got.status, want)
		}
	}
	if got, err := try(t, s, "Bearer a.b", "GET", user, ""); err != nil || got.status != 400 || got.code() != "6003/6111" {
		t.Errorf("malformed: %d %s, %v", got.status, got.code(), err)
	}
}

func TestVerifyMisuse(t *testing.T) {
	tb := &complaints{TB: t}
	s, _, _ := account(tb, nil)
	for _, tt := range []struct{ method, path string }{
		{"POST", "/user/tokens/verify"},
		{"GET", "/user/tokens/verify?page=1"},
		{"GET", "/accounts/other/tokens/verify"},
		{"GET", "/user/tokens"},
		{"GET", "/user"},
	} {
		if got := call(t, s, "all", tt.method, tt.path, ""); tb.take() != 1 || got.Success {
			t.Errorf("%s %s: %d", tt.method, tt.path, got.status)
		}
	}
}

func TestZonesAsShown(t *testing.T) {
	s, a, b := account(t, nil)
	s.AddZone("0.example")
	s.AddToken(Token{Secret: "mixed", Zones: []string{"a.example"}, ZoneRead: true, DNSEdit: true, ReadZones: []string{"b.example"}})
	s.SetQuirks(Quirks{FilteredList: true})
	list := func(token, query string) string {
		t.Helper()
		var zones []struct {
			Name        string
			Account     struct{ ID string }
			Permissions []string
		}
		got := call(t, s, token, "GET", "/zones"+query, "")
		if err := json.Unmarshal(got.Result, &zones); err != nil {
			t.Fatalf("%s %q: %d %s", token, query, got.status, got.code())
		}
		var text []string
		for _, z := range zones {
			text = append(text, fmt.Sprint(z.Name, z.Permissions))
			if z.Account.ID != AccountID {
				t.Errorf("account %q", z.Account.ID)
			}
		}
		return strings.Join(text, " ")
	}
	edit, read := "[#dns_records:edit #dns_records:read #zone:read]", "[#zone:read]"
	for _, tt := range []struct{ token, query, want string }{
		{"mixed", "", "a.example" + edit + " b.example" + read},
		{"mixed", "?name=b.example", "b.example" + read},
		{"mixed", "?name=0.example", ""},
		{"a-read", "", "a.example" + read},
		{"all", "", "a.example" + edit + " b.example" + edit + " 0.example" + edit},
		{"all", "?order=name&direction=asc", "0.example" + edit + " a.example" + edit + " b.example" + edit},
	} {
		if got := list(tt.token, tt.query); got != tt.want {
			t.Errorf("%s %q: %q, want %q", tt.token, tt.query, got, tt.want)
		}
	}
	if got := call(t, s, "mixed", "GET", "/zones/"+b+"/dns_records", ""); got.status != 403 {
		t.Errorf("records of a zone that can be looked up only: %d", got.status)
	}
	if got := call(t, s, "mixed", "GET", "/zones/"+a+"/dns_records", ""); got.status != 200 {
		t.Errorf("records of its own zone: %d", got.status)
	}
	if got := call(t, s, "a-edit", "GET", "/zones", ""); got.status != 403 {
		t.Errorf("without permission to look zones up: %d", got.status)
	}
	s.SetQuirks(Quirks{FilteredList: true, EmptyList: true, NoPermissions: true})
	if got := list("a-edit", ""); got != "" {
		t.Errorf("an empty list: %q", got)
	}
	if got := list("a-read", ""); got != "a.example[]" {
		t.Errorf("without permissions: %q", got)
	}
}

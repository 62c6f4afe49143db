package cloudflaretest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// dnsMap is a backend that keeps values by zone and name.
type dnsMap struct {
	mu     sync.Mutex
	values map[string][]string
}

func (d *dnsMap) AddTXT(zone, name, value string, _ uint32) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := zone + " " + name
	if slices.Contains(d.values[key], value) {
		return fmt.Errorf("%s has %q already", key, value)
	}
	if d.values == nil {
		d.values = make(map[string][]string)
	}
	d.values[key] = append(d.values[key], value)
	return nil
}

func (d *dnsMap) RemoveTXT(zone, name, value string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := zone + " " + name
	i := slices.Index(d.values[key], value)
	if i < 0 {
		return fmt.Errorf("%s has no %q", key, value)
	}
	d.values[key] = slices.Delete(d.values[key], i, i+1)
	return nil
}

// complaints is a test that counts its failures.
type complaints struct {
	testing.TB
	mu sync.Mutex
	n  int
}

func (c *complaints) Errorf(string, ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
}

func (c *complaints) take() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.n
	c.n = 0
	return n
}

type answer struct {
	status  int
	header  http.Header
	Success bool
	Errors  []apiError
	Result  json.RawMessage
	Info    resultInfo `json:"result_info"`
}

// code is the API's first error code and the one it chains, if any.
func (a answer) code() string {
	switch {
	case len(a.Errors) == 0:
		return ""
	case len(a.Errors[0].Chain) == 0:
		return fmt.Sprint(a.Errors[0].Code)
	}
	return fmt.Sprintf("%d/%d", a.Errors[0].Code, a.Errors[0].Chain[0].Code)
}

func (a answer) names(t *testing.T) []string {
	t.Helper()
	var list []struct{ Name string }
	if err := json.Unmarshal(a.Result, &list); err != nil {
		t.Fatalf("result %s: %v", a.Result, err)
	}
	names := []string{}
	for _, x := range list {
		names = append(names, x.Name)
	}
	return names
}

// try sends one request; authorization is the whole header.
func try(t *testing.T, s *Server, authorization, method, path, body string) (answer, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	if body != "" && body != "-" {
		r.Header.Set("Content-Type", "application/json")
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	a := answer{status: resp.StatusCode, header: resp.Header}
	_ = json.Unmarshal(raw, &a) // some are not JSON on purpose
	return a, err
}

func call(t *testing.T, s *Server, secret, method, path, body string) answer {
	t.Helper()
	a, err := try(t, s, "Bearer "+secret, method, path, body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

// account has zones a.example and b.example; the tokens are named after what they may do.
func account(tb TB, backend Backend) (s *Server, zoneA, zoneB string) {
	s = New(tb, backend)
	zoneA, zoneB = s.AddZone("a.example"), s.AddZone("b.example")
	s.AddToken(Token{Secret: "a-only", Zones: []string{"a.example"}, ZoneRead: true, DNSEdit: true})
	s.AddToken(Token{Secret: "a-edit", Zones: []string{"a.example"}, DNSEdit: true})
	s.AddToken(Token{Secret: "a-read", Zones: []string{"a.example"}, ZoneRead: true})
	s.AddToken(Token{Secret: "all", AllZones: true, ZoneRead: true, DNSEdit: true})
	return s, zoneA, zoneB
}

func TestZoneList(t *testing.T) {
	s, _, _ := account(t, nil)
	tests := []struct {
		token, query string
		status       int
		code         string
		names        []string
	}{
		{token: "a-only", query: "?name=a.example", status: 200, names: []string{"a.example"}},
		{token: "a-only", query: "?name=A.Example.", status: 200, names: []string{"a.example"}},
		{token: "a-only", query: "?name=b.example", status: 200, names: []string{}},
		{token: "a-only", query: "?name=example", status: 200, names: []string{}},
		{token: "a-only", status: 403, code: "0"},
		{token: "a-edit", query: "?name=a.example", status: 403, code: "0"},
		{token: "all", status: 200, names: []string{"a.example", "b.example"}},
		{token: "all", query: "?per_page=5&page=2", status: 200, names: []string{}},
		{token: "all", query: "?per_page=51", status: 400, code: "6003/6103"},
		{token: "all", query: "?per_page=4", status: 400, code: "6003/6103"},
		{token: "all", query: "?page=0", status: 400, code: "6003/6103"},
		{token: "nobodys", query: "?name=a.example", status: 403, code: "9109"},
	}
	for _, tt := range tests {
		a := call(t, s, tt.token, "GET", "/zones"+tt.query, "")
		if a.status != tt.status || a.code() != tt.code || a.Success != (tt.status == 200) {
			t.Errorf("%s %q: %d %q, want %d %q", tt.token, tt.query, a.status, a.code(), tt.status, tt.code)
			continue
		}
		if tt.status == 200 && !slices.Equal(a.names(t), tt.names) {
			t.Errorf("%s %q: %q, want %q", tt.token, tt.query, a.names(t), tt.names)
		}
	}
	s.SetQuirks(Quirks{FilteredList: true, BadTokenStatus: 401, BadTokenCode: 10000})
	if got := call(t, s, "a-only", "GET", "/zones", "").names(t); !slices.Equal(got, []string{"a.example"}) {
		t.Errorf("filtered list: %q", got)
	}
	if a := call(t, s, "nobodys", "GET", "/zones", ""); a.status != 401 || a.code() != "10000" {
		t.Errorf("bad token: %d %s", a.status, a.code())
	}
}

func TestMalformedToken(t *testing.T) {
	s, _, _ := account(t, nil)
	for _, header := range []string{"", "Bearer ", "Bearer", "a-only", "Basic a-only", "Bearer a only", "Bearer a.only"} {
		a, err := try(t, s, header, "GET", "/zones?name=a.example", "")
		if err != nil || a.status != 400 || a.code() != "6003/6111" {
			t.Errorf("%q: %d %s, %v", header, a.status, a.code(), err)
		}
	}
}

func TestPages(t *testing.T) {
	s, _, _ := account(t, nil)
	for i := range 129 { // 131 with the other two
		s.AddZone(fmt.Sprintf("z%03d.example", i))
	}
	a := call(t, s, "all", "GET", "/zones", "")
	if a.Info != (resultInfo{Page: 1, PerPage: 20, Count: 20, TotalCount: 131, TotalPages: 7}) || len(a.names(t)) != 20 {
		t.Errorf("first page: %+v, %d zones", a.Info, len(a.names(t)))
	}
	a = call(t, s, "all", "GET", "/zones?per_page=50&page=3", "")
	if a.Info.Count != 31 || len(a.names(t)) != 31 {
		t.Errorf("last page: %+v", a.Info)
	}
}

func TestIDNZone(t *testing.T) {
	s, _, _ := account(t, nil)
	s.AddZone("xn--bcher-kva.example")
	if got := call(t, s, "all", "GET", "/zones?name=xn--bcher-kva.example", "").names(t); len(got) != 0 {
		t.Errorf("found by A-label: %q", got)
	}
	if got := call(t, s, "all", "GET", "/zones?name=b%C3%BCcher.example", "").names(t); !slices.Equal(got, []string{"bücher.example"}) {
		t.Errorf("found by Unicode name: %q", got)
	}
}

func TestCreate(t *testing.T) {
	tests := []struct {
		body string
		name string // "" = refused
		code string
	}{
		{body: `{"type":"TXT","name":"_x","content":"\"v\"","ttl":60}`, name: "_x.a.example"},
		{body: `{"type":"TXT","name":"_X.A.example","content":"v","ttl":1}`, name: "_x.a.example"},
		{body: `{"type":"TXT","name":"_x.a.example.","content":"v"}`, name: "_x.a.example"},
		{body: `{"type":"TXT","name":"@","content":"v","ttl":86400}`, name: "a.example"},
		{body: `{"type":"TXT","name":"a.example","content":"v","ttl":60}`, name: "a.example"},
		{body: `{"type":"TXT","name":"xa.example","content":"v","ttl":60}`, name: "xa.example.a.example"},
		{body: `{"type":"TXT","name":"_x.b.example","content":"v","ttl":60}`, name: "_x.b.example.a.example"},
		{body: `{"type":"TXT","name":"_x","content":"v","ttl":59}`, code: "1004/9021"},
		{body: `{"type":"TXT","name":"_x","content":"v","ttl":86401}`, code: "1004/9021"},
		{body: `{"type":"TXT","name":"_x","content":"a\u0007b","ttl":60}`, code: "1004/9051"},
		{body: `{"type":"TXT","name":"_x","content":"","ttl":60}`, code: "1004/9005"},
		{body: `{"type":"TXT","name":"a..b","content":"v","ttl":60}`, code: "1004/9000"},
	}
	for _, tt := range tests {
		s, a, _ := account(t, nil)
		got := call(t, s, "a-only", "POST", "/zones/"+a+"/dns_records", tt.body)
		var rec struct{ ID, Name, Content string }
		if tt.name != "" {
			if err := json.Unmarshal(got.Result, &rec); err != nil || rec.Name != tt.name || !idForm.MatchString(rec.ID) {
				t.Errorf("%s: %d %s %+v, %v", tt.body, got.status, got.code(), rec, err)
			}
			if bytes.Contains(got.Result, []byte("zone_id")) {
				t.Errorf("%s: the record names its zone", tt.body)
			}
		} else if got.status != 400 || got.code() != tt.code || len(s.Records("a.example")) != 0 {
			t.Errorf("%s: %d %s, want %s", tt.body, got.status, got.code(), tt.code)
		}
	}
}

func TestIdentical(t *testing.T) {
	s, a, _ := account(t, nil)
	path := "/zones/" + a + "/dns_records"
	quoted, bare := `{"type":"TXT","name":"_x","content":"\"v\"","ttl":60}`, `{"type":"TXT","name":"_x","content":"v","ttl":60}`
	call(t, s, "a-only", "POST", path, quoted)
	if got := call(t, s, "a-only", "POST", path, quoted); got.status != 400 || got.code() != "81058" {
		t.Errorf("identical: %d %s", got.status, got.code())
	}
	if got := call(t, s, "a-only", "POST", path, bare); got.status != 200 {
		t.Errorf("without quotes: %d %s", got.status, got.code())
	}
	s.SetQuirks(Quirks{IdenticalCode: 81057, IdenticalUnquoted: true})
	if got := call(t, s, "a-only", "POST", path, bare); got.status != 400 || got.code() != "81057" {
		t.Errorf("identical: %d %s", got.status, got.code())
	}
}

func TestRecordLifeAndDNS(t *testing.T) {
	dns := &dnsMap{}
	s, a, _ := account(t, dns)
	path := "/zones/" + a + "/dns_records"
	s.Seed("a.example", "TXT", "_x.a.example", "other")
	s.Seed("a.example", "CNAME", "c.a.example", "value")
	var made struct{ ID string }
	if err := json.Unmarshal(call(t, s, "a-edit", "POST", path, `{"type":"TXT","name":"_x","content":"\"-Value\"","ttl":60}`).Result, &made); err != nil {
		t.Fatal(err)
	}
	twin := s.Seed("a.example", "TXT", "_x.a.example", "-Value")
	want := func(values ...string) {
		t.Helper()
		if got := dns.values["a.example _x.a.example"]; !slices.Equal(got, values) {
			t.Errorf("DNS has %q, want %q", got, values)
		}
	}
	want("other", "-Value")
	for query, n := range map[string]int{
		"":                                      4,
		"?type=TXT":                             3,
		"?type=TXT&name=_x.a.example":           3,
		"?name=_X.a.example.":                   3,
		"?content.contains=value":               3,
		"?type=TXT&content.contains=-Value":     2,
		"?content.exact=-Value":                 1,
		"?content.exact=%22-Value%22":           1,
		"?content.exact=-value":                 0,
		"?type=TXT&name=_x":                     0,
		"?name=_x.a.example&per_page=5&page=2":  0,
		"?name=_x.a.example&page=1&per_page=50": 3,
	} {
		if got := call(t, s, "a-edit", "GET", path+query, ""); got.Info.Count != n {
			t.Errorf("list %q: %d records, want %d", query, got.Info.Count, n)
		}
	}
	if got := call(t, s, "a-edit", "GET", path+"/"+made.ID, ""); got.status != 200 {
		t.Errorf("get one: %d", got.status)
	}
	got := call(t, s, "a-edit", "DELETE", path+"/"+made.ID, "")
	if want := `{"id":"` + made.ID + `"}`; got.status != 200 || string(got.Result) != want {
		t.Errorf("delete: %d %s", got.status, got.Result)
	}
	want("other", "-Value") // the twin still shows it
	if got := call(t, s, "a-edit", "DELETE", path+"/"+made.ID, ""); got.status != 404 || got.code() != "81044" {
		t.Errorf("delete again: %d %s", got.status, got.code())
	}
	call(t, s, "a-edit", "DELETE", path+"/"+twin, "")
	want("other")
	if got := s.TXT("_x.a.example"); !slices.Equal(got, []string{"other"}) {
		t.Errorf("TXT = %q", got)
	}
}

func TestPermissions(t *testing.T) {
	s, a, b := account(t, nil)
	s.TolerateOutside()
	for _, tt := range []struct {
		token, method, path string
		status              int
		code                string
	}{
		{"a-read", "GET", "/zones/" + a, 200, ""},
		{"a-edit", "GET", "/zones/" + a, 403, "9109"},
		{"a-read", "GET", "/zones/" + a + "/dns_records", 403, "10000"},
		{"a-only", "GET", "/zones/" + b + "/dns_records", 403, "10000"},
		{"a-only", "DELETE", "/zones/" + b + "/dns_records/" + strings.Repeat("0", 32), 403, "10000"},
		{"a-only", "GET", "/zones/" + strings.Repeat("0", 32) + "/dns_records", 404, "7003"},
		{"a-only", "GET", "/zones/nonsense/dns_records", 404, "7003"},
		{"a-only", "GET", "/zones//dns_records", 404, "7003"},
		{"a-only", "DELETE", "/zones/" + a + "/dns_records/nonsense", 404, "7003"},
	} {
		if got := call(t, s, tt.token, tt.method, tt.path, ""); got.status != tt.status || got.code() != tt.code {
			t.Errorf("%s %s %s: %d %s, want %d %s", tt.token, tt.method, tt.path, got.status, got.code(), tt.status, tt.code)
		}
	}
}

func TestMisuseFailsTheTest(t *testing.T) {
	tb := &complaints{TB: t}
	s, a, b := account(tb, nil)
	record := "/zones/" + a + "/dns_records"
	txt := `{"type":"TXT","name":"_x","content":"v","ttl":60}`
	for _, tt := range []struct{ method, path, body string }{
		{"PUT", record + "/" + strings.Repeat("0", 32), txt},
		{"PATCH", record + "/" + strings.Repeat("0", 32), txt},
		{"DELETE", record, ""},
		{"POST", record, "-"}, // without Content-Type
		{"POST", record, "{"},
		{"POST", record, `{"type":"A","name":"x","content":"192.0.2.1"}`},
		{"POST", "/zones", "{}"},
		{"DELETE", "/zones/" + a, ""},
		{"GET", "/accounts", ""},
		{"GET", "/zones/" + a + "/settings", ""},
		{"GET", "/zones?name=a.example&nmae=b", ""},
		{"GET", "/zones?name=a.example&name=b.example", ""},
		{"GET", record + "?content=v", ""},
		{"GET", "/zones/" + b + "/dns_records", ""},
	} {
		got := call(t, s, "a-only", tt.method, tt.path, tt.body)
		if n := tb.take(); n != 1 || got.status < 400 || got.Success {
			t.Errorf("%s %s: %d failures, status %d", tt.method, tt.path, n, got.status)
		}
	}
	if n := len(s.Records("a.example")); n != 0 {
		t.Errorf("%d records were made", n)
	}
	s.URL = strings.TrimSuffix(s.URL, Prefix)
	call(t, s, "a-only", "GET", "/zones?name=a.example", "")
	if tb.take() != 1 {
		t.Error("a path outside the API did not fail the test")
	}
}

func TestCallLog(t *testing.T) {
	s, a, b := account(t, nil)
	s.TolerateOutside()
	call(t, s, "a-only", "GET", "/zones?name=x.a.example", "")
	call(t, s, "a-only", "GET", "/zones/"+a+"/dns_records?type=TXT", "")
	if outside := s.OutsideZone(); len(outside) != 0 {
		t.Errorf("outside: %+v", outside)
	}
	call(t, s, "a-only", "GET", "/zones?name=xa.example", "")
	call(t, s, "a-only", "GET", "/zones", "")
	call(t, s, "a-only", "GET", "/zones/"+b+"/dns_records", "")
	var got []string
	for _, c := range s.Calls() {
		got = append(got, fmt.Sprintf("%s %q %d", c.Method, c.Zone, c.Status))
		if c.End.Before(c.Start) {
			t.Errorf("call ends at %v, before %v", c.End, c.Start)
		}
	}
	want := []string{`GET "x.a.example" 200`, `GET "a.example" 200`, `GET "xa.example" 200`, `GET "" 403`, `GET "b.example" 403`}
	if !slices.Equal(got, want) {
		t.Errorf("calls %q, want %q", got, want)
	}
	if n := len(s.OutsideZone()); n != 3 {
		t.Errorf("%d calls outside, want 3", n)
	}
	if n := len(s.OutsideZone("b.example")); n != 4 {
		t.Errorf("%d calls outside b.example, want 4", n)
	}
	if text := fmt.Sprintf("%+v", s.Calls()); strings.Contains(text, "a-only") {
		t.Errorf("the token is in the log: %s", text)
	}
	s.Forget()
	if n := len(s.Calls()); n != 0 {
		t.Errorf("%d calls after Forget", n)
	}
}

func TestDelayShowsOverlap(t *testing.T) {
	s, _, _ := account(t, nil)
	s.SetDelay(100 * time.Millisecond)
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() { _, _ = try(t, s, "Bearer a-only", "GET", "/zones?name=a.example", "") })
	}
	wg.Wait()
	if n := Overlap(s.Calls()); n < 2 {
		t.Errorf("overlap %d", n)
	}
	s.Forget()
	for range 2 {
		call(t, s, "a-only", "GET", "/zones?name=a.example", "")
	}
	if n := Overlap(s.Calls()); n != 1 {
		t.Errorf("overlap %d of calls one after the other", n)
	}
}

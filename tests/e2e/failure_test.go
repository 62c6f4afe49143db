package e2e

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/certhook/certhook/tests/cloudflaretest"
	"github.com/certhook/certhook/tests/lab"
)

// failure is one way in which calls of the provider's API go wrong, and what then becomes of the hook whose call
// it is.
type failure struct {
	name  string
	fault cloudflaretest.Fault
	cut   func(*row) // instead of fault: what keeps calls from getting through
	there bool       // the value is at the provider before it is written
	slow  bool       // only the hook's own deadline ends it
	ends  ends
}

// ends are how a hook ends when a call fails at each of the places, nil where that does not happen.
type ends [4]*outcome

// outcome is a hook's exit code, and whether its value is at the provider then.
type outcome struct {
	code  int
	there bool
}

var (
	// Of auth-hook.
	failed = &outcome{11, false}
	unsure = &outcome{11, true} // it is there, and nobody said so
	stored = &outcome{0, true}
	// Of cleanup-hook.
	kept   = &outcome{11, true}
	untold = &outcome{11, false} // it is gone, and nobody said so
	gone   = &outcome{0, false}
)

// place is a call of a hook that may fail. One that cannot get through fails after the call that comes before it.
type place struct {
	name         string
	hook         string
	method, path string
	after        string // path of the GET before it; "" where it is the hook's first call
	forgotten    bool   // the journal is gone, so that cleanup-hook has to look for the zone
	of           func(ends) *outcome
}

var places = []place{
	{"look-up of the zone", "auth-hook", http.MethodGet, cloudflaretest.Zones, "", false, func(e ends) *outcome { return e[0] }},
	{"write", "auth-hook", http.MethodPost, cloudflaretest.RecordSet, cloudflaretest.Zones, false, func(e ends) *outcome { return e[1] }},
	{"look-up before the removal", "cleanup-hook", http.MethodGet, cloudflaretest.RecordSet, "", false, func(e ends) *outcome { return e[2] }},
	{"removal", "cleanup-hook", http.MethodDelete, cloudflaretest.OneRecord, cloudflaretest.RecordSet, false, func(e ends) *outcome { return e[3] }},
	{"look-up of the zone without a journal", "cleanup-hook", http.MethodGet, cloudflaretest.Zones, "", true, func(e ends) *outcome {
		if e[0] == nil {
			return nil
		}
		return kept
	}},
}

// failures is the table. redirect is a URL that nobody must follow.
func failures(redirect string) []failure {
	limited := cloudflaretest.RateLimited
	limited.RetryAfter = 300
	const wrongCode = `{"success":false,"errors":[{"code":%d,"message":"so they say"}],"messages":[],"result":null}`
	replace := func(old, with string) cloudflaretest.Fault {
		return cloudflaretest.Fault{Rewrite: func(body []byte) []byte { return bytes.ReplaceAll(body, []byte(old), []byte(with)) }}
	}
	never := ends{failed, failed, kept, kept}
	halfway := ends{failed, stored, kept, gone}
	return []failure{
		{name: "403", fault: cloudflaretest.Forbidden, ends: never},
		{name: "429 without end", fault: cloudflaretest.RateLimited, ends: never},
		{name: "429 beyond the deadline", fault: limited, ends: never},
		{name: "HTML 502", fault: cloudflaretest.HTML502, ends: never},
		{name: "200 without success", fault: cloudflaretest.Unsuccessful, ends: never},
		{name: "200 without result", fault: cloudflaretest.NullResult, ends: never},
		{name: "wrong zone", fault: replace(lab.AliasZone+`"`, lab.ParentZone+`"`), ends: ends{failed, stored, kept, nil}},
		{name: "id of another zone", fault: replace(cloudflaretest.ZoneID(lab.AliasZone), cloudflaretest.ZoneID(lab.ProductionZone)), ends: ends{failed}},
		{name: "wrong value", fault: replace(`"content":"\"`, `"content":"\"x`), ends: ends{nil, stored, nil, nil}},
		{name: "wrong type", fault: replace(`"TXT"`, `"CNAME"`), ends: ends{nil, stored, kept, nil}},
		{name: "wrong id", fault: replace(`"id":"`, `"id":"0`), ends: ends{failed, stored, kept, gone}},
		{name: "time-out", fault: cloudflaretest.Fault{Delay: time.Hour}, slow: true, ends: never},
		{name: "slow body", fault: cloudflaretest.Fault{Slow: 200 * time.Millisecond}, slow: true, ends: ends{failed, unsure, kept, untold}},
		{name: "cut-off body", fault: cloudflaretest.Fault{Cut: true}, ends: halfway},
		{name: "closed", fault: cloudflaretest.Fault{Drop: true}, ends: never},
		{name: "lost reply", fault: cloudflaretest.LostReply, ends: halfway},
		{name: "identical record", there: true, ends: ends{nil, stored, nil, nil}},
		{name: "identical record, untrue", fault: cloudflaretest.Fault{Status: 400, Body: fmt.Sprintf(wrongCode, 81058)}, ends: ends{nil, failed, nil, nil}},
		{name: "no such record, untrue", fault: cloudflaretest.Fault{Status: 404, Body: fmt.Sprintf(wrongCode, 81044)}, ends: ends{nil, nil, nil, kept}},
		{name: "connection refused", cut: (*row).refuse, ends: never},
		{name: "wrong certificate", cut: (*row).disguise, ends: never},
		{name: "redirect", fault: cloudflaretest.Fault{Status: http.StatusFound, Location: redirect}, ends: never},
		{name: "redirect with method", fault: cloudflaretest.Fault{Status: http.StatusTemporaryRedirect, Location: redirect}, ends: never},
	}
}

// Every failure at every place where it can happen, to hooks that a stand-in for certbot calls. Whatever happens,
// the hook tells the truth and ends in time, nothing but its own value changes, and the next run leaves nothing.
func TestFailedCalls(t *testing.T) {
	l := lab.New(t, lab.Options{})
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("a redirect to another host was followed: %s %s", r.Method, r.URL)
	}))
	t.Cleanup(elsewhere.Close)

	const atOnce = 16 // most rows wait most of the time
	slots := make(chan struct{}, atOnce)
	var rows sync.WaitGroup
	n := 0
	for _, f := range failures(elsewhere.URL) {
		for _, p := range places {
			want := p.of(f.ends)
			if want == nil {
				continue
			}
			n++
			domain, address := fmt.Sprintf("f%03d.example.com", n), netip.AddrFrom4([4]byte{127, 30, byte(n), 1})
			l.Delegate(domain)
			slots <- struct{}{}
			rows.Go(func() {
				defer func() { <-slots }()
				t.Run(f.name+" at the "+p.name, func(t *testing.T) { newRow(t, l, f, domain, address).play(p, want) })
			})
		}
	}
	rows.Wait()
}

// row is a failure at one place, with a domain, an API and a journal of its own.
type row struct {
	failure
	*lab.Lab
	t              *testing.T
	api            *cloudflaretest.Server
	cert           tls.Certificate // of the API
	domain, record string
	settings       string // file
	state          string // directory
	before         []string
}

func newRow(t *testing.T, l *lab.Lab, f failure, domain string, at netip.Addr) *row {
	t.Helper()
	dir := t.TempDir()
	r := &row{
		failure: f, Lab: l, t: t, domain: domain, record: lab.Target(domain, lab.AliasZone),
		settings: filepath.Join(dir, "certhook.env"), state: filepath.Join(dir, "state"),
	}
	listener, err := net.Listen("tcp", netip.AddrPortFrom(at, 8080).String())
	if err != nil {
		t.Fatal(err)
	}
	options := []cloudflaretest.Option{cloudflaretest.OnListener(listener)}
	if f.cut != nil {
		r.cert = l.Certificate(at.String())
		options = append(options, cloudflaretest.WithCertificate(r.cert))
	}
	r.api = cloudflaretest.New(t, l.World, options...)
	r.api.TolerateOutside() // where the API names another zone's id; it refuses such calls
	r.api.AddToken(cloudflaretest.Token{Secret: lab.Token, Zones: []string{lab.AliasZone}, ZoneRead: true, DNSEdit: true})
	for _, zone := range lab.Zones() {
		r.api.AddZone(zone)
		r.api.Seed(zone, "A", "www."+zone, "192.0.2.80")
	}
	r.api.Seed(lab.AliasZone, "TXT", r.record, foreign)
	r.api.Seed(lab.AliasZone, "TXT", r.record, strings.ToUpper(rowValue))
	r.before = r.records()
	if f.there {
		r.api.Seed(lab.AliasZone, "TXT", r.record, rowQuoted)
	}
	return r
}

var (
	rowValue  = value("ours")
	rowQuoted = `"` + rowValue + `"`
)

func (r *row) play(p place, want *outcome) {
	const patient, hasty = "20s", "3s"
	r.configure(patient)
	certbot := newCaller(r.t, "env", "CERTHOOK_CONFIG="+r.settings)
	ours := single(r.domain, rowValue)
	if p.hook == "cleanup-hook" {
		certbot.mustHook("auth-hook", ours)
	}
	if p.forgotten {
		if err := os.RemoveAll(r.state); err != nil {
			r.t.Fatal(err)
		}
	}
	if r.slow {
		r.configure(hasty)
	}
	mend := r.fail(p)
	began := time.Now()
	result, err := certbot.hook(p.hook, ours)
	took := time.Since(began)
	mend()
	r.configure(patient)
	if err != nil {
		r.t.Fatal(err)
	}
	// Enough for the slowest machine, and less than any limit other than the hook's own.
	if took > 15*time.Second {
		r.t.Errorf("it took %v", took)
	}
	if result.Code != want.code {
		r.t.Errorf("want exit code %d: %v", want.code, result)
	}
	if p.hook == "auth-hook" {
		r.checkAdded(result, want.there)
		certbot.mustHook("cleanup-hook", ours)
		r.checkClean()
	} else {
		r.checkRemoved(result, want.there)
	}
	certbot.end()

	next := newCaller(r.t, "env", "CERTHOOK_CONFIG="+r.settings)
	other := single(r.domain, value("next"))
	next.mustHook("auth-hook", other)
	r.wantRecords(`"` + other.value + `"`)
	next.mustHook("cleanup-hook", other)
	r.checkClean()
	next.end()
}

func (r *row) configure(providerTime string) {
	r.ConfigureAt(r.settings, map[string]string{
		"CLOUDFLARE_API_URL": r.api.URL, "PROVIDER_TIMEOUT": providerTime,
		"CERTHOOK_STATE_DIR": r.state, "CERTHOOK_LOG": r.settings + ".log",
	})
}

// fail has the failure happen at p.
func (r *row) fail(p place) (mend func()) {
	switch {
	case r.cut == nil:
		return r.api.Break(r.fault.On(p.method, p.path))
	case p.after == "":
		r.cut(r)
		return r.mend
	}
	lift := r.api.Break(cloudflaretest.Fault{Method: http.MethodGet, Path: p.after, Then: func() { r.cut(r) }})
	return func() { lift(); r.mend() }
}

func (r *row) refuse()   { r.api.SetRefusing(true) }
func (r *row) disguise() { r.api.SetCertificate(r.Certificate("api.example.org")) }

func (r *row) mend() {
	r.api.SetRefusing(false)
	r.api.SetCertificate(r.cert)
}

// checkAdded looks at what auth-hook says and did.
func (r *row) checkAdded(result lab.Result, there bool) {
	r.t.Helper()
	switch {
	case result.Code == 0 && !strings.Contains(result.Stdout, "1 value added"):
		r.t.Errorf("it does not say what it did: %v", result)
	case result.Code != 0 && (result.Stdout != "" || !strings.Contains(result.Stderr, "auth-hook: hint: ")):
		r.t.Errorf("a failure has no output and a hint: %v", result)
	}
	live := inFlightIn(r.t, r.state)
	if !there {
		r.wantRecords()
		return
	}
	r.wantRecords(rowQuoted)
	if len(live) != 1 {
		r.t.Errorf("in the journal: %q", live)
	}
}

// checkRemoved looks at what cleanup-hook says and did.
func (r *row) checkRemoved(result lab.Result, there bool) {
	r.t.Helper()
	kept := 0
	if result.Code == 0 {
		if !strings.Contains(result.Stdout, "1 value removed") {
			r.t.Errorf("it does not say what it did: %v", result)
		}
	} else {
		kept = 1
		if result.Stdout != "" || !strings.Contains(result.Stderr, "not removed") || !strings.Contains(result.Stderr, "cleanup-hook: hint: ") {
			r.t.Errorf("a failure says so, and gives a hint: %v", result)
		}
	}
	if live := inFlightIn(r.t, r.state); len(live) != kept {
		r.t.Errorf("in the journal: %q, want %d", live, kept)
	}
	if there {
		r.wantRecords(rowQuoted)
	} else {
		r.wantRecords()
	}
}

// checkClean fails unless nothing of ours is left anywhere.
func (r *row) checkClean() {
	r.t.Helper()
	r.wantRecords()
	if live := inFlightIn(r.t, r.state); len(live) > 0 {
		r.t.Errorf("still in the journal: %q", live)
	}
}

// wantRecords fails unless the account, and DNS, have what they had at first and these contents at our record.
func (r *row) wantRecords(contents ...string) {
	r.t.Helper()
	want := slices.Clone(r.before)
	for _, c := range contents {
		want = append(want, lab.AliasZone+": "+r.record+" TXT "+c)
	}
	slices.Sort(want)
	if got := r.records(); !slices.Equal(got, want) {
		r.t.Errorf("the records are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if shown := r.World.TXT(lab.AliasZone, r.record); len(shown) != 2+len(contents) {
		r.t.Errorf("DNS shows %q", shown)
	}
}

// records lists all records of the account once no call is under way.
func (r *row) records() []string {
	r.t.Helper()
	eventually(r.t, "the end of the API's calls", func() bool {
		return !slices.ContainsFunc(r.api.Calls(), func(c cloudflaretest.Call) bool { return c.End.IsZero() })
	})
	var all []string
	for _, zone := range lab.Zones() {
		for _, rec := range r.api.Records(zone) {
			all = append(all, fmt.Sprintf("%s: %s %s %s", zone, rec.Name, rec.Type, rec.Content))
		}
	}
	slices.Sort(all)
	return all
}

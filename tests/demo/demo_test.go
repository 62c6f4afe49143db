package main

import (
	"bytes"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/tests/cloudflaretest"
	"github.com/certhook/certhook/tests/dnstest"
	"github.com/certhook/certhook/tests/lab"
)

const (
	value1 = "oT1TTP8aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	value2 = "XzSBayxaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	target = "_acme-challenge.svc.example.com." + lab.AliasZone
	zoneID = "04fc0123456789abcdef0123456789ab"
	rec1   = "f7960123456789abcdef0123456789ab"
)

func TestStory(t *testing.T) {
	var b bytes.Buffer
	s := &story{w: &b, began: time.Now()}
	s.act("$ certbot")
	s.event(s.began.Add(12340*time.Millisecond), "dns", "ada shows it")
	s.say(strings.Repeat("ä", width) + "  ")
	s.say(strings.Repeat("ä", width+1))
	s.proof("holds", nil)
	s.proof("does not", []string{"this", "that"})
	want := "\n$ certbot\n 12.34 s  dns      ada shows it\n" +
		strings.Repeat("ä", width) + "\n" + strings.Repeat("ä", width-1) + "…\n" +
		"  ok      holds\n  FAILED  does not\n          but: this\n          but: that\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}

	b.Reset()
	s.colour = true
	s.proof("does not", []string{"this"})
	if got := b.String(); !strings.HasPrefix(got, red+"  FAILED  does not"+plain+"\n") {
		t.Errorf("in colour: %q", got)
	}
}

// scene is a watch at the start of an act.
type scene struct {
	*watch
	lines []string
	now   time.Time
}

func newScene(d detail) *scene {
	s := &scene{now: time.Now()}
	s.watch = newWatch(func(_ time.Time, who, what string) {
		s.lines = append(s.lines, who+" "+strings.Join(strings.Fields(what), " "))
	}, func() []cloudflaretest.Record {
		return []cloudflaretest.Record{{ID: rec1, Content: `"` + value1 + `"`}}
	})
	s.begin(d)
	return s
}

// api is a call that begins so long after the scene and takes 80 ms.
func (s *scene) api(after time.Duration, method, path string, query url.Values) {
	start := s.now.Add(after)
	s.call(cloudflaretest.Call{
		Method: method, Path: path, Query: query, Zone: lab.AliasZone, Status: 200,
		Start: start, End: start.Add(80 * time.Millisecond),
	})
}

func (s *scene) asked(server, from, name string, answer ...string) {
	s.query(dnstest.Query{
		Time: s.now, Server: server, From: netip.MustParseAddr(from), Name: name, Type: dns.TypeTXT, AA: true, Answer: answer,
	})
}

// issuance is what the other side sees of one.
func (s *scene) issuance() {
	const hook = "127.0.0.1"
	records := "/zones/" + zoneID + "/dns_records"
	s.asked("ns1.example.com", hook, "_acme-challenge.svc.example.com", target+".")
	s.asked("ns2.example.com", hook, "_acme-challenge.svc.example.com", target+".")
	s.api(0, "GET", "/zones", url.Values{"name": {lab.AliasZone}})
	s.api(100*time.Millisecond, "POST", records, nil)
	s.api(120*time.Millisecond, "POST", records, nil)
	s.asked("ada", hook, target, value1, foreign)
	s.asked("bob", hook, target, foreign)
	s.asked("ada", hook, target, value1, foreign)
	s.asked("ada", hook, target, foreign, value1, value2)
	s.asked("bob", hook, target, value2, value1, foreign)
	s.say("certbot", "auth-hook svc.example.com: done")
	s.asked("ns1.example.com", lab.CAResolver, "_acme-challenge.svc.example.com", target+".")
	s.asked("bob", lab.CAResolver, target, foreign, value1, value2)
	s.asked("ada", lab.CAResolver, target, value2, foreign, value1)
	s.api(200*time.Millisecond, "DELETE", records+"/"+rec1, nil)
	s.end()
}

func TestWatchTells(t *testing.T) {
	for d, want := range map[detail][]string{
		full: {
			"api GET /zones?name=deleg.example.net 200 80 ms",
			"api POST /zones/{deleg.example.net}/dns_records 200 80 ms 2 at once",
			"dns ada shows oT1TTP8…",
			"dns ada shows XzSBayx…",
			"dns bob shows XzSBayx…, oT1TTP8…",
			"certbot auth-hook svc.example.com: done",
			"ca looks, and sees at bob: XzSBayx…, oT1TTP8…, somebody else's",
			"api DELETE /zones/{deleg.example.net}/dns_records/f796… 200 80 ms oT1TTP8… gone",
		},
		brief: {
			"certbot auth-hook svc.example.com: done",
			"ca looks, and sees at bob: XzSBayx…, oT1TTP8…, somebody else's",
			"api 1 DELETE, 1 GET, 2 POST",
		},
		silent: {"certbot auth-hook svc.example.com: done"},
	} {
		s := newScene(d)
		s.issuance()
		if !slices.Equal(s.lines, want) {
			t.Errorf("detail %d:\n%s\nwant\n%s", d, strings.Join(s.lines, "\n"), strings.Join(want, "\n"))
		}
		if answers, gaps := s.foreignSeen(); answers != 7 || len(gaps) != 0 {
			t.Errorf("detail %d: %d answers, gaps at %q", d, answers, gaps)
		}
	}
}

// The value of somebody else is missed whether others stand in its place or nothing does.
func TestWatchMissesForeign(t *testing.T) {
	s := newScene(silent)
	s.asked("ada", "127.0.0.1", target, value1)
	s.asked("bob", "127.0.0.1", target)
	s.asked("cyd", lab.CAResolver, target, foreign)
	if answers, gaps := s.foreignSeen(); answers != 3 || !slices.Equal(gaps, []string{"ada", "bob"}) {
		t.Errorf("%d answers, gaps at %q", answers, gaps)
	}
}

func TestAPILineFits(t *testing.T) {
	c := apiCall{cloudflaretest.Call{
		Method: "DELETE", Path: "/zones/" + zoneID + "/dns_records/" + rec1, Zone: lab.AliasZone,
		End: time.Time{}.Add(99 * time.Second),
	}, value1}
	line := apiLine([]apiCall{c})
	const before = "123.45 s  api      "
	if n := utf8.RuneCountInString(before + line); n > width || !strings.Contains(line, "---") {
		t.Errorf("%d columns: %q", n, line)
	}
}

func TestHookLines(t *testing.T) {
	const printed = `Saving debug log to /var/log/letsencrypt/letsencrypt.log
Requesting a certificate for example.com and *.example.com
Hook '--manual-auth-hook' for example.com ran with output:
 auth-hook: example.com: checked; to be written with the last of the 2 names
Hook '--manual-auth-hook' for example.com reported error code 12
Hook '--manual-auth-hook' for example.com ran with error output:
 auth-hook: warning: one
 hint: two
Waiting for verification...
 neither this
Hook '--manual-cleanup-hook' for example.com ran with output:
 cleanup-hook: 2 values removed

Successfully received certificate.
unfinished`
	want := []string{
		"auth-hook example.com: checked; to be written with the last of the 2 names",
		"auth-hook example.com: exit code 12",
		"auth-hook example.com: warning: one",
		"auth-hook example.com: hint: two",
		"cleanup-hook example.com: 2 values removed",
		"has received the certificate",
	}
	var h hookReader
	var got []string
	out := &output{tell: func(line string) {
		if what := h.read(line); what != "" {
			got = append(got, what)
		}
	}}
	for chunk := range slices.Chunk([]byte(printed), 7) {
		out.Write(chunk)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if out.all.String() != printed {
		t.Errorf("kept %q", out.all.String())
	}
}

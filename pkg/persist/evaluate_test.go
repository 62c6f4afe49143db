package persist

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// now is when the questions of the tests are asked.
var now = time.Unix(1790000000, 0)

func question() Question { return Question{Issuer: issuer, Account: acct, Now: now, Draft: Draft01} }

func TestEvaluate(t *testing.T) {
	const (
		i, u = issuer, acct
		base = i + ";accounturi=" + u
	)
	list := func(txts ...string) []string { return txts }
	tests := []struct {
		name string
		txts []string
		wild bool
		want string // ok, malformed, unauthorized
		why  string // in the reason that we give for the first record
	}{
		{name: "no record", want: "unauthorized"},
		{name: "plain", txts: list(base), want: "ok"},

		// The issuer.
		{name: "blanks everywhere", txts: list("  " + i + " ; accounturi = " + u + " "), want: "ok"},
		{name: "real tabs", txts: list("\t" + i + "\t;\taccounturi\t=\t" + u), want: "ok"},
		{name: "a tab as it arrives", txts: list(i + `;\009accounturi=` + u), want: "malformed", why: "missing mandatory accounturi"},
		{name: "upper case and a dot", txts: list("LETSENCRYPT.ORG.;accounturi=" + u), want: "ok"},
		{name: "two dots", txts: list(i + "..;accounturi=" + u), want: "unauthorized", why: "another CA"},
		{name: "an underscore", txts: list("lets_encrypt.org;accounturi=" + u), want: "unauthorized", why: "names no CA"},
		{name: "empty issuer", txts: list(";accounturi=" + u), want: "unauthorized", why: "names no CA"},
		{name: "the root", txts: list(".;accounturi=" + u), want: "unauthorized", why: "names no CA"},
		{name: "another CA", txts: list("other.example;accounturi=" + u), want: "unauthorized", why: "another CA"},
		{name: "another CA, malformed", txts: list("other.example;accounturi=" + u + ";"), want: "unauthorized", why: "another CA"},
		{name: "another TXT", txts: list("v=spf1 -all"), want: "unauthorized", why: "names no CA"},

		// Parameters.
		{name: "a semicolon at the end", txts: list(base + ";"), want: "malformed", why: "trailing semicolon"},
		{name: "two semicolons", txts: list(i + ";;accounturi=" + u), want: "malformed", why: "empty parameter"},
		{name: "a flag", txts: list(base + ";flag"), want: "malformed", why: "should be tag=value"},
		{name: "no tag", txts: list(base + ";=x"), want: "malformed", why: "empty tag"},
		{name: "two equals signs", txts: list(base + ";foo=a=b"), want: "ok"},
		{name: "an empty value", txts: list(base + ";foo="), want: "ok"},
		{name: "a tag of any kind", txts: list(base + ";b@d tag=x"), want: "ok"},
		{name: "a blank in a value", txts: list(base + ";foo=a b"), want: "malformed", why: "malformed value"},
		{name: "raw octets in a value", txts: list(base + ";foo=\xff"), want: "malformed", why: "malformed value"},
		{name: "octets as they arrive", txts: list(base + `;foo=\255\"`), want: "ok"},
		{name: "an unknown tag twice", txts: list(base + ";foo=a;foo=b"), want: "ok"},
		{name: "a known tag twice", txts: list(base + ";AccountURI=" + u), want: "malformed", why: "duplicate parameter"},
		{name: "policy twice", txts: list(base + ";policy=wildcard;policy=wildcard"), want: "malformed", why: "duplicate parameter"},
		{name: "persistUntil twice", txts: list(base + ";persistUntil=1900000000;PERSISTUNTIL=1900000000"), want: "malformed", why: "duplicate parameter"},
		{name: "any order", txts: list(i + ";persistUntil=1900000000;policy=wildcard;accounturi=" + u), want: "ok"},

		// The account.
		{name: "tag in capitals", txts: list(i + ";ACCOUNTURI=" + u), want: "ok"},
		{name: "issuer alone", txts: list(i), want: "malformed", why: "missing mandatory accounturi"},
		{name: "empty account", txts: list(i + ";accounturi="), want: "malformed", why: "empty value"},
		{name: "another account", txts: list(base + "2"), want: "unauthorized", why: "another account"},
		{name: "scheme in capitals", txts: list(i + ";accounturi=" + strings.Replace(u, "https", "HTTPS", 1)), want: "unauthorized", why: "another account"},
		{name: "percent sign", txts: list(i + ";accounturi=" + strings.TrimSuffix(u, "1") + "%31"), want: "unauthorized", why: "another account"},
		{name: "slash at the end", txts: list(base + "/"), want: "unauthorized", why: "another account"},
		{name: "in quotes as they arrive", txts: list(i + `;accounturi=\"` + u + `\"`), want: "unauthorized", why: "another account"},
		{name: "hashed", txts: list(i + ";accounturi=" + HashedAccount("https://ca.example/", domain, strings.Repeat("a", 43), u)), want: "unauthorized", why: "draft -02"},

		// The wildcard.
		{name: "wildcard", txts: list(base + ";policy=WildCard"), wild: true, want: "ok"},
		{name: "wildcard without a policy", txts: list(base), wild: true, want: "unauthorized", why: "does not cover the wildcard"},
		{name: "wildcard with another policy", txts: list(base + ";policy=foo"), wild: true, want: "unauthorized", why: "does not cover the wildcard"},
		{name: "wildcard with an empty policy", txts: list(base + ";policy="), wild: true, want: "unauthorized", why: "does not cover the wildcard"},
		{name: "base with another policy", txts: list(base + ";policy=foo"), want: "ok"},
		{name: "base with the wildcard's policy", txts: list(base + ";policy=wildcard"), want: "ok"},

		// The end.
		{name: "plus sign", txts: list(base + ";persistUntil=+1900000000"), want: "ok"},
		{name: "leading zeros", txts: list(base + ";persistUntil=0001900000000"), want: "ok"},
		{name: "RFC 3339", txts: list(base + ";persistUntil=2030-01-01T00:00:00Z"), want: "malformed", why: "malformed persistUntil"},
		{name: "a fraction", txts: list(base + ";persistUntil=1900000000.5"), want: "malformed", why: "malformed persistUntil"},
		{name: "an underscore in the end", txts: list(base + ";persistUntil=1_900000000"), want: "malformed", why: "malformed persistUntil"},
		{name: "an empty end", txts: list(base + ";persistUntil="), want: "malformed", why: "malformed persistUntil"},
		{name: "beyond 64 bits", txts: list(base + ";persistUntil=9223372036854775808"), want: "malformed", why: "malformed persistUntil"},
		{name: "this very second", txts: list(base + ";persistUntil=1790000000"), want: "ok"},
		{name: "the second before", txts: list(base + ";persistUntil=1789999999"), want: "unauthorized", why: "expired"},
		{name: "the epoch", txts: list(base + ";persistUntil=0"), want: "unauthorized", why: "expired"},
		{name: "before the epoch", txts: list(base + ";persistUntil=-1"), want: "unauthorized", why: "expired"},
		{name: "the second that means none", txts: list(base + ";persistUntil=-62135596800"), want: "ok"},
		{name: "the last that does not wrap", txts: list(base + ";persistUntil=9223371974719179007"), want: "ok"},
		{name: "the first that wraps", txts: list(base + ";persistUntil=9223371974719179008"), want: "unauthorized", why: "expired"},
		{name: "the largest", txts: list(base + ";persistUntil=9223372036854775807"), want: "unauthorized", why: "expired"},

		// Several records.
		{name: "bad and good", txts: list(base+";", base), want: "ok", why: "trailing semicolon"},
		{name: "good and bad", txts: list(base, base+"2"), want: "ok", why: "another account"},
		{name: "malformed and wrong", txts: list(base+"2", base+";"), want: "malformed", why: "another account"},
		{name: "wrong twice", txts: list(base+"2", base+"3"), want: "unauthorized", why: "another account"},
	}
	for _, tt := range tests {
		q := question()
		q.Wildcard = tt.wild
		v := Evaluate(q, tt.txts)
		got := "unauthorized"
		switch {
		case v.OK:
			got = "ok"
		case v.Malformed:
			got = "malformed"
		}
		if got != tt.want || (v.Detail == "") != v.OK {
			t.Errorf("%s: %s, want %s (%+v)", tt.name, got, tt.want, v)
		}
		why := ""
		if len(v.Reasons) > 0 {
			why = v.Reasons[0].Wrong
		}
		if !strings.Contains(why, tt.why) || (why == "") != (tt.why == "") {
			t.Errorf("%s: the reason is %q, want %q", tt.name, why, tt.why)
		}
	}
}

// Each record that does not help has a reason, with what was expected and what is there.
func TestReasons(t *testing.T) {
	q := question()
	q.Wildcard = true
	wrong, foreign := issuer+";accounturi="+acct+"2", "other.example;accounturi="+acct
	v := Evaluate(q, []string{wrong, good, foreign})
	want := []Reason{
		{Record: wrong, Wrong: "it is for another account", Expected: acct, Seen: acct + "2"},
		{Record: good, Wrong: "it does not cover the wildcard", Expected: "policy=wildcard", Seen: "policy="},
		{Record: foreign, Wrong: "it is for another CA", Expected: issuer, Seen: "other.example", Foreign: true},
	}
	if fmt.Sprintf("%+v", v.Reasons) != fmt.Sprintf("%+v", want) {
		t.Errorf("got %+v\nwant %+v", v.Reasons, want)
	}
}

// The verdict ends with the record that holds longest.
func TestUntil(t *testing.T) {
	early, late := now.Add(time.Hour), now.Add(2*time.Hour)
	until := func(at time.Time) string { return fmt.Sprintf("%s;persistUntil=%d", good, at.Unix()) }
	for _, tt := range []struct {
		txts []string
		want time.Time
	}{
		{[]string{good}, time.Time{}},
		{[]string{until(early)}, early},
		{[]string{until(early), until(late), until(now.Add(-time.Hour))}, late},
		{[]string{until(early), good}, time.Time{}},
		{[]string{until(early) + ";", until(early)}, early},
	} {
		if v := Evaluate(question(), tt.txts); !v.OK || !v.Until.Equal(tt.want) {
			t.Errorf("%q: %+v, want the end %v", tt.txts, v, tt.want)
		}
	}
}

// A record of draft -02 has the account hashed, for the domain or for all.
func TestEvaluateDraft02(t *testing.T) {
	hash := func(domain string) string {
		return HashedAccount("https://ca.example/", domain, strings.Repeat("t", 43), acct)
	}
	q := question()
	q.Draft, q.Account = Draft02, hash(domain)
	for _, tt := range []struct {
		account, shared string
		ok              bool
		why             string
	}{
		{account: hash(domain), ok: true},
		{account: hash("other.example"), why: "another account"},
		{account: hash("*"), why: "another account"},
		{account: hash("*"), shared: hash("*"), ok: true},
		{account: hash(domain), shared: hash("*"), ok: true},
		{account: acct, shared: hash("*"), why: "not hashed"},
	} {
		q.Shared = tt.shared
		v := Evaluate(q, []string{issuer + ";accounturi=" + tt.account})
		if v.OK != tt.ok || !tt.ok && !strings.Contains(v.Reasons[0].Wrong, tt.why) {
			t.Errorf("%+v: %+v", tt, v)
		}
	}
}

// Where servers disagree, the worst that a CA can hear counts.
func TestSeenEvaluate(t *testing.T) {
	end := now.Add(time.Hour)
	ends := fmt.Sprintf("%s;persistUntil=%d", good, end.Unix())
	view := func(server string, txts ...string) View { return View{TXT: txts, Servers: []string{server}} }
	for _, tt := range []struct {
		views   []View
		ok      bool
		until   time.Time
		lagging string
	}{
		{views: []View{view("a", good)}, ok: true},
		{views: []View{view("a", good), view("b")}, lagging: "b has no TXT at " + owner},
		{views: []View{view("a"), view("b", good), view("c", "x")}, lagging: "a has no TXT at " + owner + ", c has other TXT records at " + owner},
		{views: []View{view("a"), view("b", "x")}},
		{views: []View{view("a", good), {Servers: []string{"b"}, Err: errCircle}}, lagging: "b leads to failure: the CNAMEs lead in a circle"},
		{views: []View{view("a", good), view("b", ends)}, ok: true, until: end},
		{views: []View{view("a", ends), view("b", good)}, ok: true, until: end},
	} {
		s := Seen{Owner: owner, Views: tt.views}
		if v := s.Evaluate(question()); v.OK != tt.ok || !v.Until.Equal(tt.until) {
			t.Errorf("%v: %+v", tt.views, v)
		}
		var lagging []string
		for _, l := range s.Lagging(question()) {
			lagging = append(lagging, l.Server+" "+l.Says)
		}
		if got := strings.Join(lagging, ", "); got != tt.lagging {
			t.Errorf("%v: lagging %q, want %q", tt.views, got, tt.lagging)
		}
	}
}

package caa

import (
	"slices"
	"strings"
	"testing"
)

const locked = `0 issue "letsencrypt.org;validationmethods=dns-01;accounturi=` + acct + `"`

func TestLock(t *testing.T) {
	pinned := strings.Replace(locked, ";validationmethods=dns-01", "", 1)
	tests := []struct {
		name    string
		records []string
		account string // acct unless said
		lock    Lock
		gap     string // what the record at fault has in it
		why     string
		notes   int
	}{
		{name: "no CAA", lock: Absent},
		{name: "nothing of issuance", records: []string{`0 iodef "mailto:a@b"`, `0 issuemail "x"`}, lock: Absent},
		{name: "locked", records: []string{locked}, lock: Locked},
		{name: "locked without a method", records: []string{pinned}, lock: Locked, notes: 1},
		{name: "locked by the older URI", records: []string{strings.Replace(locked, acct, "https://acme-v01.api.letsencrypt.org/acme/reg/1", 1)}, lock: Locked},
		{name: "locked, wildcards too", records: []string{locked, strings.Replace(locked, "issue", "issuewild", 1)}, lock: Locked},
		{name: "locked, wildcards for nobody", records: []string{locked, `0 issuewild ";"`}, lock: Locked},
		{name: "nobody at all", records: []string{`0 issue ";"`}, lock: Locked},
		{name: "a malformed sibling", records: []string{locked, `0 issue "letsencrypt.org;flag"`}, lock: Locked, notes: 1},
		{name: "a sibling for no account", records: []string{locked, `0 issue "letsencrypt.org;accounturi="`}, lock: Locked, notes: 1},

		{name: "unpinned", records: []string{`0 issue "letsencrypt.org"`}, lock: Open, gap: `"letsencrypt.org"`, why: "every account"},
		{name: "unpinned sibling", records: []string{locked, `0 issue "letsencrypt.org;validationmethods=dns-01"`}, lock: Open, gap: `methods=dns-01"`, why: "every account"},
		{name: "unpinned issuewild", records: []string{locked, `0 issuewild "letsencrypt.org"`}, lock: Open, gap: "issuewild", why: "every account"},
		{name: "second CA", records: []string{locked, `0 issue "other.example"`}, lock: Open, gap: "other.example", why: "another CA"},
		{name: "second CA, pinned there", records: []string{locked, `0 issue "other.example;accounturi=` + acct + `"`}, lock: Open, gap: "other.example", why: "another CA"},
		{name: "second CA for wildcards", records: []string{locked, `0 issuewild "other.example"`}, lock: Open, gap: "issuewild", why: "another CA"},
		{name: "wrong account", records: []string{locked, `0 issue "letsencrypt.org;accounturi=` + other + `"`}, lock: Open, gap: other, why: "another account"},
		{name: "mixed-case parameter", records: []string{strings.Replace(locked, "accounturi", "accountURI", 1)}, lock: Open, gap: "accountURI", why: "accountURI"},
		{name: "mixed-case methods", records: []string{strings.Replace(locked, "validationmethods", "validationMethods", 1)}, lock: Locked, notes: 1},
		{name: "wildcards alone", records: []string{strings.Replace(locked, "issue", "issuewild", 1)}, lock: Open, gap: "issuewild", why: "the name itself"},
		{name: "wildcards for nobody alone", records: []string{`0 issuewild ";"`}, lock: Open, gap: "issuewild", why: "the name itself"},

		{name: "account unknown, locked", records: []string{locked}, account: "-", lock: Locked},
		{name: "account unknown, unpinned", records: []string{`0 issue "letsencrypt.org"`}, account: "-", lock: Open, gap: "letsencrypt.org", why: "every account"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, wildcard := range []bool{false, true} {
				q := Question{Domain: "www.example.com", Wildcard: wildcard, Issuer: us, Method: "dns-01", Account: acct}
				if tt.account != "" {
					q.Account = ""
				}
				r := Evaluate(q, set(t, tt.records...))
				if r.Lock != tt.lock || !strings.Contains(r.Gap.Record, tt.gap) || !strings.Contains(r.Gap.Why, tt.why) || len(r.Notes) != tt.notes {
					t.Errorf("%s, gap %q, notes %q", r.Lock, r.Gap, r.Notes)
				}
				if (r.Lock == Open) != (r.Gap.Record != "") {
					t.Errorf("%s with the gap %q", r.Lock, r.Gap)
				}
			}
		})
	}
}

// What is advised is done, and then the domain is locked and the CA issues.
func TestAdvice(t *testing.T) {
	const line = `svc.example.com. CAA 0 issue "letsencrypt.org;validationmethods=dns-01;accounturi=` + acct + `"`
	wildLine := strings.Replace(line, "issue", "issuewild", 1)
	tests := []struct {
		name    string
		owner   string
		records []string
		cname   string
		want    string
	}{
		{name: "nothing there", want: "add " + line},
		{name: "open above", owner: "example.com", records: []string{`0 issue "letsencrypt.org"`}, want: "add " + line},
		{name: "forbidden above", owner: "example.com", records: []string{`0 issue "other.example"`}, want: "add " + line},
		{name: "critical above", owner: "example.com", records: []string{`128 foo "x"`}, want: "add " + line},
		{name: "wildcards above", owner: "example.com", records: []string{`0 issuewild ";"`, `0 issue "letsencrypt.org"`}, want: "add " + line + " and " + wildLine},
		{name: "an unpinned sibling", owner: "svc.example.com", records: []string{locked, `0 issue "letsencrypt.org"`}, want: "remove that record"},
		{name: "unpinned", owner: "svc.example.com", records: []string{`0 issue "letsencrypt.org"`}, want: "add " + line + ", then remove that record"},
		{name: "unpinned issuewild", owner: "svc.example.com", records: []string{locked, `0 issuewild "letsencrypt.org"`}, want: "add " + wildLine + ", then remove that record"},
		{name: "wildcards alone", owner: "svc.example.com", records: []string{`0 issuewild ";"`}, want: "add " + line + " and " + wildLine},
		{name: "another CA's", owner: "svc.example.com", records: []string{`0 issue "other.example"`}, want: "add " + line},
		{name: "for nobody", owner: "svc.example.com", records: []string{`0 issue ";"`}, want: "add " + line},
		{name: "critical", owner: "svc.example.com", records: []string{`128 foo "x"`}, want: "add " + line + ", then remove that record"},
		{name: "CNAME", cname: "t.cdn.example", want: "svc.example.com is a CNAME, and no CAA can stand beside one: add " +
			strings.Replace(line, "svc.example.com", "t.cdn.example", 1) + " at its target, or put address records in place of the CNAME"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q := Question{Domain: "svc.example.com", Issuer: us, Method: "dns-01", Account: acct}
			s := set(t, tt.records...)
			s.Owner, s.CNAME = tt.owner, tt.cname
			r := Evaluate(q, s)
			if got := q.Advice(s, r); got != tt.want {
				t.Fatalf("advice %q, want %q", got, tt.want)
			}
			if tt.cname != "" {
				return
			}
			found := r.Fault.Record
			if r.Allowed {
				found = r.Gap.Record
			}
			after := Set{Owner: q.Domain}
			for _, rr := range s.Records {
				removed := strings.Contains(tt.want, "remove") && Text(s.Owner, rr) == found
				if s.Owner == q.Domain && !removed {
					after.Records = append(after.Records, rr)
				}
			}
			for _, l := range q.Missing(s) {
				after.Records = append(after.Records, record(t, l))
			}
			for _, q.Wildcard = range []bool{false, true} {
				if r := Evaluate(q, after); !r.Allowed {
					t.Errorf("wildcard %v: still forbidden: %v", q.Wildcard, r.Fault)
				}
			}
			if then := Evaluate(q, after); r.Allowed && then.Lock != Locked {
				t.Errorf("%s by %v after %q", then.Lock, then.Gap, tt.want)
			}
		})
	}
}

func TestRecord(t *testing.T) {
	q := Question{Domain: "svc.example.com", Issuer: us, Method: "dns-01", Account: acct}
	want := `svc.example.com. CAA 0 issue "letsencrypt.org;validationmethods=dns-01;accounturi=https://acme-v02.api.letsencrypt.org/acme/acct/1"`
	if got := q.Record(); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if lines := q.Missing(Set{}); !slices.Equal(lines, []string{want}) {
		t.Errorf("missing: %q", lines)
	}
}

// A record is shown so that it could be pasted, whatever octets it has.
func TestText(t *testing.T) {
	for _, value := range []string{`a\"b`, `a\\b`, `a\009b`, `\195\164`, `a b; c=d`, `\010x`} {
		line := `example.com. CAA 128 issue "` + value + `"`
		rr := record(t, line)
		if got := Text("example.com", rr); got != line {
			t.Errorf("got %s, want %s", got, line)
		}
	}
}

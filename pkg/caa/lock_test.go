package caa

import (
	"slices"
	"strings"
	"testing"
)

const locked = `0 issue "letsencrypt.org;validationmethods=dns-01;accounturi=` + acct + `"`

// told is a Finding by a part of its record and of what is said of it.
type told struct{ record, why string }

func match(findings []Finding, want []told) bool {
	return slices.EqualFunc(findings, want, func(f Finding, w told) bool {
		return strings.Contains(f.Record, w.record) && strings.Contains(f.Why, w.why)
	})
}

func TestLock(t *testing.T) {
	pinned := strings.Replace(locked, ";validationmethods=dns-01", "", 1)
	wild := func(record string) string { return strings.Replace(record, "issue", "issuewild", 1) }
	const base = "the name itself"
	tests := []struct {
		name    string
		records []string
		account string // acct unless said
		others  []string
		lock    Lock
		gaps    []told
		notes   []told
	}{
		{name: "no CAA", lock: Absent},
		{name: "nothing of issuance", records: []string{`0 iodef "mailto:a@b"`, `0 issuemail "x"`}, lock: Absent},
		{name: "locked", records: []string{locked}, lock: Locked},
		{name: "locked without a method", records: []string{pinned}, lock: Locked, notes: []told{{acct, "every method"}}},
		{name: "locked by the older URI", records: []string{strings.Replace(locked, acct, "https://acme-v01.api.letsencrypt.org/acme/reg/1", 1)}, lock: Locked},
		{name: "locked, wildcards too", records: []string{locked, wild(locked)}, lock: Locked},
		{name: "locked, wildcards for nobody", records: []string{locked, `0 issuewild ";"`}, lock: Locked},
		{name: "locked by another name of the CA", records: []string{strings.Replace(locked, us, "also.example", 1)}, lock: Locked},
		{name: "nobody at all", records: []string{`0 issue ";"`}, lock: Locked},
		{name: "a malformed sibling", records: []string{locked, `0 issue "letsencrypt.org;flag"`}, lock: Locked, notes: []told{{"flag", "malformed"}}},
		{name: "a sibling for no account", records: []string{locked, `0 issue "letsencrypt.org;accounturi="`}, lock: Locked, notes: []told{{`uri="`, "no account"}}},
		{name: "a sibling for another method", records: []string{locked, strings.Replace(locked, "dns-01", "http-01", 1)}, lock: Locked, notes: []told{{"http-01", "by dns-01"}}},
		{name: "a sibling with malformed methods", records: []string{locked, strings.Replace(locked, "dns-01", "d_ns,dns-01", 1)}, lock: Locked, notes: []told{{"d_ns", "malformed"}}},
		{name: "methods twice", records: []string{pinned[:len(pinned)-1] + `;validationmethods=dns-01;validationmethods=dns-01"`}, lock: Locked, notes: []told{{acct, "no method"}}},

		{name: "unpinned", records: []string{`0 issue "letsencrypt.org"`}, lock: Open, gaps: []told{{`"letsencrypt.org"`, "every account"}}},
		{name: "unpinned by another name of the CA", records: []string{`0 issue "also.example"`}, lock: Open, gaps: []told{{`"also.example"`, "every account at also.example"}}},
		{name: "unpinned sibling", records: []string{locked, `0 issue "letsencrypt.org;validationmethods=dns-01"`}, lock: Open, gaps: []told{{`methods=dns-01"`, "every account"}}},
		{name: "unpinned issuewild", records: []string{locked, `0 issuewild "letsencrypt.org"`}, lock: Open, gaps: []told{{"issuewild", "every account"}}},
		{name: "second CA", records: []string{locked, `0 issue "other.example"`}, lock: Open, gaps: []told{{"other.example", "another CA"}}},
		{name: "second CA, pinned there", records: []string{locked, `0 issue "other.example;accounturi=` + acct + `"`}, lock: Open, gaps: []told{{"other.example", "another CA"}}},
		{name: "second CA for wildcards", records: []string{locked, `0 issuewild "other.example"`}, lock: Open, gaps: []told{{"issuewild", "another CA"}}},
		{name: "the CA in other letters", records: []string{locked, `0 issue "LetsEncrypt.org"`}, lock: Open, gaps: []told{{"LetsEncrypt", "to the letter"}}},
		{name: "wrong account", records: []string{locked, `0 issue "letsencrypt.org;accounturi=` + other + `"`}, lock: Open, gaps: []told{{other, "another account"}}},
		{name: "another account of ours", records: []string{locked, `0 issue "letsencrypt.org;accounturi=` + other + `"`}, others: []string{other}, lock: Locked},
		{name: "another account of ours alone", records: []string{`0 issue "letsencrypt.org;accounturi=` + other + `"`}, others: []string{other}, lock: Locked},
		{name: "another account of ours at another CA", records: []string{locked, `0 issue "other.example;accounturi=` + other + `"`}, others: []string{other}, lock: Open, gaps: []told{{"other.example", "another CA"}}},
		{name: "mixed-case parameter", records: []string{strings.Replace(locked, "accounturi", "accountURI", 1)}, lock: Open, gaps: []told{{"accountURI", "CAs ignore accountURI"}}},
		{name: "mixed-case methods", records: []string{strings.Replace(locked, "validationmethods", "validationMethods", 1)}, lock: Locked, notes: []told{{"validationMethods", "CAs ignore validationMethods"}}},
		{name: "wildcards alone", records: []string{wild(locked)}, lock: Open, gaps: []told{{"issuewild", base}}},
		{name: "wildcards for nobody alone", records: []string{`0 issuewild ";"`}, lock: Open, gaps: []told{{"issuewild", base}}},
		{name: "wildcards alone and unpinned", records: []string{`0 issuewild "letsencrypt.org"`}, lock: Open, gaps: []told{{"issuewild", "every account"}, {"issuewild", base}}},
		{
			name: "everything at once", lock: Open,
			records: []string{
				`0 issue "letsencrypt.org"`, `0 issue "other.example"`, `0 issue "letsencrypt.org;accounturi=` + other + `"`,
				strings.Replace(locked, "accounturi", "AccountURI", 1), `0 issuewild "letsencrypt.org"`, `0 issuewild "third.example"`,
				strings.Replace(locked, "dns-01", "http-01", 1), `0 issue "letsencrypt.org;flag"`, pinned, locked, `0 issue ";"`, `128 foo "x"`,
			},
			gaps: []told{
				{`issue "letsencrypt.org"`, "every account"},
				{"other.example", "another CA"},
				{other, "another account"},
				{"AccountURI", "CAs ignore"},
				{"issuewild", "every account"},
				{"third.example", "another CA"},
			},
			notes: []told{{"http-01", "by dns-01"}, {"flag", "malformed"}, {acct, "every method"}},
		},

		{name: "account unknown, locked", records: []string{locked}, account: "-", lock: Locked, notes: []told{{acct, "cannot be checked"}}},
		{name: "account unknown, locked without a method", records: []string{pinned}, account: "-", lock: Locked, notes: []told{{acct, "cannot be checked"}, {acct, "every method"}}},
		{name: "account unknown, unpinned", records: []string{`0 issue "letsencrypt.org"`}, account: "-", lock: Open, gaps: []told{{"letsencrypt.org", "every account"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, wildcard := range []bool{false, true} {
				q := Question{Domain: "www.example.com", Wildcard: wildcard, Issuer: us, Also: []string{"also.example"}, Method: "dns-01", Account: acct, Others: tt.others}
				if tt.account != "" {
					q.Account = ""
				}
				r := Evaluate(q, set(t, tt.records...))
				if r.Lock != tt.lock || !match(r.Gaps, tt.gaps) || !match(r.Notes, tt.notes) {
					t.Errorf("%s, gaps %q, notes %q", r.Lock, r.Gaps, r.Notes)
				}
			}
		})
	}
}

// A method that the account is to use later has to be allowed as well.
func TestMoreMethods(t *testing.T) {
	q := Question{Domain: "svc.example.com", Issuer: us, Method: "dns-01", Methods: []string{"dns-01", "dns-persist-01"}, Account: acct}
	want := `svc.example.com. CAA 0 issue "letsencrypt.org;validationmethods=dns-01,dns-persist-01;accounturi=` + acct + `"`
	s := set(t, locked)
	s.Owner = q.Domain
	if got := q.Missing(s, false); !slices.Equal(got, []string{want}) {
		t.Errorf("missing %q", got)
	}
	if r := Evaluate(q, s); !r.Allowed || r.Lock != Locked || !match(r.Notes, []told{{acct, "by dns-persist-01"}}) {
		t.Errorf("got %+v", r)
	}
	s.Records = append(s.Records, record(t, want))
	if got := q.Missing(s, false); got != nil {
		t.Errorf("missing %q", got)
	}
	for _, q.Method = range []string{"dns-01", "dns-persist-01"} {
		if r := Evaluate(q, Set{Owner: q.Domain, Records: s.Records[1:]}); !r.Allowed || len(r.Notes) > 0 {
			t.Errorf("%s: %+v", q.Method, r)
		}
	}
}

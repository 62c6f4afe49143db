package caa

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// What is advised is done, and then the domain is locked and the CA issues.
func TestAdvice(t *testing.T) {
	const line = `svc.example.com. CAA 0 issue "letsencrypt.org;validationmethods=dns-01;accounturi=` + acct + `"`
	wildLine := strings.Replace(line, "issue", "issuewild", 1)
	tests := []struct {
		name    string
		owner   string
		records []string
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
		{
			name: "several", owner: "svc.example.com", records: []string{locked, `0 issue "letsencrypt.org"`, `0 issue "other.example"`},
			want: `remove svc.example.com. CAA 0 issue "letsencrypt.org" and svc.example.com. CAA 0 issue "other.example"`,
		},
		{
			name: "several critical", owner: "svc.example.com", records: []string{locked, `128 foo "x"`, `1 bar "y"`},
			want: `remove svc.example.com. CAA 128 foo "x" and svc.example.com. CAA 1 bar "y"`,
		},
		{name: "another CA's, which may be on purpose", owner: "svc.example.com", records: []string{`0 issue "other.example"`, `128 foo "x"`}, want: "add " + line + ", then remove that record"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q := Question{Domain: "svc.example.com", Issuer: us, Method: "dns-01", Account: acct}
			s := set(t, tt.records...)
			s.Owner = tt.owner
			if got := q.Advice(s, Evaluate(q, s)); got != tt.want {
				t.Errorf("advice %q, want %q", got, tt.want)
			}
		})
	}
}

// Where the domain is a CNAME the pair that cannot be is never advised.
func TestAdviceCNAME(t *testing.T) {
	const target = "t.cdn.example"
	at := target + ". CAA " + locked
	tests := []struct {
		name    string
		owner   string   // of the records: the domain, where the target has them
		records []string // at the target, or above the domain
		says    []string
		not     string
	}{
		{name: "nothing anywhere", says: []string{"if t.cdn.example is yours, add " + at + ";", "as long as t.cdn.example has no CAA, the names above svc.example.com"}},
		{name: "open above", owner: "example.com", records: []string{`0 issue "letsencrypt.org"`}, says: []string{"add " + at, "as long as"}, not: "remove"},
		{name: "forbidden at the target", owner: "svc.example.com", records: []string{`0 issue "other.example"`}, says: []string{"add " + at}, not: "as long as"},
		{name: "open at the target", owner: "svc.example.com", records: []string{`0 issue "letsencrypt.org"`}, says: []string{"add " + at + ", then remove that record"}, not: "as long as"},
		{name: "wildcards at the target", owner: "svc.example.com", records: []string{`0 issuewild ";"`}, says: []string{"add " + at + " and " + strings.Replace(at, "issue", "issuewild", 1)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q := Question{Domain: "svc.example.com", Issuer: us, Method: "dns-01", Account: acct}
			s := set(t, tt.records...)
			s.Owner, s.CNAME = tt.owner, target
			if tt.owner == q.Domain {
				s.Target = target
			}
			got := q.Advice(s, Evaluate(q, s))
			for _, w := range append(tt.says, "svc.example.com is a CNAME", "ALIAS, ANAME or flattening", "address records") {
				if !strings.Contains(got, w) {
					t.Errorf("no %q in %q", w, got)
				}
			}
			if strings.Contains(got, q.Domain+". CAA") || tt.not != "" && strings.Contains(got, tt.not) {
				t.Errorf("advice %q", got)
			}
			if lines := slices.Concat(q.Records(s, true), q.Missing(s, true), q.Surplus(s)); lines != nil {
				t.Errorf("beside the CNAME: %q", lines)
			}
		})
	}
}

// A lock at a CNAME's target is as good as one at the name.
func TestLockedAtTarget(t *testing.T) {
	q := Question{Domain: "svc.example.com", Issuer: us, Method: "dns-01", Account: acct}
	s := set(t, locked)
	s.Owner, s.Target, s.CNAME = q.Domain, "t.cdn.example", "t.cdn.example"
	if r := Evaluate(q, s); !r.Allowed || r.Lock != Locked {
		t.Errorf("got %+v", r)
	}
}

// Whatever there is: with what is printed added and what is named removed, the account may issue for the
// name and its wildcard, and nobody else. What is printed is enough for the account but for critical
// records.
func TestRecordsLock(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	pick := func(choices ...string) string { return choices[random.IntN(len(choices))] }
	for range 2000 {
		q := Question{
			Domain: "svc.example.com", Issuer: us, Also: []string{"also.example"}, Method: "dns-01", Account: acct,
			Methods: [][]string{nil, {"dns-persist-01"}}[random.IntN(2)],
		}
		s := Set{Owner: pick(q.Domain, q.Domain, q.Domain, "example.com")}
		for range random.IntN(5) {
			value := pick("", ";", us, us, us, "also.example", "other.example", "LetsEncrypt.org", us+";flag")
			for range random.IntN(3) {
				value += pick("", ";accounturi="+acct, ";accounturi="+acct, ";accounturi="+other, ";accountURI="+acct, ";accounturi=",
					";validationmethods=dns-01", ";validationmethods=dns-01,dns-persist-01", ";validationmethods=http-01", ";x=y", ";")
			}
			s.Records = append(s.Records, record(t, fmt.Sprintf("%s CAA %s %s %q", s.Owner, pick("0", "0", "0", "128", "1"), pick("issue", "issue", "issue", "issuewild", "issuewild", "iodef", "foo"), value)))
		}
		wild := random.IntN(2) == 0
		surplus := q.Surplus(s)
		for _, printed := range [][]string{q.Records(s, wild), q.Missing(s, wild)} {
			added := Set{Owner: q.Domain, Records: slices.Clone(s.own(q.Domain))}
			for _, line := range printed {
				added.Records = append(added.Records, record(t, line))
			}
			mended := Set{Owner: q.Domain}
			for _, rr := range added.Records {
				if !slices.Contains(surplus, Text(q.Domain, rr)) {
					mended.Records = append(mended.Records, rr)
				}
			}
			for _, q.Wildcard = range []bool{false, true} {
				if r := Evaluate(q, mended); !r.Allowed || r.Lock != Locked {
					t.Fatalf("%v with %q without %q, wildcard %v: %+v", s.Records, printed, surplus, q.Wildcard, r)
				}
				if r := Evaluate(q, added); !r.Allowed && !slices.ContainsFunc(added.Records, criticalUnknown) {
					t.Fatalf("%v with %q, wildcard %v: %v", s.Records, printed, q.Wildcard, r.Fault)
				}
			}
			// What has to go for the lock's sake is what is named as a gap, and no more.
			r := Evaluate(q, added)
			for _, line := range surplus {
				named := slices.ContainsFunc(r.Gaps, func(f Finding) bool { return f.Record == line })
				if critical := criticalUnknown(record(t, line)); !named && !critical {
					t.Fatalf("%v with %q: %q has to go and is not among %v", s.Records, printed, line, r.Gaps)
				}
			}
			for _, gap := range r.Gaps {
				if !slices.Contains(surplus, gap.Record) {
					t.Fatalf("%v with %q: open by %v, which may stay", s.Records, printed, gap)
				}
			}
		}
	}
}

// Without an account there is nothing to lock to.
func TestRecordsWithoutAccount(t *testing.T) {
	q := Question{Domain: "svc.example.com", Issuer: us, Method: "dns-01"}
	s := set(t, `0 issue "letsencrypt.org"`)
	s.Owner = q.Domain
	if lines := slices.Concat(q.Records(s, true), q.Missing(s, true)); lines != nil {
		t.Errorf("printed: %q", lines)
	}
	if got := q.Advice(s, Evaluate(q, s)); got != "" {
		t.Errorf("advice %q leaves every CA free", got)
	}
}

func TestRecord(t *testing.T) {
	q := Question{Domain: "svc.example.com", Issuer: us, Method: "dns-01", Account: acct}
	want := `svc.example.com. CAA 0 issue "letsencrypt.org;validationmethods=dns-01;accounturi=https://acme-v02.api.letsencrypt.org/acme/acct/1"`
	if got := q.Record(); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	wild := strings.Replace(want, "issue", "issuewild", 1)
	above := set(t, `0 issue "letsencrypt.org"`, `0 issuewild ";"`)
	own := set(t, locked)
	own.Owner = q.Domain
	for _, tt := range []struct {
		about            string
		set              Set
		wild             bool
		records, missing []string
	}{
		{"nothing", Set{}, false, []string{want}, []string{want}},
		{"nothing, issuewild asked for", Set{}, true, []string{want, wild}, []string{want, wild}},
		{"issuewild above", above, false, []string{want, wild}, []string{want, wild}},
		{"there", own, false, []string{want}, nil},
		{"there, issuewild asked for", own, true, []string{want, wild}, []string{wild}},
	} {
		records, missing := q.Records(tt.set, tt.wild), q.Missing(tt.set, tt.wild)
		if !slices.Equal(records, tt.records) || !slices.Equal(missing, tt.missing) {
			t.Errorf("%s: records %q, missing %q", tt.about, records, missing)
		}
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

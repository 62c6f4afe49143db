package caa

import (
	"strings"
	"testing"

	"github.com/miekg/dns"
)

const (
	us    = "letsencrypt.org"
	acct  = "https://acme-v02.api.letsencrypt.org/acme/acct/1"
	other = "https://acme-v02.api.letsencrypt.org/acme/acct/12"
)

// set makes a set at example.com of records such as `0 issue "ca.example"`.
func set(t *testing.T, records ...string) Set {
	t.Helper()
	s := Set{Owner: "example.com", Proven: true}
	for _, text := range records {
		s.Records = append(s.Records, record(t, "example.com CAA "+text))
	}
	return s
}

// record parses a record and takes it through the wire form, as a resolver does.
func record(t *testing.T, text string) *dns.CAA {
	t.Helper()
	rr, err := dns.NewRR(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	buf := make([]byte, dns.MaxMsgSize)
	end, err := dns.PackRR(rr, buf, 0, nil, false)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	rr, _, err = dns.UnpackRR(buf[:end], 0)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return rr.(*dns.CAA)
}

// The rows of the table of Boulder's rules that are about one set. Those about the way to it are tested with
// the look-up.
func TestBouldersVerdict(t *testing.T) {
	issue := func(value string) string { return `0 issue "` + value + `"` }
	const (
		issueUs    = `0 issue "letsencrypt.org"`
		issueOther = `0 issue "other.example"`
		wildUs     = `0 issuewild "letsencrypt.org"`
		wildOther  = `0 issuewild "other.example"`
	)
	tests := []struct {
		name    string
		records []string
		wild    bool
		method  string // dns-01 unless said
		fault   string // what the record to blame has in it; "" allows
	}{
		{name: "no CAA"},

		{name: "property tag in capitals", records: []string{`0 ISSUE "other.example"`}, fault: "ISSUE"},
		{name: "unknown tag, flags 0", records: []string{issueUs, `0 foo "x"`}},
		{name: "unknown tag, flags 2", records: []string{issueUs, `2 foo "x"`}},
		{name: "unknown tag, flags 64", records: []string{issueUs, `64 foo "x"`}},
		{name: "unknown tag, critical", records: []string{issueUs, `128 foo "x"`}, fault: "foo"},
		{name: "unknown tag, the bit that is mistaken for critical", records: []string{issueUs, `1 foo "x"`}, fault: "1 foo"},
		{name: "contactemail, critical", records: []string{`128 contactemail "a@b"`}, fault: "contactemail"},
		{name: "issue, critical", records: []string{`128 issue "letsencrypt.org"`}},
		{name: "iodef, critical", records: []string{issueUs, `128 iodef "mailto:a@b"`}},
		{name: "issuemail, critical", records: []string{issueUs, `128 issuemail "x"`}},
		{name: "issuevmc, critical", records: []string{issueUs, `128 issuevmc "x"`}},
		{name: "iodef alone", records: []string{`0 iodef "mailto:a@b"`}},

		{name: "name, issuewild of another CA alone", records: []string{wildOther}},
		{name: "name, issuewild of ours beside issue of another", records: []string{wildUs, issueOther}, fault: "issue \"other.example"},
		{name: "wildcard, issue of ours alone", records: []string{issueUs}, wild: true},
		{name: "wildcard, issuewild of ours beside issue of another", records: []string{wildUs, issueOther}, wild: true},
		{name: "wildcard, issue of another alone", records: []string{issueOther}, wild: true, fault: "other.example"},
		{name: "wildcard, issuewild of another beside issue of ours", records: []string{wildOther, issueUs}, wild: true, fault: "issuewild"},
		{name: "wildcard, issuewild of nobody beside issue of ours", records: []string{`0 issuewild ";"`, issueUs}, wild: true, fault: "issuewild"},
		{name: "nobody and ours", records: []string{`0 issue ";"`, issueUs}},
		{name: "another and ours", records: []string{issueOther, issueUs}},
		{name: "nobody", records: []string{`0 issue ";"`}, fault: `issue ";"`},
		{name: "empty", records: []string{`0 issue ""`}, fault: `issue ""`},

		{name: "issuer with spaces around", records: []string{issue("  letsencrypt.org  ")}},
		{name: "issuer with tabs around", records: []string{issue(`\009letsencrypt.org\009`)}},
		{name: "issuer in other letters", records: []string{issue("LetsEncrypt.org")}, fault: "LetsEncrypt.org"},
		{name: "issuer with a dot at its end", records: []string{issue("letsencrypt.org.")}, fault: "letsencrypt.org."},
		{name: "name below the issuer", records: []string{issue("www.letsencrypt.org")}, fault: "www."},

		{name: "semicolon at the end", records: []string{issue("letsencrypt.org;")}},
		{name: "semicolon and spaces at the end", records: []string{issue("letsencrypt.org;  ")}},
		{name: "two semicolons at the end", records: []string{issue("letsencrypt.org;;")}, fault: ";;"},
		{name: "semicolon behind a parameter", records: []string{issue("letsencrypt.org;x=y;")}, fault: "x=y;"},
		{name: "unknown parameter", records: []string{issue("letsencrypt.org;foo=bar")}},
		{name: "unknown parameter, empty", records: []string{issue("letsencrypt.org;foo=")}},
		{name: "parameter without value", records: []string{issue("letsencrypt.org;flag")}, fault: "flag"},
		{name: "white space in a value", records: []string{issue("letsencrypt.org;foo=a b")}, fault: "a b"},
		{name: "parameters parted by a space", records: []string{issue("letsencrypt.org;validationmethods=dns-01 accounturi=" + acct)}, fault: "dns-01 accounturi"},
		{name: "character beyond ASCII in a value", records: []string{issue(`letsencrypt.org;foo=\195\164`)}, fault: `\195\164`},
		{name: "hyphen in a parameter's tag", records: []string{issue("letsencrypt.org;foo-bar=1")}},
		{name: "hyphen at its end", records: []string{issue("letsencrypt.org;foo-=1")}, fault: "foo-"},
		{name: "underscore in it", records: []string{issue("letsencrypt.org;foo_bar=1")}, fault: "foo_bar"},
		{name: "no tag", records: []string{issue("letsencrypt.org;=1")}, fault: ";=1"},
		{name: "a bad record beside a good one", records: []string{issue("letsencrypt.org;flag"), issueUs}},

		{name: "account", records: []string{issue("letsencrypt.org;accounturi=" + acct)}},
		{name: "account, spaces around", records: []string{issue("letsencrypt.org; accounturi = " + acct + " ")}},
		{name: "account by its older URI", records: []string{issue("letsencrypt.org;accounturi=https://acme-v01.api.letsencrypt.org/acme/reg/1")}},
		{name: "another account", records: []string{issue("letsencrypt.org;accounturi=" + other)}, fault: other},
		{name: "another account by an older URI", records: []string{issue("letsencrypt.org;accounturi=https://acme-v01.api.letsencrypt.org/acme/reg/12")}, fault: "reg/12"},
		{name: "account at staging", records: []string{issue("letsencrypt.org;accounturi=" + strings.Replace(acct, "acme-v02", "acme-staging-v02", 1))}, fault: "staging"},
		{name: "account in other letters", records: []string{issue("letsencrypt.org;accounturi=" + strings.ToUpper(acct))}, fault: "HTTPS"},
		{name: "account with a slash behind", records: []string{issue("letsencrypt.org;accounturi=" + acct + "/")}, fault: "acct/1/"},
		{name: "account empty", records: []string{issue("letsencrypt.org;accounturi=")}, fault: "accounturi="},
		{name: "account no URI", records: []string{issue("letsencrypt.org;accounturi=ht%tp://x")}, fault: "ht%tp"},
		{name: "account twice", records: []string{issue("letsencrypt.org;accounturi=" + acct + ";accounturi=" + acct)}, fault: "accounturi"},
		{name: "another account by a tag in other letters", records: []string{issue("letsencrypt.org;AccountURI=" + other)}},

		{name: "method", records: []string{issue("letsencrypt.org;validationmethods=dns-01")}},
		{name: "another method", records: []string{issue("letsencrypt.org;validationmethods=http-01")}, fault: "http-01"},
		{name: "method in a list", records: []string{issue("letsencrypt.org;validationmethods=foo-99,dns-01")}},
		{name: "method before an empty item", records: []string{issue("letsencrypt.org;validationmethods=dns-01,")}},
		{name: "method before a malformed item", records: []string{issue("letsencrypt.org;validationmethods=dns-01,b@d")}},
		{name: "method behind a space", records: []string{issue("letsencrypt.org;validationmethods=http-01, dns-01")}, fault: "http-01, dns-01"},
		{name: "method in capitals", records: []string{issue("letsencrypt.org;validationmethods=DNS-01")}, fault: "DNS-01"},
		{name: "no method", records: []string{issue("letsencrypt.org;validationmethods=")}, fault: "validationmethods="},
		{name: "method behind a malformed item", records: []string{issue("letsencrypt.org;validationmethods=d_ns,dns-01")}, fault: "d_ns"},
		{name: "method behind an empty item", records: []string{issue("letsencrypt.org;validationmethods=http-01,,dns-01")}, fault: ",,"},
		{name: "methods twice", records: []string{issue("letsencrypt.org;validationmethods=dns-01;validationmethods=dns-01")}, fault: "validationmethods"},
		{name: "another method by a tag in other letters", records: []string{issue("letsencrypt.org;ValidationMethods=http-01")}},
		{name: "dns-persist-01", records: []string{issue("letsencrypt.org;validationmethods=dns-persist-01")}, method: "dns-persist-01"},
		{name: "dns-01 does not permit dns-persist-01", records: []string{issue("letsencrypt.org;validationmethods=dns-01")}, method: "dns-persist-01", fault: "dns-01"},
		{name: "one record a method", records: []string{issue("letsencrypt.org;validationmethods=http-01"), issue("letsencrypt.org;validationmethods=dns-01")}},
		{name: "account and method", records: []string{issue("letsencrypt.org;validationmethods=dns-01;accounturi=" + acct)}},
		{name: "account and another method", records: []string{issue("letsencrypt.org;accounturi=" + acct + ";validationmethods=http-01")}, fault: "http-01"},
		{name: "account in one, method in another", records: []string{issue("letsencrypt.org;accounturi=" + acct + ";validationmethods=http-01"), issue("letsencrypt.org;accounturi=" + other + ";validationmethods=dns-01")}, fault: other},

		{name: "the nearest is to blame", records: []string{issueOther, issue("letsencrypt.org;flag"), issue("letsencrypt.org;accounturi=" + other), `0 issue ";"`}, fault: other},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q := Question{Domain: "www.example.com", Wildcard: tt.wild, Issuer: us, Method: "dns-01", Account: acct}
			if tt.method != "" {
				q.Method = tt.method
			}
			s := Set{Proven: true}
			if tt.records != nil {
				s = set(t, tt.records...)
			}
			r := Evaluate(q, s)
			if r.Allowed != (tt.fault == "") {
				t.Fatalf("allowed: %v, fault %q", r.Allowed, r.Fault)
			}
			if !strings.Contains(r.Fault.Record, tt.fault) || (r.Fault.Why == "") != r.Allowed {
				t.Errorf("the fault is %q, want the record with %q", r.Fault, tt.fault)
			}
		})
	}
}

// Where the account is not known, its name in a record is no reason to refuse.
func TestUnknownAccount(t *testing.T) {
	q := Question{Domain: "www.example.com", Issuer: us, Method: "dns-01"}
	for value, allowed := range map[string]bool{
		"letsencrypt.org;accounturi=" + acct:                                true,
		"letsencrypt.org;accounturi=":                                       false,
		"letsencrypt.org;accounturi=x;accounturi=x":                         false,
		"letsencrypt.org;accounturi=" + acct + ";validationmethods=http-01": false,
	} {
		if r := Evaluate(q, set(t, `0 issue "`+value+`"`)); r.Allowed != allowed {
			t.Errorf("%s: allowed %v, %v", value, r.Allowed, r.Fault)
		}
	}
}

package persist

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

func TestValue(t *testing.T) {
	hash := HashedAccount("https://ca.example/", domain, strings.Repeat("t", 43), acct)
	until := time.Date(2030, 1, 1, 0, 0, 0, 999, time.FixedZone("", 3600))
	for _, tt := range []struct {
		r    Record
		want string // or what the error says, after "!"
	}{
		{Record{Issuer: issuer, Account: acct, Draft: Draft01}, good},
		{Record{Issuer: issuer, Account: acct, Draft: Draft01, Wildcard: true, Until: until}, good + "; policy=wildcard; persistUntil=1893452400"},
		{Record{Issuer: issuer, Account: acct, Draft: Draft01, Until: until}, good + "; persistUntil=1893452400"},
		{Record{Issuer: issuer, Account: hash, Draft: Draft02, Wildcard: true}, issuer + "; accounturi=" + hash + "; policy=wildcard"},
		{Record{Issuer: issuer, Account: "https://ca.test/a?b=c#d%20", Draft: Draft01}, issuer + "; accounturi=https://ca.test/a?b=c#d%20"},

		{Record{Account: acct, Draft: Draft01}, "!is empty"},
		{Record{Issuer: "LetsEncrypt.org", Account: acct, Draft: Draft01}, "!written as \"letsencrypt.org\""},
		{Record{Issuer: "letsencrypt.org.", Account: acct, Draft: Draft01}, "!written as"},
		{Record{Issuer: "lets_encrypt.org", Account: acct, Draft: Draft01}, "!underscore"},
		{Record{Issuer: issuer, Account: acct}, "!no draft"},
		{Record{Issuer: issuer, Account: acct, Draft: "03"}, "!no draft"},
		{Record{Issuer: issuer, Draft: Draft01}, "!missing"},
		{Record{Issuer: issuer, Account: "acct/1", Draft: Draft01}, "!no scheme"},
		{Record{Issuer: issuer, Account: "https:1", Draft: Draft01}, "!no host"},
		{Record{Issuer: issuer, Account: acct + ";policy=wildcard", Draft: Draft01}, "!cannot hold"},
		{Record{Issuer: issuer, Account: acct + " ", Draft: Draft01}, "!cannot hold"},
		{Record{Issuer: issuer, Account: acct + "\x7f", Draft: Draft01}, "!cannot hold"},
		{Record{Issuer: issuer, Account: acct + "é", Draft: Draft01}, "!cannot hold"},
		{Record{Issuer: issuer, Account: acct + "%zz", Draft: Draft01}, "!not an account's URI"},
		// What a CA that compares the presentation form would see with a backslash before it.
		{Record{Issuer: issuer, Account: acct + `"`, Draft: Draft01}, "!cannot hold"},
		{Record{Issuer: issuer, Account: acct + `\`, Draft: Draft01}, "!cannot hold"},
		{Record{Issuer: issuer, Account: "https://ca.test/" + strings.Repeat("a", maxAccount), Draft: Draft01}, "!octets"},
		{Record{Issuer: issuer, Account: acct, Draft: Draft02}, "!not the hash"},
		{Record{Issuer: issuer, Account: "urn:example:1", Draft: Draft01}, issuer + "; accounturi=urn:example:1"},
		{Record{Issuer: issuer, Account: acct, Draft: Draft01, Until: time.Unix(0, 0)}, "!1970"},
		{Record{Issuer: issuer, Account: acct, Draft: Draft01, Until: time.Unix(-5, 0)}, "!1970"},
		{Record{Issuer: issuer, Account: acct, Draft: Draft01, Until: latest.Add(time.Second)}, "!9999"},
	} {
		got, err := tt.r.Value()
		wrong, fails := strings.CutPrefix(tt.want, "!")
		switch {
		case fails && (err == nil || !strings.Contains(err.Error(), wrong)):
			t.Errorf("%+v: %q, %v, want an error with %q", tt.r, got, err, wrong)
		case !fails && (err != nil || got != tt.want):
			t.Errorf("%+v: %q, %v, want %q", tt.r, got, err, tt.want)
		}
	}
}

func TestLine(t *testing.T) {
	r := Record{Issuer: issuer, Account: acct, Draft: Draft01}
	wild := r
	wild.Wildcard = true
	for _, tt := range []struct {
		r            Record
		domain, want string
	}{
		{r, domain, owner + `. TXT "` + good + `"`},
		{r, "SVC.example.com.", owner + `. TXT "` + good + `"`},
		{r, "bücher.example", `_validation-persist.xn--bcher-kva.example. TXT "` + good + `"`},
		{wild, "*." + domain, owner + `. TXT "` + good + `; policy=wildcard"`},
		{wild, domain, owner + `. TXT "` + good + `; policy=wildcard"`},
		{r, "*." + domain, "!does not cover"},
		{r, "a_b.example", "!underscore"},
		{r, "192.0.2.1", "!IP address"},
		{r, strings.Repeat("a.", 120) + "com", "!octets"},
		{Record{}, domain, "!empty"},
	} {
		got, err := tt.r.Line(tt.domain)
		wrong, fails := strings.CutPrefix(tt.want, "!")
		switch {
		case fails && (err == nil || !strings.Contains(err.Error(), wrong)):
			t.Errorf("%s: %q, %v, want an error with %q", tt.domain, got, err, wrong)
		case !fails && (err != nil || got != tt.want):
			t.Errorf("%s: %q, %v, want %q", tt.domain, got, err, tt.want)
		}
	}
}

// A zone file's reader finds in the line what was to be written, in strings that fit.
func TestLineIsRead(t *testing.T) {
	for _, n := range []int{1, 200, 210, 255, 256, 1000, maxAccount - len("https://ca.test/")} {
		r := Record{Issuer: issuer, Account: "https://ca.test/" + strings.Repeat("a", n), Draft: Draft01}
		value, err := r.Value()
		if err != nil {
			t.Fatal(err)
		}
		line, err := r.Line(domain)
		if err != nil {
			t.Fatal(err)
		}
		rr, err := dns.NewRR(line)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if _, err := dns.PackRR(rr, make([]byte, dns.MaxMsgSize), 0, nil, false); err != nil {
			t.Errorf("%q: %v", line, err)
		}
		if got := strings.Join(rr.(*dns.TXT).Txt, ""); got != value {
			t.Errorf("%d octets: got %q, want %q", n, got, value)
		}
	}
}

func TestOwner(t *testing.T) {
	for _, d := range []string{domain, "*." + domain} {
		if got := Owner(d); got != owner {
			t.Errorf("Owner(%q) = %q", d, got)
		}
	}
}

func TestParseDraft(t *testing.T) {
	for in, want := range map[string]Draft{"01": Draft01, "1": Draft01, "-01": Draft01, "02": Draft02, "2": Draft02, "": "", "0": "", "00": "", "03": "", "010": "", "1.0": ""} {
		if got, err := ParseDraft(in); got != want || (err == nil) != (want != "") {
			t.Errorf("ParseDraft(%q) = %q, %v", in, got, err)
		}
	}
}

// What is written lets exactly the account it is written for have what it is written for.
func TestWrittenIsAccepted(t *testing.T) {
	for _, wild := range []bool{false, true} {
		for _, until := range []time.Time{{}, now, now.Add(time.Hour), latest} {
			r := Record{Issuer: issuer, Account: acct, Wildcard: wild, Until: until, Draft: Draft01}
			value, err := r.Value()
			if err != nil {
				t.Fatal(err)
			}
			for _, asked := range []bool{false, true} {
				q := question()
				q.Wildcard = asked
				v := Evaluate(q, []string{value})
				if v.OK != (wild || !asked) || v.OK && !v.Until.Equal(until) {
					t.Errorf("%s, wildcard %v: %+v", value, asked, v)
				}
				q.Account += fmt.Sprint(1)
				if v := Evaluate(q, []string{value}); v.OK {
					t.Errorf("%s is accepted for %q", value, q.Account)
				}
			}
		}
	}
}

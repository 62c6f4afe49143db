package dnsname

import (
	"strings"
	"testing"
)

func TestParseIssuer(t *testing.T) {
	label := strings.Repeat("a", MaxLabel)
	long := strings.Repeat("a.", 126) + "b" // the longest name
	for _, tt := range []struct {
		in, want string
		wrong    string // what the error says
	}{
		{in: "letsencrypt.org", want: "letsencrypt.org"},
		{in: "LetsEncrypt.ORG.", want: "letsencrypt.org"},
		{in: "pki.goog", want: "pki.goog"},
		{in: "localhost", want: "localhost"},
		{in: "a-b.1.example", want: "a-b.1.example"},
		{in: "Bücher.example", want: "xn--bcher-kva.example"},
		{in: "Bu\u0308cher.example", want: "xn--bcher-kva.example"}, // not composed
		{in: "XN--BCHER-KVA.example", want: "xn--bcher-kva.example"},
		{in: "straße.example", want: "xn--strae-oqa.example"},
		{in: "ｌetsencrypt。org", want: "letsencrypt.org"},
		{in: label + ".example", want: label + ".example"},
		{in: long, want: long},
		{in: long + ".", want: long},

		{in: "", wrong: "empty"},
		{in: ".", wrong: "empty"},
		{in: "letsencrypt.org..", wrong: "two dots"},
		{in: "letsencrypt..org", wrong: "empty label"},
		{in: ".letsencrypt.org", wrong: "empty label"},
		{in: "lets_encrypt.org", wrong: "underscore"},
		{in: "*.letsencrypt.org", wrong: "wildcard"},
		{in: "-a.example", wrong: "hyphen"},
		{in: "a-.example", wrong: "hyphen"},
		{in: "ab--cd.example", wrong: "idna"},
		{in: "xn--0.example", wrong: "idna"},
		{in: "xn--a.example", wrong: "idna"},
		{in: "a\u200d.example", wrong: "idna"},
		{in: "lets encrypt.org", wrong: "character ' '"},
		{in: "letsencrypt.org; accounturi=x", wrong: "character ';'"},
		{in: "https://letsencrypt.org", wrong: "character ':'"},
		{in: "192.0.2.1", wrong: "IP address"},
		{in: "2001:db8::1", wrong: "IP address"},
		{in: label + "a.example", wrong: "64 octets"},
		{in: "a" + long, wrong: "254 octets"},
		{in: "\xff.example", wrong: "idna"},
	} {
		got, err := ParseIssuer(tt.in)
		if tt.wrong == "" && (err != nil || got != tt.want) {
			t.Errorf("ParseIssuer(%q) = %q, %v, want %q", tt.in, got, err, tt.want)
		}
		if tt.wrong != "" && (err == nil || !strings.Contains(err.Error(), tt.wrong)) {
			t.Errorf("ParseIssuer(%q) = %q, %v, want an error with %q", tt.in, got, err, tt.wrong)
		}
	}
}

// FuzzParseIssuer holds what is accepted to be a host name in the form that CAs compare.
func FuzzParseIssuer(f *testing.F) {
	for _, s := range []string{"", "letsencrypt.org", "LETSENCRYPT.ORG.", "a..b", "a_b", "xn--bcher-kva.example", "Bu\u0308cher.example", "ｌetsencrypt。org", "ab--cd.x", "1.2.3.4", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		name, err := ParseIssuer(s)
		if err != nil {
			return
		}
		if normal, err := NormalizeIssuer(s); err != nil || normal != name {
			t.Errorf("%q is %q, and normalized %q, %v", s, name, normal, err)
		}
		if normal, err := NormalizeIssuer(name); err != nil || normal != name {
			t.Errorf("%q of %q is normalized %q, %v", name, s, normal, err)
		}
		if host, err := ParseHost(name); err != nil || host != name {
			t.Errorf("%q of %q as a host is %q, %v", name, s, host, err)
		}
	})
}

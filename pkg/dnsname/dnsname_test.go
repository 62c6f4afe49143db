package dnsname

import (
	"slices"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	long := strings.Repeat("a", 63)
	tests := []struct {
		in, want, err string
	}{
		{in: "svc.example.com", want: "svc.example.com"},
		{in: "SVC.Example.COM.", want: "svc.example.com"},
		{in: "_acme-challenge.Example.com", want: "_acme-challenge.example.com"},
		{in: "bücher.example", want: "xn--bcher-kva.example"},
		{in: "BÜCHER.example.", want: "xn--bcher-kva.example"},
		{in: "xn--bcher-kva.example", want: "xn--bcher-kva.example"},
		{in: "com", want: "com"},
		{in: long + ".com", want: long + ".com"},
		{in: "", err: "empty"},
		{in: ".", err: "empty"},
		{in: "a..b", err: "empty label"},
		{in: "a.b..", err: "empty label"},
		{in: ".a", err: "empty label"},
		{in: "*.example.com", err: "wildcard"},
		{in: "a b.example", err: "character ' '"},
		{in: "a;b.example", err: "character ';'"},
		{in: "a\\.b.example", err: "character"},
		{in: "a" + long + ".com", err: "64 octets"},
		{in: strings.Repeat("abcdefg.", 32) + "com", err: "259 octets"},
	}
	for _, tt := range tests {
		got, err := Parse(tt.in)
		switch {
		case tt.err == "" && (err != nil || got != tt.want):
			t.Errorf("Parse(%q) = %q, %v; want %q", tt.in, got, err, tt.want)
		case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
			t.Errorf("Parse(%q) = %q, %v; want an error with %q", tt.in, got, err, tt.err)
		}
	}
}

func TestParseHost(t *testing.T) {
	for _, bad := range []string{"192.0.2.1", "2001:db8::1", "[2001:db8::1]", "_x.example", "-a.example", "a-.example", ""} {
		if got, err := ParseHost(bad); err == nil {
			t.Errorf("ParseHost(%q) = %q; want an error", bad, got)
		}
	}
	if got, err := ParseHost("Straße.Example."); err != nil || got != "xn--strae-oqa.example" {
		t.Errorf("ParseHost = %q, %v", got, err)
	}
}

// The boundary cases are those that suffix matching without labels gets wrong.
func TestWithinAndRelative(t *testing.T) {
	tests := []struct {
		name, zone, rel string
		within          bool
	}{
		{"deleg.example.net", "deleg.example.net", "@", true},
		{"a.deleg.example.net", "deleg.example.net", "a", true},
		{"notdeleg.example.net", "deleg.example.net", "", false},
		{"a.notdeleg.example.net", "deleg.example.net", "", false},
		{"notexample.com", "example.com", "", false},
		{"example.net", "deleg.example.net", "", false},
	}
	for _, tt := range tests {
		if got := Within(tt.name, tt.zone); got != tt.within {
			t.Errorf("Within(%q, %q) = %v", tt.name, tt.zone, got)
		}
		rel, ok := Relative(tt.name, tt.zone)
		if ok != tt.within || (ok && rel != tt.rel) {
			t.Errorf("Relative(%q, %q) = %q, %v", tt.name, tt.zone, rel, ok)
		}
	}
}

func TestAncestors(t *testing.T) {
	got := slices.Collect(Ancestors("a.example.com"))
	if want := []string{"a.example.com", "example.com", "com"}; !slices.Equal(got, want) {
		t.Errorf("Ancestors = %q, want %q", got, want)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"example.com", "BÜCHER.example.", "a..b", "*.x", "xn--a", "\u3002"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		name, err := Parse(s)
		if err != nil {
			return
		}
		if again, err := Parse(name); err != nil || again != name {
			t.Errorf("Parse(%q) = %q, but Parse of that = %q, %v", s, name, again, err)
		}
	})
}

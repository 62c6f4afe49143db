package boulder

import (
	"regexp"
	"strings"
	"testing"
)

// Boulder's newest releases, which need a newer Go, read the tag of a parameter as RFC 8659 has it, and so do
// we. The one that is asked here takes an empty tag and knows no hyphens. That is the whole difference between
// their rules for CAA, so that each value can be put in words which mean to one what it means to the other.

// newer rewords a value so that the Boulder that is asked reads what a newer one reads in the original.
func newer(value string) string {
	return retag(value, func(tag string) string {
		switch {
		case tag == "":
			return malformed
		case hyphened.MatchString(tag):
			return strings.ReplaceAll(tag, "-", "x") // as unknown as before
		}
		return tag
	})
}

// older rewords a value so that we read what the Boulder that is asked reads in the original.
func older(value string) string {
	return retag(value, func(tag string) string {
		switch {
		case tag == "":
			return "x"
		case hyphened.MatchString(tag):
			return malformed
		}
		return tag
	})
}

const malformed = "?" // as a tag, for either

var hyphened = regexp.MustCompile(`^[0-9A-Za-z]+(-+[0-9A-Za-z]+)+$`)

// retag gives the parameters of a value other tags and leaves everything else as it is.
func retag(value string, rename func(tag string) string) string {
	parts := strings.Split(value, ";")
	for i, p := range parts[1:] {
		tag, v, ok := strings.Cut(p, "=")
		trimmed := strings.Trim(tag, " \t")
		if renamed := rename(trimmed); ok && renamed != trimmed {
			parts[1+i] = renamed + "=" + v
		}
	}
	return strings.Join(parts, ";")
}

func TestReword(t *testing.T) {
	for _, test := range []struct{ value, newer, older string }{
		// The two that differ.
		{"a;foo-bar=1", "a;fooxbar=1", "a;?=1"},
		{"a;=1", "a;?=1", "a;x=1"},
		// Variants of them.
		{"a; f--b-c\t= 1 ;x=y", "a;fxxbxc= 1 ;x=y", "a;?= 1 ;x=y"},
		{"a; \t=;=", "a;?=;?=", "a;x=;x="},
		{"=1;x=-", "=1;x=-", "=1;x=-"},
		// What neither reads.
		{"a;-b=1", "a;-b=1", "a;-b=1"},
		{"a;b-=1", "a;b-=1", "a;b-=1"},
		{"a;b-_c=1", "a;b-_c=1", "a;b-_c=1"},
		{"a;b-\xe9=1", "a;b-\xe9=1", "a;b-\xe9=1"},
		{"a;foo-bar", "a;foo-bar", "a;foo-bar"},
		{"a;;", "a;;", "a;;"},
		// What both read.
		{"a-b=c", "a-b=c", "a-b=c"},
		{" a-b ; ", " a-b ; ", " a-b ; "},
		{"a; foo = b-c ;c==", "a; foo = b-c ;c==", "a; foo = b-c ;c=="},
		{"", "", ""},
	} {
		if got := newer(test.value); got != test.newer {
			t.Errorf("%q is reworded for the older Boulder as %q, want %q", test.value, got, test.newer)
		}
		if got := older(test.value); got != test.older {
			t.Errorf("%q is reworded for us as %q, want %q", test.value, got, test.older)
		}
	}
}

package caa

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// Property is the value of an issue or issuewild record (RFC 8659, section 4.2).
type Property struct {
	Issuer string // "" allows no CA
	Params []Param
}

// Param is one parameter of a [Property].
type Param struct{ Tag, Value string }

const whitespace = " \t"

// Parse reads the value of an issue or issuewild record as Boulder does. A value that it cannot read lets
// nobody issue.
func Parse(value string) (Property, error) {
	issuer, rest, more := strings.Cut(value, ";")
	p := Property{Issuer: strings.Trim(issuer, whitespace)}
	if !more || !strings.Contains(rest, ";") && strings.Trim(rest, whitespace) == "" {
		return p, nil // one semicolon at the end is let pass
	}
	for part := range strings.SplitSeq(rest, ";") {
		tag, v, ok := strings.Cut(part, "=")
		if !ok {
			return Property{}, fmt.Errorf("the parameter %q is not tag=value", part)
		}
		param := Param{Tag: strings.Trim(tag, whitespace), Value: strings.Trim(v, whitespace)}
		if !isTag(param.Tag) {
			return Property{}, fmt.Errorf("%q is not the tag of a parameter", param.Tag)
		}
		if strings.ContainsFunc(param.Value, func(r rune) bool { return r < '!' || r > '~' }) {
			return Property{}, fmt.Errorf("the value %q has white space or characters beyond ASCII", param.Value)
		}
		p.Params = append(p.Params, param)
	}
	return p, nil
}

// isTag holds a tag to letters and digits with hyphens between them.
func isTag(s string) bool {
	return s != "" && !strings.HasPrefix(s, "-") && !strings.HasSuffix(s, "-") && onlyWordsAndHyphens(s)
}

func onlyWordsAndHyphens(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return r != '-' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}

// Parameters of RFC 8657. Boulder compares tags to the letter, so that one in other letters is unknown to it
// and restricts nothing.
const (
	accountURI        = "accounturi"
	validationMethods = "validationmethods"
)

// values returns what the parameters of that tag hold.
func (p Property) values(tag string) []string {
	var found []string
	for _, param := range p.Params {
		if param.Tag == tag {
			found = append(found, param.Value)
		}
	}
	return found
}

// misspelt returns the tag as it is written if the property has it in other letters only.
func (p Property) misspelt(tag string) string {
	if len(p.values(tag)) > 0 {
		return ""
	}
	for _, param := range p.Params {
		if strings.EqualFold(param.Tag, tag) {
			return param.Tag
		}
	}
	return ""
}

var errTwice = errors.New("is given twice, which CAs take for never")

// pin returns the account that the property is for, "" for any, or why it is for none.
func (p Property) pin() (string, error) {
	uris := p.values(accountURI)
	switch len(uris) {
	case 0:
		return "", nil
	case 1:
		// RFC 3986 is what Boulder asks of it; an empty one is no account's.
		if _, err := url.Parse(uris[0]); err != nil || uris[0] == "" {
			return "", fmt.Errorf("%q is no URI", uris[0])
		}
		return uris[0], nil
	}
	return "", errTwice
}

// refusesAccount says why the property does not let an account issue; "" if it does.
func (p Property) refusesAccount(account string) string {
	switch uri, err := p.pin(); {
	case err != nil:
		return "allows no account: its accounturi " + err.Error()
	case uri != "" && account != "" && !SameAccount(uri, account):
		return "is for another account than " + account
	}
	return ""
}

// refusesMethod says why the property does not let a method validate; "" if it does. Boulder reads the list up to the
// method or to the first item that is malformed.
func (p Property) refusesMethod(method string) string {
	lists := p.values(validationMethods)
	switch len(lists) {
	case 0:
		return ""
	case 1:
		for m := range strings.SplitSeq(lists[0], ",") {
			if m == "" || !onlyWordsAndHyphens(m) {
				return fmt.Sprintf("has malformed validationmethods, %q", lists[0])
			}
			if m == method {
				return ""
			}
		}
		return "does not allow validation by " + method
	}
	return "allows no method: its validationmethods " + errTwice.Error()
}

// SameAccount reports whether two URIs name one account. Let's Encrypt's accounts bear a number, and those
// from the days of ACMEv1 go by an older URI besides; either counts.
func SameAccount(a, b string) bool {
	return a == b || canonicalAccount(a) == canonicalAccount(b)
}

var oldPrefixes = map[string]string{
	"https://acme-v01.api.letsencrypt.org/acme/reg/":     "https://acme-v02.api.letsencrypt.org/acme/acct/",
	"https://acme-staging.api.letsencrypt.org/acme/reg/": "https://acme-staging-v02.api.letsencrypt.org/acme/acct/",
}

func canonicalAccount(uri string) string {
	for older, newer := range oldPrefixes {
		if number, ok := strings.CutPrefix(uri, older); ok {
			return newer + number
		}
	}
	return uri
}

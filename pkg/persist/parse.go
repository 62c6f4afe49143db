package persist

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/certhook/certhook/pkg/dnsname"
)

// parsed is what Boulder reads in a record.
type parsed struct {
	issuer  string // normalized; set even where the rest is malformed, as soon as it is read
	account string
	policy  string
	until   time.Time // zero for no end, which is what the second of that number means as well
}

// white is white space in the sense of RFC 8659.
const white = " \t"

// valueChar reports whether a parameter's value may have a character: all of printable ASCII but ";".
func valueChar(c rune) bool { return c >= 0x21 && c <= 0x7e && c != ';' }

// parse reads a record as Boulder does (va/dns_persist.go, parseDNSPersistRecord), and its errors are worded as there.
func parse(record string) (parsed, error) {
	var p parsed
	issuer, rest, more := strings.Cut(record, ";")
	issuer = strings.Trim(issuer, white)
	if issuer == "" {
		return p, errors.New("empty issuer-domain-name")
	}
	name, err := dnsname.NormalizeIssuer(issuer)
	if err != nil {
		return p, fmt.Errorf("malformed issuer-domain-name %q: %w", issuer, err)
	}
	p.issuer = name
	seen := map[string]bool{}
	for more {
		var param string
		param, rest, more = strings.Cut(rest, ";")
		tag, value, err := parameter(strings.Trim(param, white))
		if err != nil {
			return p, err
		}
		known := strings.ToLower(tag)
		if seen[known] {
			return p, fmt.Errorf("duplicate parameter %q", tag)
		}
		switch known {
		case "accounturi":
			if value == "" {
				return p, errors.New("empty value provided for mandatory accounturi")
			}
			p.account = value
		case "policy":
			p.policy = value
		case "persistuntil":
			seconds, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return p, fmt.Errorf("malformed persistUntil timestamp %q", value)
			}
			p.until = time.Unix(seconds, 0).UTC()
		default:
			continue // unknown ones are to be ignored, however often they stand there
		}
		seen[known] = true
	}
	if p.account == "" {
		return p, errors.New("missing mandatory accounturi parameter")
	}
	return p, nil
}

// parameter reads one tag=value.
func parameter(text string) (tag, value string, err error) {
	if text == "" {
		return "", "", errors.New("empty parameter or trailing semicolon provided")
	}
	tag, value, ok := strings.Cut(text, "=")
	if !ok {
		return "", "", fmt.Errorf("malformed parameter %q should be tag=value pair", text)
	}
	tag, value = strings.Trim(tag, white), strings.Trim(value, white)
	if tag == "" {
		return "", "", fmt.Errorf("malformed parameter %q, empty tag", text)
	}
	if strings.ContainsFunc(value, func(c rune) bool { return !valueChar(c) }) {
		return "", "", fmt.Errorf("malformed value %q for tag %q", value, tag)
	}
	return tag, value, nil
}

package resolver

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/miekg/dns"
)

// generic reads what follows the \# of RFC 3597, section 5: the number of octets, and these in hexadecimal,
// with blanks anywhere. The record stays as it is until the wire form shows its type: dns.NewRR would take a
// backslash in a CAA for an escape.
func generic(header dns.RR_Header, s string) (dns.RR, error) {
	fields := strings.Fields(s)
	if len(fields) == 0 {
		return nil, errors.New("the number of octets is missing")
	}
	n, err := strconv.ParseUint(fields[0], 10, 16)
	if err != nil {
		return nil, fmt.Errorf("%q is not a number of octets", fields[0])
	}
	data, err := hex.DecodeString(strings.Join(fields[1:], ""))
	if err != nil {
		return nil, err
	}
	if len(data) != int(n) {
		return nil, fmt.Errorf("%d octets are announced and %d given", n, len(data))
	}
	return opaque(header, data), nil
}

// wholeRecord refuses data of which a zone file's reader would silently leave out a part: a comment, what is beyond
// a parenthesis, further lines.
func wholeRecord(s string) error {
	if strings.ContainsAny(s, "\r\n") {
		return errors.New("the data has more than one line")
	}
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && strings.IndexByte(";()", c) >= 0:
			return fmt.Errorf("a %q stands outside of quotes", c)
		}
	}
	return nil
}

// opaque is a record of any type as octets.
func opaque(header dns.RR_Header, data []byte) dns.RR {
	return &dns.RFC3597{Hdr: header, Rdata: hex.EncodeToString(data)}
}

// caaText reads the presentation form of a CAA (RFC 8659, section 4.1.1): dns.NewRR takes no value of more than
// 255 octets.
func caaText(header dns.RR_Header, s string) (dns.RR, error) {
	flagText, s, _ := strings.Cut(strings.TrimSpace(s), " ")
	tag, s, _ := strings.Cut(strings.TrimSpace(s), " ")
	flag, err := strconv.ParseUint(flagText, 10, 8)
	if err != nil {
		return nil, fmt.Errorf("%q is no number for flags", flagText)
	}
	if tag == "" || len(tag) > 255 || strings.ContainsAny(tag, "\"\\") {
		return nil, fmt.Errorf("%q is no property tag", tag)
	}
	value, err := characterString(strings.TrimSpace(s))
	if err != nil {
		return nil, err
	}
	data := append([]byte{byte(flag), byte(len(tag))}, tag...)
	return opaque(header, append(data, value...)), nil
}

// characterString reads all of s as one <character-string> (RFC 1035, section 5.1) of any length: in quotes or,
// if it has no blanks, without.
func characterString(s string) ([]byte, error) {
	inside, quoted := strings.CutPrefix(s, `"`)
	if quoted {
		var closed bool
		if inside, closed = strings.CutSuffix(inside, `"`); !closed {
			return nil, errors.New("a quote is not closed")
		}
	} else if s == "" {
		return nil, errors.New("the value is missing")
	}
	var value []byte
	for s := inside; s != ""; {
		c := s[0]
		s = s[1:]
		switch {
		case c == '"':
			return nil, errors.New("there is a quote within the value")
		case (c == ' ' || c == '\t') && !quoted:
			return nil, errors.New("there is more than one value")
		case c != '\\':
			value = append(value, c)
		case s == "":
			return nil, errors.New("the value ends in a backslash")
		case !isDigit(s[0]):
			value = append(value, s[0])
			s = s[1:]
		default:
			n, err := strconv.ParseUint(s[:min(3, len(s))], 10, 8)
			if err != nil || len(s) < 3 {
				return nil, errors.New("an escaped octet is malformed")
			}
			value = append(value, byte(n))
			s = s[3:]
		}
	}
	return value, nil
}

// Escape writes octets as they stand between quotes in a zone file (RFC 1035, section 5.1), which is how
// miekg/dns keeps the strings of a TXT.
func Escape(value string) string {
	var b strings.Builder
	for _, c := range []byte(value) {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c > '~':
			fmt.Fprintf(&b, `\%03d`, c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// CharacterStrings cuts a value into strings of at most 255 octets (RFC 1035, section 3.3), each escaped.
func CharacterStrings(value string) []string {
	var list []string
	for {
		part := value[:min(255, len(value))]
		list = append(list, Escape(part))
		if value = value[len(part):]; value == "" {
			return list
		}
	}
}

package dnstest

import (
	"fmt"
	"strings"

	"github.com/miekg/dns"
)

// escape writes octets as miekg/dns keeps them in TXT.Txt: presentation form without the quotes.
func escape(b []byte) string {
	var s strings.Builder
	for _, c := range b {
		switch {
		case c == '"' || c == '\\':
			s.WriteByte('\\')
			s.WriteByte(c)
		case c < ' ' || c > '~':
			fmt.Fprintf(&s, "\\%03d", c)
		default:
			s.WriteByte(c)
		}
	}
	return s.String()
}

// joined returns the character-strings of a TXT as one, in octets.
func joined(txt *dns.TXT) string {
	var b strings.Builder
	s := strings.Join(txt.Txt, "")
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] != '\\' || i+1 == len(s):
			b.WriteByte(s[i])
		case i+3 < len(s) && isDigit(s[i+1]) && isDigit(s[i+2]) && isDigit(s[i+3]):
			b.WriteByte((s[i+1]-'0')*100 + (s[i+2]-'0')*10 + s[i+3] - '0')
			i += 3
		default:
			i++
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

package resolver

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/miekg/dns"
)

// seeds returns the JSON answers in testdata.
func seeds(f *testing.F) [][]byte {
	f.Helper()
	paths, err := filepath.Glob("testdata/*.json")
	if err != nil || len(paths) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	var all [][]byte
	for _, path := range paths {
		body, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		all = append(all, body)
	}
	return all
}

func FuzzParseJSON(f *testing.F) {
	for _, body := range seeds(f) {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		m, err := parseJSON(body)
		if err != nil {
			return
		}
		for _, rr := range append(m.Answer, m.Ns...) {
			if rr, ok := rr.(*dns.TXT); ok {
				TXT(rr)
			}
		}
		if s := remark(m); utf8.RuneCountInString(s) > maxRemark+1 || strings.ContainsFunc(s, func(c rune) bool { return !unicode.IsPrint(c) }) {
			t.Errorf("remark %q", s)
		}
		// A CAA's value is octets once it is read, and would be written as if it were escaped; see FuzzEncodings.
		isCAA := func(rr dns.RR) bool { return rr.Header().Rrtype == dns.TypeCAA }
		m.Answer, m.Ns = slices.DeleteFunc(m.Answer, isCAA), slices.DeleteFunc(m.Ns, isCAA)
		rcode := m.Rcode
		m.Rcode = 0 // an extended one needs EDNS, which an answer without remarks does not have
		packet, err := m.Pack()
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		again := new(dns.Msg)
		if err := again.Unpack(packet); err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		if !again.Response || rcode < 0 || len(again.Answer) != len(m.Answer) || len(again.Ns) != len(m.Ns) {
			t.Errorf("message %v became %v", m, again)
		}
	})
}

// Whatever octets a CAA or TXT has, its two encodings are the same record.
func FuzzEncodings(f *testing.F) {
	f.Add(byte(0), "issue", []byte("letsencrypt.org; accounturi=https://ca.example/1"))
	f.Add(byte(0), "issue", bytes.Repeat([]byte(`\"`), 200))
	f.Add(byte(128), "ISSUE", []byte("a\"b\\c d\n\xe9\\"))
	f.Fuzz(func(t *testing.T, flag byte, tag string, value []byte) {
		if len(tag) == 0 || len(tag) > 255 || len(value) > 10_000 || strings.ContainsFunc(tag, func(c rune) bool {
			return c > unicode.MaxASCII || !unicode.IsLetter(c) && !unicode.IsDigit(c)
		}) {
			return // the octets are no CAA, so that there are no two forms to compare
		}
		wire := append([]byte{flag, byte(len(tag))}, append([]byte(tag), value...)...)
		header := dns.RR_Header{Name: "a.example.", Rrtype: dns.TypeCAA, Class: dns.ClassINET, Ttl: 60, Rdlength: uint16(len(wire))}
		want, _, err := dns.UnpackRRWithHeader(header, wire, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, data := range []string{presentation(flag, tag, value), genericData(wire)} {
			m, err := parseJSON(jsonAnswer(t, "a.example", dns.TypeCAA, data))
			if err != nil {
				t.Fatalf("%s: %v", data, err)
			}
			if !dns.IsDuplicate(m.Answer[0], want) {
				t.Errorf("%s is read as\n%v, want\n%v", data, m.Answer[0], want)
			}
		}
	})
}

// presentation writes a CAA as RFC 8659, section 4.1.1 has it, what is not plain escaped.
func presentation(flag byte, tag string, value []byte) string {
	s := fmt.Sprintf(`%d %s "`, flag, tag)
	for _, c := range value {
		switch {
		case c == '"' || c == '\\':
			s += `\` + string(c)
		case c < ' ' || c > '~':
			s += fmt.Sprintf(`\%03d`, c)
		default:
			s += string(c)
		}
	}
	return s + `"`
}

func genericData(wire []byte) string { return fmt.Sprintf(`\# %d % x`, len(wire), wire) }

func FuzzParseEndpoint(f *testing.F) {
	for _, s := range []string{
		"192.0.2.1", "[2001:db8::1]:5353", "udp://192.0.2.1", "tcp://[2001:db8::1]:54/", "tls://dns.example:8853@192.0.2.1",
		"https://DNS.example./q/a", "https://dns.example@[2001:db8::1]/q%20r", "https://dns.google/resolve", "fe80::1%eth0", "https://::%0", "tls://[fe80::1%eth0]", "::ffff:192.0.2.1",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e, err := ParseEndpoint(s)
		if err != nil {
			return
		}
		again, err := ParseEndpoint(e.String())
		if err != nil || again != e {
			t.Fatalf("%q is read as %+v, which is written %q, which is read as %+v, %v", s, e, e, again, err)
		}
		if e.Port == 0 || len(e.identities()) == 0 {
			t.Errorf("%q is read as %+v", s, e)
		}
		if e.Transport != HTTPS && e.Transport != JSON {
			return
		}
		req, err := http.NewRequest(http.MethodPost, e.url(nil), http.NoBody)
		if err != nil {
			t.Fatalf("%q cannot be asked: %v", s, err)
		}
		path, err := url.PathUnescape(e.Path)
		if err != nil || req.URL.Hostname() != e.Host || req.URL.Path != path || req.URL.RawQuery != "" || req.URL.User != nil {
			t.Errorf("%q is asked as %q", s, req.URL)
		}
	})
}

// The value of a TXT is that of the octets in the message.
func FuzzTXT(f *testing.F) {
	f.Add([]byte("v=1; a \"b\" \\c \\065 \x00\xff"))
	f.Fuzz(func(t *testing.T, value []byte) {
		if len(value) > 10_000 {
			return
		}
		m := new(dns.Msg)
		m.Answer = []dns.RR{txt("a.example.", CharacterStrings(string(value))...)}
		packet, err := m.Pack()
		if err != nil {
			t.Fatal(err)
		}
		again := new(dns.Msg)
		if err := again.Unpack(packet); err != nil {
			t.Fatal(err)
		}
		if got := values(again); len(got) != 1 || got[0] != string(value) {
			t.Errorf("%q became %q", value, got)
		}
	})
}

// FuzzTXTEscapes reads what a message cannot have, too.
func FuzzTXTEscapes(f *testing.F) {
	for _, s := range []string{`a\"b\\c`, `\065\9`, `\`, `\999`, `\\`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got := TXT(txt("a.example.", s)); len(got) > len(s) || !strings.Contains(s, `\`) && got != s {
			t.Errorf("%q became %q", s, got)
		}
	})
}

// Follow ends somewhere whatever the message, and finds only what belongs to that end.
func FuzzFollow(f *testing.F) {
	for _, body := range seeds(f) {
		m, err := parseJSON(body)
		if err != nil {
			f.Fatal(err)
		}
		packet, err := m.Pack()
		if err != nil {
			f.Fatal(err)
		}
		name := "a.example"
		if len(m.Question) > 0 {
			name = m.Question[0].Name
		}
		f.Add(packet, name, dns.TypeCAA)
		f.Add(packet, name, dns.TypeCNAME)
	}
	f.Fuzz(func(t *testing.T, packet []byte, name string, qtype uint16) {
		m := new(dns.Msg)
		if m.Unpack(packet) != nil {
			return
		}
		remark(m)
		end, rrs := Follow(m, name, qtype)
		if qtype == dns.TypeCNAME && end != Canonical(name) {
			t.Errorf("a question for CNAMEs went on to %q", end)
		}
		if end != Canonical(name) {
			leads := false
			for _, rr := range m.Answer {
				if c, ok := rr.(*dns.CNAME); ok && Canonical(c.Target) == end {
					leads = true
				}
			}
			if !leads {
				t.Errorf("no CNAME leads to %q", end)
			}
		}
		for _, rr := range rrs {
			if rr.Header().Rrtype != qtype || Canonical(rr.Header().Name) != end {
				t.Errorf("%v is no answer at %q", rr, end)
			}
		}
		again, more := Follow(m, name, qtype)
		if again != end || len(more) != len(rrs) {
			t.Errorf("Follow ends at %q, then at %q", end, again)
		}
	})
}

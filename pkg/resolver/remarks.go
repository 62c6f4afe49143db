package resolver

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/miekg/dns"
)

// Bounds of what a server may say about its answer.
const (
	maxRemark  = 300 // characters that an error repeats
	maxRemarks = 16  // remarks read from a JSON answer
)

// remark returns what a server says about its answer in Extended DNS Errors (RFC 8914), for people to read:
// "" if nothing. Anybody may have written it, so it is one line without control characters.
func remark(m *dns.Msg) string {
	opt := m.IsEdns0()
	if opt == nil {
		return ""
	}
	var said []string
	for _, option := range opt.Option {
		e, ok := option.(*dns.EDNS0_EDE)
		if !ok {
			continue
		}
		meaning := dns.ExtendedErrorCodeToString[e.InfoCode]
		switch {
		case e.InfoCode == dns.ExtendedErrorCodeOther:
			meaning = ""
		case meaning == "":
			meaning = "extended error " + strconv.Itoa(int(e.InfoCode))
		}
		text := meaning
		if extra := oneLine(e.ExtraText); extra != "" && meaning != "" {
			text += ": " + extra
		} else if extra != "" {
			text = extra
		}
		if text != "" && !slices.Contains(said, text) {
			said = append(said, text)
		}
	}
	text := []rune(strings.Join(said, "; "))
	if len(text) > maxRemark {
		return strings.TrimSpace(string(text[:maxRemark])) + "…"
	}
	return string(text)
}

// oneLine replaces what would do something to a terminal or a log.
func oneLine(s string) string {
	s = strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) || c == unicode.ReplacementChar {
			return ' '
		}
		return c
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

// jsonRemarks is where a JSON answer has its Extended DNS Errors: Cloudflare in a list of comments, such as
// "EDE(22): No Reachable Authority at delegation example.com.", Google in a list of its own, with a comment
// that is one text. They come in any form; what is not understood counts as not said.
type jsonRemarks struct {
	Comment  json.RawMessage
	Extended json.RawMessage `json:"extended_dns_errors"`
}

var comment = regexp.MustCompile(`^EDE\((\d{1,5})\): *(.*)$`)

// addTo puts the remarks where the wire form has them.
func (j jsonRemarks) addTo(m *dns.Msg) {
	var options []dns.EDNS0
	add := func(code uint16, text string) {
		if len(options) < maxRemarks {
			text = text[:min(len(text), 4*maxRemark)]
			options = append(options, &dns.EDNS0_EDE{InfoCode: code, ExtraText: text})
		}
	}
	var extended []struct {
		Code *uint16 `json:"info_code"`
		Text string  `json:"extra_text"`
	}
	if json.Unmarshal(j.Extended, &extended) == nil {
		for _, e := range extended {
			if e.Code != nil {
				add(*e.Code, e.Text)
			}
		}
	}
	var list []string
	if json.Unmarshal(j.Comment, &list) == nil {
		for _, s := range list {
			if code, text, ok := parseComment(s); ok {
				add(code, text)
			}
		}
	}
	// Google's comment tells of every answer where it came from; it explains only a failure.
	var one string
	failed := m.Rcode != dns.RcodeSuccess && m.Rcode != dns.RcodeNameError
	if json.Unmarshal(j.Comment, &one) == nil && one != "" && failed && len(options) == 0 {
		add(dns.ExtendedErrorCodeOther, one)
	}
	if len(options) > 0 {
		opt := &dns.OPT{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeOPT}, Option: options}
		m.Extra = append(m.Extra, opt)
	}
}

// parseComment reads a code and its text, without the name of the code that Cloudflare puts before the text.
func parseComment(s string) (code uint16, text string, ok bool) {
	parts := comment.FindStringSubmatch(s)
	if parts == nil {
		return 0, "", false
	}
	n, err := strconv.ParseUint(parts[1], 10, 16)
	if err != nil {
		return 0, "", false
	}
	text = parts[2]
	if name, ok := dns.ExtendedErrorCodeToString[uint16(n)]; ok {
		text = strings.TrimSpace(strings.TrimPrefix(text, name))
	}
	return uint16(n), text, true
}

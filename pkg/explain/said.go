package explain

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/authority"
	"github.com/certhook/certhook/pkg/resolver"
)

// Said is what one server or resolver says to a question.
type Said struct {
	Server    string   `json:"server"`
	Address   string   `json:"address,omitempty"` // of a name server, the one that answered
	Plain     bool     `json:"plain,omitempty"`   // of a resolver: said over plain DNS, where anybody on the way could have written it
	Answer    Answer   `json:"answer"`
	Records   []Record `json:"records,omitempty"`   // where Answer is Bogus, those that the resolver withholds
	Validated bool     `json:"validated,omitempty"` // by the resolver, with DNSSEC
	Lags      bool     `json:"lags,omitempty"`      // of a resolver: no authoritative server says so
	Errors    []string `json:"extended_errors,omitempty"`
	Detail    string   `json:"detail,omitempty"` // of a failure

	rrs    []dns.RR
	target string // of a CNAME
}

// Record is a record without its owner's name.
type Record struct {
	Type string `json:"type"`
	Data string `json:"data"` // in zone-file syntax
	TTL  uint32 `json:"ttl"`  // seconds; a resolver's run down
}

// Answer is the kind of an answer.
type Answer string

const (
	Records  Answer = "records"
	CNAME    Answer = "cname"
	NoData   Answer = "nodata"   // the name exists and has no record of the type
	NXDomain Answer = "nxdomain" // there is no such name, nor any below it
	Referral Answer = "referral" // the server refers to those of a zone below
	Lame     Answer = "lame"     // the server is not authoritative
	Refused  Answer = "refused"  // as a server does that was never told of the zone
	Timeout  Answer = "timeout"
	Bogus    Answer = "bogus"  // the resolver has an answer and withholds it: DNSSEC validation fails
	Failed   Answer = "failed" // anything else, see Detail
)

// answers reports whether s says what stands at the name.
func (s Said) answers() bool {
	return s.Answer == Records || s.Answer == CNAME || s.absent()
}

func (s Said) absent() bool { return s.Answer == NoData || s.Answer == NXDomain }

// agrees reports whether two answers to a question for qtype amount to the same. Addresses may differ, since
// servers that spread visitors give each a choice of them.
func (s Said) agrees(other Said, qtype uint16) bool {
	switch {
	case s.absent():
		return other.absent()
	case s.Answer != other.Answer:
		return false
	case s.Answer == Records && (qtype == dns.TypeA || qtype == dns.TypeAAAA):
		return true
	}
	return len(s.rrs) == len(other.rrs) && !slices.ContainsFunc(s.rrs, func(rr dns.RR) bool {
		return !slices.ContainsFunc(other.rrs, func(o dns.RR) bool { return dns.IsDuplicate(rr, o) })
	})
}

// agree returns what all of said that answer agree on, and where a CNAME leads.
func agree(said []Said, qtype uint16) (state State, next string) {
	heard := slices.DeleteFunc(slices.Clone(said), func(s Said) bool { return !s.answers() })
	if len(heard) == 0 {
		return Unreachable, ""
	}
	one := heard[0]
	if slices.ContainsFunc(heard, func(s Said) bool { return !s.agrees(one, qtype) }) {
		return Disagree, ""
	}
	switch one.Answer {
	case Records:
		return Present, ""
	case CNAME:
		return Alias, one.target
	default:
		return Absent, ""
	}
}

// read takes from an answer what it says of name itself.
func (s *Said) read(m *dns.Msg, name string, qtype uint16) {
	s.Answer = NoData
	if m.Rcode == dns.RcodeNameError {
		s.Answer = NXDomain
	}
	for _, rr := range m.Answer {
		if resolver.Canonical(rr.Header().Name) != name {
			continue
		}
		cname, alias := rr.(*dns.CNAME)
		if alias && qtype != dns.TypeANY {
			s.Answer, s.target, s.rrs = CNAME, resolver.Canonical(cname.Target), []dns.RR{rr}
			break
		}
		if qtype == dns.TypeANY || rr.Header().Rrtype == qtype {
			s.Answer = Records
			s.rrs = append(s.rrs, rr)
		}
	}
	for _, rr := range s.rrs {
		data := strings.TrimPrefix(rr.String(), rr.Header().String())
		s.Records = append(s.Records, Record{Type: dns.Type(rr.Header().Rrtype).String(), Data: data, TTL: rr.Header().Ttl})
	}
}

// fromServer reads what a name server says.
func fromServer(a authority.Answer, name string, qtype uint16) Said {
	s := Said{Server: a.Server}
	if a.Err == nil {
		s.Address = a.Addr.String()
		s.read(a.Msg, name, qtype)
		return s
	}
	// Of several addresses the one counts that tells most.
	for _, err := range leaves(a.Err) {
		kind, detail := failure(err)
		if s.Answer == "" || s.Answer == Timeout {
			s.Answer, s.Detail = kind, detail
		}
	}
	return s
}

// leaves takes joined errors apart.
func leaves(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, leaves(e)...)
	}
	return all
}

func failure(err error) (Answer, string) {
	if r, ok := errors.AsType[*authority.Referral](err); ok {
		return Referral, r.Zone
	}
	e, ok := errors.AsType[*resolver.Error](err)
	switch {
	case errors.Is(err, resolver.ErrTimeout):
		return Timeout, ""
	case errors.Is(err, authority.ErrNotAuthoritative):
		return Lame, ""
	case ok && e.Rcode == dns.RcodeRefused:
		return Refused, ""
	case ok && e.Rcode != 0:
		return Failed, resolver.RcodeName(e.Rcode)
	case ok:
		return Failed, e.Err.Error()
	}
	return Failed, err.Error()
}

// fromResolver reads what a resolver says.
func fromResolver(p resolver.Probe, name string, qtype uint16) Said {
	s := Said{Server: p.Server, Plain: p.Plain}
	if p.Err != nil {
		s.Answer, s.Detail = failure(leaves(p.Err)[0])
		return s
	}
	s.Errors = extendedErrors(p.Msg)
	switch {
	case p.Bogus():
		s.read(p.Unchecked, name, qtype)
		s.Answer = Bogus
	case p.Msg.Rcode == dns.RcodeSuccess || p.Msg.Rcode == dns.RcodeNameError:
		s.read(p.Msg, name, qtype)
		s.Validated = p.Msg.AuthenticatedData
	case p.Msg.Rcode == dns.RcodeRefused:
		s.Answer = Refused
	default:
		s.Answer, s.Detail = Failed, resolver.RcodeName(p.Msg.Rcode)
	}
	return s
}

// extendedErrors returns the extended errors of a message (RFC 8914): code, its name and the resolver's words.
func extendedErrors(m *dns.Msg) []string {
	opt := m.IsEdns0()
	if opt == nil {
		return nil
	}
	var list []string
	for _, o := range opt.Option {
		e, ok := o.(*dns.EDNS0_EDE)
		if !ok {
			continue
		}
		text := fmt.Sprintf("EDE %d", e.InfoCode)
		if name, known := dns.ExtendedErrorCodeToString[e.InfoCode]; known {
			text += " " + name
		}
		if e.ExtraText != "" {
			text += fmt.Sprintf(" %.200q", e.ExtraText)
		}
		list = append(list, text)
	}
	return list
}

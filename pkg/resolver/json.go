package resolver

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/miekg/dns"
)

// jsonMessage is what https://dns.google/resolve and its like answer.
type jsonMessage struct {
	Status   *int
	TC, AD   bool
	Question []struct {
		Name string `json:"name"`
		Type uint16 `json:"type"`
	}
	Answer, Authority []jsonRecord
	jsonRemarks
}

// jsonRecord is one record; Data is its presentation form (RFC 1035, section 5.1), but a TXT may come as
// its bare value, and any type as RFC 3597, section 5 writes it.
type jsonRecord struct {
	Name *string `json:"name"` // "" is the root; its dot and that at the end of any name may be missing
	Type uint16  `json:"type"`
	TTL  uint32
	Data string `json:"data"`
}

// parseJSON turns a JSON answer into the message that it stands for. One record that cannot be read fails
// the whole, since half an answer reads like a smaller one.
func parseJSON(body []byte) (*dns.Msg, error) {
	var j jsonMessage
	if err := json.Unmarshal(body, &j); err != nil {
		return nil, fmt.Errorf("read the JSON answer: %w", err)
	}
	if j.Status == nil || *j.Status < 0 || *j.Status > 0xfff {
		return nil, errors.New("read the JSON answer: it has no valid Status")
	}
	m := new(dns.Msg)
	m.Response, m.RecursionDesired, m.RecursionAvailable = true, true, true
	m.Truncated, m.AuthenticatedData = j.TC, j.AD
	for _, q := range j.Question {
		m.Question = append(m.Question, dns.Question{Name: dns.Fqdn(q.Name), Qtype: q.Type, Qclass: dns.ClassINET})
	}
	var err error
	if m.Answer, err = records(j.Answer); err != nil {
		return nil, err
	}
	if m.Ns, err = records(j.Authority); err != nil {
		return nil, err
	}
	// Once through the wire form: what comes out looks as if it had come from there.
	packet, err := m.Pack()
	if err != nil {
		return nil, fmt.Errorf("read the JSON answer: %w", err)
	}
	wire := new(dns.Msg)
	if err := wire.Unpack(packet); err != nil {
		return nil, fmt.Errorf("read the JSON answer: %w", err)
	}
	wire.Rcode = *j.Status
	j.addTo(wire)
	return wire, nil
}

func records(list []jsonRecord) ([]dns.RR, error) {
	var rrs []dns.RR
	for _, r := range list {
		if r.Name == nil {
			return nil, errors.New("read the JSON answer: it has a record without a name")
		}
		rr, err := r.rr()
		if err != nil {
			return nil, fmt.Errorf("read the JSON answer: %s record of %q: %w", dns.Type(r.Type), *r.Name, err)
		}
		rrs = append(rrs, rr)
	}
	return rrs, nil
}

func (r jsonRecord) rr() (dns.RR, error) {
	name := dns.Fqdn(*r.Name)
	if _, ok := dns.IsDomainName(name); !ok {
		return nil, errors.New("the name is malformed")
	}
	header := dns.RR_Header{Name: name, Rrtype: r.Type, Class: dns.ClassINET, Ttl: r.TTL}
	if rest, ok := strings.CutPrefix(r.Data, `\#`); ok {
		return generic(header, rest)
	}
	if r.Type == dns.TypeTXT && !strings.HasPrefix(r.Data, `"`) {
		return &dns.TXT{Hdr: header, Txt: CharacterStrings(r.Data)}, nil
	}
	if r.Type == dns.TypeCAA {
		return caaText(header, r.Data)
	}
	if err := wholeRecord(r.Data); err != nil {
		return nil, err
	}
	// The name stays out of the text, where it could pass for a directive.
	rr, err := dns.NewRR(fmt.Sprintf(". %d IN %s %s", r.TTL, dns.Type(r.Type), r.Data))
	if err != nil {
		return nil, err
	}
	if rr == nil {
		return nil, errors.New("there is no data")
	}
	rr.Header().Name = name
	return rr, nil
}

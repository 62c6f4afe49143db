package persist

import (
	"context"
	"fmt"
	"strings"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/persist"
	"github.com/certhook/certhook/pkg/resolver"
	"github.com/certhook/certhook/tests/boulder/oracle"
)

// question is a name that a CA is to validate, and the DNS at that time.
type question struct {
	oracle.Validation
	values [][]string // raw octets, in strings, of the TXT records at the name's record
	target string     // of a CNAME that leads there; "" for none
	rcode  int        // of the answer in their place
	traits []string   // see traits
}

func (q question) String() string {
	lines := []string{fmt.Sprintf("%s for account %d at %d", q.Domain, q.Account, q.Now.Unix())}
	if q.target != "" {
		lines = append(lines, "  through "+q.target)
	}
	if q.rcode != 0 {
		lines = append(lines, "  "+dns.RcodeToString[q.rcode])
	}
	for _, v := range q.values {
		lines = append(lines, fmt.Sprintf("  %q", v))
	}
	return strings.Join(lines, "\n")
}

// ours is the question as pkg/persist takes it.
func (q question) ours() persist.Question {
	return persist.Question{
		Issuer: oracle.Issuer, Account: oracle.Account(q.Account), Wildcard: strings.HasPrefix(q.Domain, "*."),
		Now: q.Now, Draft: persist.Draft01,
	}
}

// Ask implements [oracle.Asker].
func (q question) Ask(_ context.Context, name string, qtype uint16) (*dns.Msg, error) {
	m := new(dns.Msg).SetQuestion(dns.Fqdn(name), qtype)
	owner := dns.Fqdn(persist.Owner(q.Domain))
	if dns.CanonicalName(name) != owner || qtype != dns.TypeTXT {
		return nil, fmt.Errorf("nobody was to ask for %s at %q", dns.Type(qtype), name)
	}
	m.Rcode = q.rcode
	if q.target != "" {
		target := dns.Fqdn(q.target)
		m.Answer = append(m.Answer, &dns.CNAME{Hdr: header(owner, dns.TypeCNAME), Target: target})
		owner = target
	}
	for _, v := range q.values {
		rr := &dns.TXT{Hdr: header(owner, dns.TypeTXT)}
		for _, s := range v {
			rr.Txt = append(rr.Txt, resolver.Escape(s))
		}
		m.Answer = append(m.Answer, rr)
	}
	return m, nil
}

func header(name string, rrtype uint16) dns.RR_Header {
	return dns.RR_Header{Name: name, Rrtype: rrtype, Class: dns.ClassINET, Ttl: 60}
}

// verdict is a verdict of either side, so that they compare.
type verdict struct {
	allowed      bool
	kind, detail string
}

// boulders is Boulder's.
func boulders(a oracle.Answer) verdict { return verdict{a.Allowed, a.Type, a.Detail} }

// ours is ours, on records that have been on the wire.
func (q question) evaluate(ctx context.Context) (verdict, error) {
	m, err := q.Ask(ctx, persist.Owner(q.Domain), dns.TypeTXT)
	if err != nil {
		return verdict{}, err
	}
	wire, err := m.Pack()
	if err != nil {
		return verdict{}, fmt.Errorf("pack an answer: %w", err)
	}
	if err := m.Unpack(wire); err != nil {
		return verdict{}, fmt.Errorf("unpack an answer: %w", err)
	}
	var txts []string
	_, rrs := resolver.Follow(m, persist.Owner(q.Domain), dns.TypeTXT)
	for _, rr := range rrs {
		txts = append(txts, strings.Join(rr.(*dns.TXT).Txt, ""))
	}
	v := persist.Evaluate(q.ours(), txts)
	switch {
	case v.OK:
		return verdict{allowed: true}, nil
	case v.Malformed:
		return verdict{kind: "malformed", detail: v.Detail}, nil
	}
	return verdict{kind: "unauthorized", detail: v.Detail}, nil
}

package boulder

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/caa"
	"github.com/certhook/certhook/pkg/resolver"
	"github.com/certhook/certhook/tests/boulder/oracle"
)

// record is a CNAME, or a CAA, with what it was made to have.
type record struct {
	owner  string // canonical
	cname  string // the target; "" for a CAA
	flag   uint8
	tag    string   // in miekg/dns's presentation form
	value  string   // its octets
	traits []string // see traits
}

// String writes the record as a zone file has it.
func (r record) String() string {
	if r.cname != "" {
		return fmt.Sprintf("%s. CNAME %s", r.owner, dns.Fqdn(r.cname))
	}
	return caa.Text(r.owner, &dns.CAA{Flag: r.flag, Tag: r.tag, Value: r.value})
}

// rr is the record as miekg/dns packs it, which takes a backslash in a value for the beginning of an escape.
func (r record) rr() dns.RR {
	h := dns.RR_Header{Name: dns.Fqdn(r.owner), Rrtype: dns.TypeCAA, Class: dns.ClassINET, Ttl: 60}
	if r.cname != "" {
		h.Rrtype = dns.TypeCNAME
		return &dns.CNAME{Hdr: h, Target: dns.Fqdn(r.cname)}
	}
	return &dns.CAA{Hdr: h, Flag: r.flag, Tag: r.tag, Value: strings.ReplaceAll(r.value, `\`, `\\`)}
}

// question is a certificate that somebody wants, and the DNS at that time.
type question struct {
	domain   string // canonical
	wildcard bool
	method   string
	account  int64
	records  []record
	failing  []string // names about which every server says SERVFAIL
	cuts     []cut    // where there are servers: the zones
}

// cut is where a zone begins.
type cut struct {
	zone  string
	first int // of the servers, all from there on serve it
}

func (q question) String() string {
	lines := []string{fmt.Sprintf("%s, validated by %s, for account %d, with", q.identifier(), q.method, q.account)}
	for _, r := range q.records {
		lines = append(lines, "  "+r.String())
	}
	for _, name := range q.failing {
		lines = append(lines, "  SERVFAIL at "+name)
	}
	for _, c := range q.cuts {
		lines = append(lines, fmt.Sprintf("  a zone at %s, on the servers from %d", c.zone, c.first))
	}
	return strings.Join(lines, "\n")
}

// identifier is the domain as it stands in a certificate.
func (q question) identifier() string {
	if q.wildcard {
		return "*." + q.domain
	}
	return q.domain
}

// boulders is the question as Boulder takes it.
func (q question) boulders() oracle.Question {
	return oracle.Question{Domain: q.identifier(), Method: q.method, Account: q.account}
}

// ours is the question as pkg/caa takes it.
func (q question) ours() caa.Question {
	return caa.Question{
		Domain: q.domain, Wildcard: q.wildcard, Issuer: oracle.Issuer,
		Method: q.method, Account: oracle.Account(q.account),
	}
}

// with returns the question with the values of its CAA records put in other words.
func (q question) with(reword func(value string) string) question {
	q.records = slices.Clone(q.records)
	for i, r := range q.records {
		q.records[i].value = reword(r.value)
	}
	return q
}

// zone is the DNS of the question.
func (q question) zone() *zone {
	z := &zone{rrs: map[string][]dns.RR{}, fails: map[string]string{}}
	for _, r := range q.records {
		z.add(r.rr())
	}
	for _, name := range q.failing {
		z.fails[name] = "SERVFAIL"
	}
	return z
}

// zone is the DNS as a recursive resolver without a cache shows it, CNAMEs followed. What it does not have it
// says is there without records of the type: below the top-level names NXDOMAIN comes to the same.
type zone struct {
	rrs   map[string][]dns.RR // by canonical owner
	fails map[string]string   // an rcode, or TRUNC, by canonical name
}

func (z *zone) add(rr dns.RR) {
	owner := resolver.Canonical(rr.Header().Name)
	z.rrs[owner] = append(z.rrs[owner], rr)
}

// Ask implements [oracle.Asker].
func (z *zone) Ask(_ context.Context, name string, qtype uint16) (*dns.Msg, error) {
	m := new(dns.Msg).SetQuestion(dns.Fqdn(name), qtype)
	const mostCNAMEs = 12 // as resolvers
	at := resolver.Canonical(name)
	for range mostCNAMEs {
		if how, fails := z.fails[at]; fails {
			m.Truncated = how == "TRUNC"
			m.Rcode = dns.StringToRcode[how] // 0 for TRUNC
			return m, nil
		}
		next, found := "", false
		for _, rr := range z.rrs[at] {
			cname, is := rr.(*dns.CNAME)
			if is {
				next, found = resolver.Canonical(cname.Target), true
			}
			if is || rr.Header().Rrtype == qtype {
				m.Answer = append(m.Answer, rr)
			}
		}
		if !found {
			return m, nil
		}
		at = next
	}
	return nil, fmt.Errorf("follow CNAMEs from %q: they do not end", name)
}

package dnstest

import (
	"time"

	"github.com/miekg/dns"
)

// view is a zone as one server sees it now: without the changes that its lag still hides.
type view struct {
	*Zone
	now     time.Time
	lag     time.Duration
	lagFrom uint64
}

func (s *Server) view(z *Zone) view {
	return view{z, time.Now(), s.faults.lag, s.faults.lagFrom}
}

func (v view) shows(c change) bool {
	return c.seq <= v.lagFrom || !v.now.Before(c.at.Add(v.lag))
}

// rrs returns copies of the records at a name; the type may be ANY.
func (v view) rrs(owner string, qtype uint16) []dns.RR {
	var found []dns.RR
	if owner == v.fqdn && (qtype == dns.TypeSOA || qtype == dns.TypeANY) {
		found = append(found, v.soa())
	}
	for _, rec := range v.records[owner] {
		stands := v.shows(rec.added) && (rec.removed == nil || !v.shows(*rec.removed))
		if stands && (qtype == dns.TypeANY || qtype == rec.rr.Header().Rrtype) {
			found = append(found, dns.Copy(rec.rr))
		}
	}
	return found
}

// exists reports whether there is a record at a name or below it: an empty non-terminal exists too (RFC
// 4592, section 2.2.2).
func (v view) exists(name string) bool {
	if name == v.fqdn {
		return true
	}
	for owner := range v.records {
		if dns.IsSubDomain(name, owner) && len(v.rrs(owner, dns.TypeANY)) > 0 {
			return true
		}
	}
	return false
}

// soa counts the changes in its serial, so that a lagging server shows an older one.
func (v view) soa() dns.RR {
	serial := uint32(1)
	for _, c := range v.changes {
		if v.shows(c) {
			serial++
		}
	}
	mbox := "hostmaster." + v.fqdn
	if v.fqdn == "." {
		mbox = "hostmaster."
	}
	return &dns.SOA{
		Hdr: header(v.fqdn, dns.TypeSOA, 3600), Ns: v.servers[0].fqdn, Mbox: mbox,
		Serial: serial, Refresh: 7200, Retry: 900, Expire: 1209600, Minttl: v.minimum,
	}
}

// cut returns the topmost zone cut between the apex and a name, that name included; "" if there is none.
func (v view) cut(name string) string {
	found := ""
	for n := name; n != v.fqdn; n = parent(n) {
		if len(v.rrs(n, dns.TypeNS)) > 0 {
			found = n
		}
	}
	return found
}

// answer fills in the answer to a question as RFC 1034, section 4.3.2 says, RFC 4592 for wildcards and
// RFC 4035, section 3.1.4.1 for DS.
func (s *Server) answer(q dns.Question, resp *dns.Msg) {
	name := canonical(q.Name)
	z := s.world.deepest(name, s)
	if q.Qtype == dns.TypeDS && z != nil && z.fqdn == name && name != "." {
		if above := s.world.deepest(parent(name), s); above != nil {
			z = above
		}
	}
	if z == nil {
		resp.Rcode = dns.RcodeRefused
		return
	}
	v := s.view(z)
	if cut := v.cut(name); cut != "" && (cut != name || q.Qtype != dns.TypeDS) {
		resp.Ns = v.rrs(cut, dns.TypeNS)
		resp.Extra = append(resp.Extra, v.addresses(resp.Ns)...)
		return
	}

	resp.Authoritative = true
	source := name
	if !v.exists(name) {
		source = v.wildcard(name)
		if source == "" {
			resp.Rcode = dns.RcodeNameError
			resp.Ns = []dns.RR{negative(v)}
			return
		}
	}
	if cname := v.rrs(source, dns.TypeCNAME); len(cname) > 0 && q.Qtype != dns.TypeCNAME && q.Qtype != dns.TypeANY {
		resp.Answer = append(resp.Answer, owned(cname, q.Name)...)
		s.chase(cname[0].(*dns.CNAME).Target, q, resp)
		return
	}
	found := owned(v.rrs(source, q.Qtype), q.Name)
	if len(found) == 0 {
		resp.Ns = []dns.RR{negative(v)}
		return
	}
	resp.Answer = append(resp.Answer, found...)
	if q.Qtype == dns.TypeNS {
		resp.Extra = append(resp.Extra, v.addresses(found)...)
	}
}

// chase goes on at a CNAME's target if this server serves it and was told to.
func (s *Server) chase(target string, q dns.Question, resp *dns.Msg) {
	const limit = 16 // records; a loop ends here
	if !s.faults.chase || len(resp.Answer) >= limit || s.world.deepest(canonical(target), s) == nil {
		return
	}
	s.answer(dns.Question{Name: target, Qtype: q.Qtype, Qclass: q.Qclass}, resp)
	resp.Authoritative = true // AA is about the first owner name (RFC 1035, section 4.1.1)
}

// wildcard returns the wildcard that covers a name that does not exist: the one below its closest
// encloser, or "".
func (v view) wildcard(name string) string {
	encloser := parent(name)
	for !v.exists(encloser) {
		encloser = parent(encloser)
	}
	if w := canonical("*." + encloser); v.exists(w) {
		return w
	}
	return ""
}

// addresses returns the address records that the zone holds for the hosts of NS records, glue included.
func (v view) addresses(ns []dns.RR) []dns.RR {
	var found []dns.RR
	for _, rr := range ns {
		host := canonical(rr.(*dns.NS).Ns)
		found = append(found, v.rrs(host, dns.TypeA)...)
		found = append(found, v.rrs(host, dns.TypeAAAA)...)
	}
	return found
}

// negative returns the SOA as a negative answer carries it (RFC 2308, section 3).
func negative(v view) dns.RR {
	soa := v.soa().(*dns.SOA)
	soa.Hdr.Ttl = min(soa.Hdr.Ttl, soa.Minttl)
	return soa
}

// owned gives records the owner name of the question: the asker's spelling, or a wildcard's expansion.
func owned(rrs []dns.RR, name string) []dns.RR {
	for _, rr := range rrs {
		rr.Header().Name = name
	}
	return rrs
}

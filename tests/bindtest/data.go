package bindtest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// Add adds records, in zone-file syntax with every name from the root, as somebody else would.
func (s *Server) Add(zone string, records ...string) {
	s.tb.Helper()
	s.update(zone, records, (*dns.Msg).Insert)
}

// Remove takes away exactly these records, if they are there.
func (s *Server) Remove(zone string, records ...string) {
	s.tb.Helper()
	s.update(zone, records, (*dns.Msg).Remove)
}

func (s *Server) update(zone string, records []string, section func(*dns.Msg, []dns.RR)) {
	s.tb.Helper()
	if len(records) == 0 {
		return
	}
	m := new(dns.Msg).SetUpdate(dns.Fqdn(zone))
	for _, text := range records {
		rr, err := dns.NewRR(text)
		if err != nil || rr == nil {
			s.tb.Fatalf("bindtest: malformed record %q: %v", text, err)
		}
		section(m, []dns.RR{rr})
	}
	r, err := s.exchange(m)
	if err != nil || r.Rcode != dns.RcodeSuccess {
		s.tb.Fatalf("bindtest: update %q with %q: %v, %v", zone, records, err, r)
	}
}

// Transfer returns all records of a zone but the SOA, one line each, sorted.
func (s *Server) Transfer(zone string) []string {
	s.tb.Helper()
	m := new(dns.Msg).SetAxfr(dns.Fqdn(zone))
	m.SetTsig(dns.Fqdn(s.admin.Name), dns.HmacSHA256, 300, time.Now().Unix())
	t := &dns.Transfer{TsigSecret: s.secret()}
	envelopes, err := t.In(m, s.Addr.String())
	if err != nil {
		s.tb.Fatalf("bindtest: transfer %q: %v", zone, err)
	}
	var lines []string
	for e := range envelopes {
		if e.Error != nil {
			s.tb.Fatalf("bindtest: transfer %q: %v", zone, e.Error)
		}
		for _, rr := range e.RR {
			if rr.Header().Rrtype != dns.TypeSOA {
				lines = append(lines, line(rr))
			}
		}
	}
	slices.Sort(lines)
	return lines
}

func line(rr dns.RR) string { return strings.ReplaceAll(rr.String(), "\t", " ") }

// TXT returns the values at a name of a zone, sorted, whether a question would see them or not.
func (s *Server) TXT(zone, name string) []string {
	s.tb.Helper()
	var values []string
	for _, l := range s.Transfer(zone) {
		rr, err := dns.NewRR(l)
		if err != nil {
			s.tb.Fatalf("bindtest: transfer %q: %v", zone, err)
		}
		if txt, ok := rr.(*dns.TXT); ok && dns.CanonicalName(txt.Hdr.Name) == dns.CanonicalName(name) {
			values = append(values, strings.Join(txt.Txt, ""))
		}
	}
	slices.Sort(values)
	return values
}

// Reset brings a zone back to the records that it started with.
func (s *Server) Reset(zone string) {
	s.tb.Helper()
	i := slices.IndexFunc(s.zones, func(z Zone) bool { return z.Name == zone })
	if i < 0 {
		s.tb.Fatalf("bindtest: there is no zone %q", zone)
	}
	var first []string
	parser := dns.NewZoneParser(strings.NewReader(s.text(s.zones[i])), ".", "")
	for rr, ok := parser.Next(); ok; rr, ok = parser.Next() {
		if rr.Header().Rrtype != dns.TypeSOA {
			first = append(first, line(rr))
		}
	}
	var added []string
	for _, l := range s.Transfer(zone) {
		if !slices.Contains(first, l) {
			added = append(added, l)
		}
	}
	s.Remove(zone, added...)
	s.Add(zone, first...)
}

func (s *Server) ready() error {
	for _, z := range s.zones {
		r, err := s.exchange(new(dns.Msg).SetQuestion(dns.Fqdn(z.Name), dns.TypeSOA))
		if err != nil {
			return err
		}
		if r.Rcode != dns.RcodeSuccess || !r.Authoritative {
			return fmt.Errorf("the zone %q is not served: %s", z.Name, dns.RcodeToString[r.Rcode])
		}
	}
	return nil
}

// exchange sends m with the server's own key.
func (s *Server) exchange(m *dns.Msg) (*dns.Msg, error) {
	m.SetTsig(dns.Fqdn(s.admin.Name), dns.HmacSHA256, 300, time.Now().Unix())
	client := &dns.Client{Net: "tcp", Timeout: 5 * time.Second, TsigSecret: s.secret()}
	r, _, err := client.Exchange(m, s.Addr.String())
	if err == nil && r.IsTsig() == nil {
		err = errors.New("the reply is not signed")
	}
	return r, err
}

func (s *Server) secret() map[string]string {
	return map[string]string{dns.Fqdn(s.admin.Name): s.admin.Secret}
}

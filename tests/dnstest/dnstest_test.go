package dnstest

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// ask sends a question to a server over the network, without recursion.
func ask(t *testing.T, s *Server, transport, name string, qtype uint16) (*dns.Msg, error) {
	t.Helper()
	req := new(dns.Msg).SetQuestion(dns.Fqdn(name), qtype)
	req.RecursionDesired = false
	c := dns.Client{Net: transport, Timeout: 300 * time.Millisecond}
	resp, _, err := c.Exchange(req, net.JoinHostPort(s.Addr.String(), strconv.Itoa(int(s.port))))
	return resp, err
}

func mustAsk(t *testing.T, s *Server, name string, qtype uint16) *dns.Msg {
	t.Helper()
	resp, err := ask(t, s, "udp", name, qtype)
	if err != nil {
		t.Fatalf("%s %s at %s: %v", name, dns.TypeToString[qtype], s.Host, err)
	}
	return resp
}

// brief writes a message as one line that a table can hold: flags and code, then the three sections.
func brief(m *dns.Msg) string {
	section := func(rrs []dns.RR) string {
		var s []string
		for _, rr := range rrs {
			if rr.Header().Rrtype == dns.TypeOPT {
				continue
			}
			data := rr.String()[len(rr.Header().String()):]
			if rr.Header().Rrtype == dns.TypeSOA {
				data = ""
			}
			s = append(s, strings.TrimSpace(rr.Header().Name+" "+dns.TypeToString[rr.Header().Rrtype]+" "+data))
		}
		slices.Sort(s)
		return strings.Join(s, ", ")
	}
	code := dns.RcodeToString[m.Rcode]
	if m.Authoritative {
		code += " aa"
	}
	return fmt.Sprintf("%s | %s | %s | %s", code, section(m.Answer), section(m.Ns), section(m.Extra))
}

// example is a world with a root, two trees below it and a child zone on the servers of its parent.
func example(t *testing.T) (w *World, root, one, two *Server) {
	t.Helper()
	w = New(t)
	root = w.AddServer("a.root-servers.net")
	one = w.AddServer("ns1.example.net")
	two = w.AddServer("ns2.deleg.example.net")
	w.AddZone("deleg.example.net", two)
	w.AddZone("example.net", one)
	w.AddZone("child.example.net", one)
	w.AddZone("example.com", one)
	w.AddZone("", root)
	w.AddZone("com", root)
	w.AddZone("net", root)
	w.Add("example.com", "www.example.com A 192.0.2.1")
	w.Add("example.com", "a.b.example.com A 192.0.2.2")
	w.Add("example.com", "*.wild.example.com TXT x")
	w.Add("example.com", "*.alias.example.com CNAME www.example.com")
	w.Add("example.com", "_acme-challenge.svc.example.com CNAME _acme-challenge.svc.example.com.deleg.example.net")
	w.Add("deleg.example.net", "_acme-challenge.svc.example.com.deleg.example.net 60 TXT v1")
	return w, root, one, two
}

func TestAuthoritativeAnswers(t *testing.T) {
	w, root, one, two := example(t)
	_ = w
	target := "_acme-challenge.svc.example.com.deleg.example.net."
	tests := []struct {
		at    *Server
		name  string
		qtype uint16
		want  string
	}{
		{one, "www.example.com", dns.TypeA, "NOERROR aa | www.example.com. A 192.0.2.1 |  | "},
		{one, "WWW.example.com", dns.TypeA, "NOERROR aa | WWW.example.com. A 192.0.2.1 |  | "},
		{one, "www.example.com", dns.TypeTXT, "NOERROR aa |  | example.com. SOA | "},
		{one, "b.example.com", dns.TypeTXT, "NOERROR aa |  | example.com. SOA | "},
		{one, "nope.example.com", dns.TypeTXT, "NXDOMAIN aa |  | example.com. SOA | "},
		{one, "example.com", dns.TypeNS, "NOERROR aa | example.com. NS ns1.example.net. |  | "},
		{one, "example.net", dns.TypeNS, "NOERROR aa | example.net. NS ns1.example.net. |  | ns1.example.net. A " + one.Addr.String()},
		{one, "example.org", dns.TypeNS, "REFUSED |  |  | "},
		{one, "notexample.com", dns.TypeA, "REFUSED |  |  | "},
		// RFC 4592: a wildcard covers any depth, nothing beside an existing name, and not other types.
		{one, "x.y.wild.example.com", dns.TypeTXT, `NOERROR aa | x.y.wild.example.com. TXT "x" |  | `},
		{one, "x.wild.example.com", dns.TypeA, "NOERROR aa |  | example.com. SOA | "},
		{one, "wild.example.com", dns.TypeTXT, "NOERROR aa |  | example.com. SOA | "},
		{one, "q.alias.example.com", dns.TypeTXT, "NOERROR aa | q.alias.example.com. CNAME www.example.com. |  | "},
		{one, "_acme-challenge.svc.example.com", dns.TypeTXT, "NOERROR aa | _acme-challenge.svc.example.com. CNAME " + target + " |  | "},
		{one, "_acme-challenge.svc.example.com", dns.TypeCNAME, "NOERROR aa | _acme-challenge.svc.example.com. CNAME " + target + " |  | "},
		// A cut refers, with glue; a child on the same server answers for itself and only DS stays above.
		{one, target, dns.TypeTXT, "NOERROR |  | deleg.example.net. NS ns2.deleg.example.net. | ns2.deleg.example.net. A " + two.Addr.String()},
		{one, "deleg.example.net", dns.TypeDS, "NOERROR aa |  | example.net. SOA | "},
		{one, "x.child.example.net", dns.TypeA, "NXDOMAIN aa |  | child.example.net. SOA | "},
		{one, "child.example.net", dns.TypeDS, "NOERROR aa |  | example.net. SOA | "},
		{two, target, dns.TypeTXT, "NOERROR aa | " + target + ` TXT "v1" |  | `},
		{two, "deleg.example.net", dns.TypeSOA, "NOERROR aa | deleg.example.net. SOA |  | "},
		{root, "www.example.com", dns.TypeA, "NOERROR |  | example.com. NS ns1.example.net. | "},
		{root, "example.net", dns.TypeA, "NOERROR |  | example.net. NS ns1.example.net. | ns1.example.net. A " + one.Addr.String()},
		{root, "test", dns.TypeA, "NXDOMAIN aa |  | . SOA | "},
	}
	for _, tt := range tests {
		for _, transport := range []string{"udp", "tcp"} {
			resp, err := ask(t, tt.at, transport, tt.name, tt.qtype)
			if err != nil {
				t.Errorf("%s %s at %s: %v", tt.name, dns.TypeToString[tt.qtype], tt.at.Host, err)
				continue
			}
			if got := brief(resp); got != tt.want {
				t.Errorf("%s %s at %s over %s:\n got %s\nwant %s", tt.name, dns.TypeToString[tt.qtype], tt.at.Host, transport, got, tt.want)
			}
		}
	}
}

func TestChase(t *testing.T) {
	w := New(t)
	s := w.AddServer("ns.test")
	w.AddZone("example.com", s)
	w.AddZone("alias.test", s)
	w.Add("example.com", "a.example.com CNAME b.alias.test")
	w.Add("alias.test", "b.alias.test TXT found")
	w.Add("example.com", "gone.example.com CNAME none.alias.test")
	w.Add("example.com", "loop.example.com CNAME loop.example.com")
	s.SetChase(true)
	for name, want := range map[string]string{
		"a.example.com":    `NOERROR aa | a.example.com. CNAME b.alias.test., b.alias.test. TXT "found" |  | `,
		"gone.example.com": `NXDOMAIN aa | gone.example.com. CNAME none.alias.test. | alias.test. SOA | `,
	} {
		if got := brief(mustAsk(t, s, name, dns.TypeTXT)); got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
	}
	if got := mustAsk(t, s, "loop.example.com", dns.TypeTXT); len(got.Answer) > 20 {
		t.Errorf("a loop gave %d records", len(got.Answer))
	}
}

func TestTXTValues(t *testing.T) {
	w, _, _, two := example(t)
	zone, name := "deleg.example.net", "Many.Deleg.example.net."
	values := []string{"a", "b", `q"uo\te`, "ünï", strings.Repeat("x", 600)}
	for _, v := range values {
		if err := w.AddTXT(zone, name, v, 60); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.AddTXT(zone, name, "a", 300); err != ErrExists {
		t.Errorf("a second a: %v", err)
	}
	slices.Sort(values)
	if got := w.TXT(zone, name); !slices.Equal(got, values) {
		t.Errorf("TXT = %q", got)
	}
	resp := mustAsk(t, two, "many.deleg.example.net", dns.TypeTXT)
	if !resp.Truncated || len(resp.Answer) == len(values) {
		t.Errorf("over 512 octets: TC %v, %d records", resp.Truncated, len(resp.Answer))
	}
	resp, err := ask(t, two, "tcp", "many.deleg.example.net", dns.TypeTXT)
	if err != nil || len(resp.Answer) != len(values) {
		t.Fatalf("over TCP: %v, %v", resp, err)
	}
	queries := w.Matching("many.deleg.example.net", dns.TypeTXT)
	answer := slices.Sorted(slices.Values(queries[len(queries)-1].Answer))
	if !slices.Equal(answer, values) {
		t.Errorf("logged answer %q", answer)
	}
	for _, v := range values {
		if err := w.RemoveTXT(zone, name, v); err != nil {
			t.Errorf("remove %q: %v", v, err)
		}
	}
	if err := w.RemoveTXT(zone, name, "a"); err != ErrNotFound {
		t.Errorf("remove again: %v", err)
	}
	if got := w.AllTXT(zone); len(got) != 1 || len(got["_acme-challenge.svc.example.com.deleg.example.net"]) != 1 {
		t.Errorf("AllTXT = %q", got)
	}
	if got := brief(mustAsk(t, two, "many.deleg.example.net", dns.TypeTXT)); !strings.HasPrefix(got, "NXDOMAIN") {
		t.Errorf("after removal: %s", got)
	}
}

func TestEDNSSize(t *testing.T) {
	w, _, _, two := example(t)
	for i := range 12 {
		if err := w.AddTXT("deleg.example.net", "deleg.example.net", strings.Repeat(strconv.Itoa(i%10), 43)+strconv.Itoa(i), 60); err != nil {
			t.Fatal(err)
		}
	}
	req := new(dns.Msg).SetQuestion("deleg.example.net.", dns.TypeTXT)
	req.SetEdns0(4096, false)
	resp, _, err := new(dns.Client).Exchange(req, netip.AddrPortFrom(two.Addr, w.Port).String())
	if err != nil || resp.Truncated || len(resp.Answer) != 12 || resp.IsEdns0() == nil {
		t.Errorf("with EDNS: %v, %v", resp, err)
	}
}

func TestRootHints(t *testing.T) {
	w, root, _, _ := example(t)
	zp := dns.NewZoneParser(strings.NewReader(w.RootHints()), ".", "hints")
	var got []string
	for rr, ok := zp.Next(); ok; rr, ok = zp.Next() {
		got = append(got, rr.String()[len(rr.Header().String()):])
	}
	if want := []string{"a.root-servers.net.", root.Addr.String()}; zp.Err() != nil || !slices.Equal(got, want) {
		t.Errorf("hints %q, %v", got, zp.Err())
	}
}

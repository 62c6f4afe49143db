package authority

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/resolver"
	"github.com/certhook/certhook/tests/dnstest"
)

// world is the zones that most tests need: com, net and example.com, each on a server of its own, and
// other.net. At its end no recursive question may have been one that plants a negative answer, and no
// authoritative one may have asked for recursion.
func world(t *testing.T) (*dnstest.World, *Client, map[string]*dnstest.Server) {
	t.Helper()
	w := dnstest.New(t)
	servers := map[string]*dnstest.Server{}
	for _, host := range []string{"tld.example.org", "ns1.example.com", "ns2.example.com", "ns.other.net"} {
		servers[host] = w.AddServer(host)
	}
	w.AddZone("com", servers["tld.example.org"])
	w.AddZone("net", servers["tld.example.org"])
	w.AddZone("example.com", servers["ns1.example.com"], servers["ns2.example.com"])
	w.AddZone("other.net", servers["ns.other.net"])
	t.Cleanup(func() {
		for _, q := range w.Queries() {
			if q.Recursive && slices.Contains(strings.Split(q.Name, "."), dnsname.ChallengeLabel) {
				t.Errorf("a recursive resolver was asked: %v", q)
			}
			if !q.Recursive && q.RD {
				t.Errorf("an authoritative server was asked for recursion: %v", q)
			}
		}
	})
	return w, &Client{Recursive: w, Port: w.Port, Timeout: 400 * time.Millisecond}, servers
}

func hosts(z Zone) []string {
	var names []string
	for _, s := range z.Servers {
		names = append(names, s.Name)
	}
	return names
}

func TestZone(t *testing.T) {
	tests := []struct {
		name, ask, want string
		prepare         func(*dnstest.World, map[string]*dnstest.Server)
	}{
		{"apex", "example.com", "example.com", nil},
		{"below", "a.b.example.com", "example.com", nil},
		{"top level", "com", "com", nil},
		{"no such zone", "svc.example-two.com", "com", nil},
		{"CNAME at the name", "svc.example.com", "example.com", func(w *dnstest.World, _ map[string]*dnstest.Server) {
			w.Add("example.com", "svc.example.com CNAME other.net.")
		}},
		{"CNAME into nowhere", "svc.example.com", "example.com", func(w *dnstest.World, _ map[string]*dnstest.Server) {
			w.Add("example.com", "svc.example.com CNAME missing.other.net.")
		}},
		{"wildcard CNAME", "a.b.example.com", "example.com", func(w *dnstest.World, _ map[string]*dnstest.Server) {
			w.Add("example.com", "*.example.com CNAME other.net.")
		}},
		{"delegated", "a.child.example.com", "child.example.com", func(w *dnstest.World, s map[string]*dnstest.Server) {
			w.AddZone("child.example.com", s["ns.other.net"])
		}},
		{"delegated to the same servers", "a.child.example.com", "child.example.com", func(w *dnstest.World, s map[string]*dnstest.Server) {
			w.AddZone("child.example.com", s["ns1.example.com"], s["ns2.example.com"])
		}},
		{"only a suffix of the text", "notexample.com", "com", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w, c, s := world(t)
			if tt.prepare != nil {
				tt.prepare(w, s)
			}
			z, err := c.Zone(t.Context(), tt.ask)
			if err != nil || z.Name != tt.want {
				t.Fatalf("Zone = %v, %v, want %s", z, err, tt.want)
			}
			if len(z.Servers) == 0 || len(z.Servers[0].Addrs) == 0 {
				t.Errorf("servers %v", z.Servers)
			}
		})
	}
}

func TestZoneFailure(t *testing.T) {
	tests := map[string]struct {
		name    string
		prepare func(*dnstest.World, map[string]*dnstest.Server)
	}{
		"time-out at the name": {"svc.example.com", func(w *dnstest.World, _ map[string]*dnstest.Server) { w.FailAsk("svc.example.com", dnstest.Timeout) }},
		"SERVFAIL at the name": {"svc.example.com", func(w *dnstest.World, _ map[string]*dnstest.Server) { w.FailAsk("svc.example.com", dnstest.ServFail) }},
		"SERVFAIL at the zone": {"svc.example.com", func(w *dnstest.World, _ map[string]*dnstest.Server) { w.FailAsk("example.com", dnstest.ServFail) }},
		"lame servers": {"svc.example.com", func(_ *dnstest.World, s map[string]*dnstest.Server) {
			s["ns1.example.com"].SetLame(true)
			s["ns2.example.com"].SetLame(true)
		}},
		"addresses not found": {"a.other.net", func(w *dnstest.World, _ map[string]*dnstest.Server) { w.FailAsk("ns.other.net", dnstest.ServFail) }},
		"above everything":    {"svc.example.org", nil},
		"a CNAME that fails": {"svc.example.com", func(w *dnstest.World, _ map[string]*dnstest.Server) {
			w.Add("example.com", "svc.example.com CNAME bad.other.net.")
			w.FailAsk("bad.other.net", dnstest.ServFail)
		}},
		"at an _acme-challenge": {"_acme-challenge.svc.example.com", nil},
		"below one":             {"a._acme-challenge.svc.example.com", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, c, s := world(t)
			if tt.prepare != nil {
				tt.prepare(w, s)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			if z, err := c.Zone(ctx, tt.name); fault.KindOf(err) != fault.Unknown {
				t.Errorf("Zone = %v, %v, want an error of kind Unknown", z, err)
			}
		})
	}
}

// TestZoneWithoutOneAddress has one name server whose address cannot be looked up.
func TestZoneWithoutOneAddress(t *testing.T) {
	w, c, _ := world(t)
	w.FailAsk("ns2.example.com", dnstest.ServFail)
	z, err := c.Zone(t.Context(), "example.com")
	if err != nil || !slices.Equal(hosts(z), []string{"ns1.example.com", "ns2.example.com"}) {
		t.Fatalf("Zone = %v, %v, want both servers", z, err)
	}
	if len(z.Servers[0].Addrs) != 1 || len(z.Servers[1].Addrs) != 0 {
		t.Errorf("addresses %v, want one of ns1 and none of ns2", z.Servers)
	}
}

func TestWithin(t *testing.T) {
	const challenge = "_acme-challenge.svc.example.com"
	tests := []struct {
		name, from, ask, want string
		hosts                 []string
		prepare               func(*dnstest.World, map[string]*dnstest.Server)
	}{
		{"no cut", "example.com", challenge, "example.com", []string{"ns1.example.com", "ns2.example.com"}, nil},
		{"apex", "example.com", "example.com", "example.com", nil, nil},
		{"from the top", "com", challenge, "example.com", []string{"ns1.example.com", "ns2.example.com"}, nil},
		{"nothing registered", "com", "_acme-challenge.svc.example-two.com", "com", nil, nil},
		{"CNAME at the name", "com", challenge, "example.com", nil, func(w *dnstest.World, _ map[string]*dnstest.Server) {
			w.Add("example.com", challenge+" CNAME x.other.net.")
		}},
		{"CNAME at the name and above", "example.com", challenge, "example.com", nil, func(w *dnstest.World, _ map[string]*dnstest.Server) {
			w.Add("example.com", challenge+" CNAME x.other.net.")
			w.Add("example.com", "svc.example.com CNAME y.other.net.")
		}},
		{"wildcard CNAME", "example.com", challenge, "example.com", nil, func(w *dnstest.World, _ map[string]*dnstest.Server) {
			w.Add("example.com", "*.example.com CNAME x.other.net.")
		}},
		{"CNAME that the server follows", "example.com", challenge, "example.com", nil, func(w *dnstest.World, s map[string]*dnstest.Server) {
			w.AddZone("zone.net", s["ns1.example.com"], s["ns2.example.com"])
			w.Add("example.com", challenge+" CNAME x.zone.net.")
			s["ns1.example.com"].SetChase(true)
			s["ns2.example.com"].SetChase(true)
		}},
		{"referral with glue", "example.com", challenge, "svc.example.com", []string{"ns.svc.example.com"}, func(w *dnstest.World, _ map[string]*dnstest.Server) {
			w.AddZone("svc.example.com", w.AddServer("ns.svc.example.com"))
			w.FailAsk("ns.svc.example.com", dnstest.ServFail)
		}},
		{"referral without glue", "example.com", challenge, "svc.example.com", []string{"ns.other.net"}, func(w *dnstest.World, s map[string]*dnstest.Server) {
			w.AddZone("svc.example.com", s["ns.other.net"])
		}},
		{"cut at the name itself", "example.com", challenge, challenge, []string{"ns.other.net"}, func(w *dnstest.World, s map[string]*dnstest.Server) {
			w.AddZone(challenge, s["ns.other.net"])
		}},
		{"child on the same servers", "example.com", challenge, "svc.example.com", []string{"ns1.example.com", "ns2.example.com"}, func(w *dnstest.World, s map[string]*dnstest.Server) {
			w.AddZone("svc.example.com", s["ns1.example.com"], s["ns2.example.com"])
		}},
		{"child on the same servers, asked at its apex", "example.com", "svc.example.com", "svc.example.com", nil, func(w *dnstest.World, s map[string]*dnstest.Server) {
			w.AddZone("svc.example.com", s["ns1.example.com"], s["ns2.example.com"])
		}},
		{"child on the same servers, CNAME in it", "example.com", challenge, "svc.example.com", nil, func(w *dnstest.World, s map[string]*dnstest.Server) {
			w.AddZone("svc.example.com", s["ns1.example.com"], s["ns2.example.com"])
			w.Add("svc.example.com", challenge+" CNAME x.other.net.")
		}},
		{"grandchild", "com", challenge, challenge, []string{"ns.other.net"}, func(w *dnstest.World, s map[string]*dnstest.Server) {
			w.AddZone("svc.example.com", s["ns1.example.com"], s["ns2.example.com"])
			w.AddZone(challenge, s["ns.other.net"])
		}},
		{"one lame server", "example.com", challenge, "example.com", nil, func(_ *dnstest.World, s map[string]*dnstest.Server) {
			s["ns1.example.com"].SetLame(true)
		}},
		{"one server that forwards", "example.com", challenge, "example.com", nil, func(_ *dnstest.World, s map[string]*dnstest.Server) {
			s["ns1.example.com"].SetNoAA(true)
		}},
		{"one dead server", "example.com", challenge, "example.com", nil, func(_ *dnstest.World, s map[string]*dnstest.Server) {
			s["ns1.example.com"].SetDead(true)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w, c, s := world(t)
			if tt.prepare != nil {
				tt.prepare(w, s)
			}
			z, err := c.Within(t.Context(), start(tt.from, s), tt.ask)
			if err != nil || z.Name != tt.want {
				t.Fatalf("Within = %v, %v, want %s", z, err, tt.want)
			}
			if tt.hosts != nil && !slices.Equal(hosts(z), tt.hosts) {
				t.Errorf("servers %v, want %v", hosts(z), tt.hosts)
			}
			for _, s := range z.Servers {
				if len(s.Addrs) == 0 {
					t.Errorf("server %s has no address", s.Name)
				}
			}
		})
	}
}

// start returns a zone of the world as its data have it, whatever its servers' faults.
func start(name string, servers map[string]*dnstest.Server) Zone {
	hosts := map[string][]string{"com": {"tld.example.org"}, "example.com": {"ns1.example.com", "ns2.example.com"}}
	z := Zone{Name: name}
	for _, host := range hosts[name] {
		z.Servers = append(z.Servers, Server{Name: host, Addrs: []netip.Addr{servers[host].Addr}})
	}
	return z
}

func TestWithinFailure(t *testing.T) {
	tests := map[string]func(*dnstest.World, map[string]*dnstest.Server){
		"all lame": func(_ *dnstest.World, s map[string]*dnstest.Server) {
			s["ns1.example.com"].SetLame(true)
			s["ns2.example.com"].SetLame(true)
		},
		"all dead": func(_ *dnstest.World, s map[string]*dnstest.Server) {
			s["ns1.example.com"].SetDead(true)
			s["ns2.example.com"].Close()
		},
		"none authoritative": func(_ *dnstest.World, s map[string]*dnstest.Server) {
			s["ns1.example.com"].SetNoAA(true)
			s["ns2.example.com"].SetRcode(dns.RcodeServerFailure)
		},
		"servers of the child dead": func(w *dnstest.World, s map[string]*dnstest.Server) {
			w.AddZone("svc.example.com", s["ns.other.net"])
			s["ns.other.net"].SetDead(true)
		},
		"addresses of the child's servers not found": func(w *dnstest.World, s map[string]*dnstest.Server) {
			w.AddZone("svc.example.com", s["ns.other.net"])
			w.FailAsk("ns.other.net", dnstest.ServFail)
		},
		"the child's servers refer back to it": func(w *dnstest.World, s map[string]*dnstest.Server) {
			w.Add("example.com", "svc.example.com NS tld.example.org.")
		},
		"the name server is below an _acme-challenge label": func(w *dnstest.World, _ map[string]*dnstest.Server) {
			w.Add("example.com", "svc.example.com NS ns._acme-challenge.other.net.")
		},
	}
	for name, prepare := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, c, s := world(t)
			prepare(w, s)
			z, err := c.Within(t.Context(), start("example.com", s), "_acme-challenge.svc.example.com")
			if fault.KindOf(err) != fault.Unknown {
				t.Errorf("Within = %v, %v, want an error of kind Unknown", z, err)
			}
			if n := len(w.Queries()); n > 20 {
				t.Errorf("%d questions: it goes round and round", n)
			}
		})
	}
	t.Run("outside", func(t *testing.T) {
		_, c, s := world(t)
		if z, err := c.Within(t.Context(), start("example.com", s), "notexample.com"); err == nil {
			t.Errorf("Within = %v, want an error", z)
		}
	})
}

// TestDeadIPv6 has name servers that also have IPv6 addresses where nothing answers.
func TestDeadIPv6(t *testing.T) {
	w, c, _ := world(t)
	w.Add("example.com", "ns1.example.com AAAA 100::1")
	w.Add("example.com", "ns2.example.com AAAA 100::2")
	z, err := c.Zone(t.Context(), "svc.example.com")
	if err != nil || len(z.Servers[0].Addrs) != 2 || len(z.Servers[1].Addrs) != 2 {
		t.Fatalf("Zone = %v, %v, want two addresses of each server", z, err)
	}
	slices.Reverse(z.Servers[0].Addrs)
	if _, err := c.Within(t.Context(), z, "_acme-challenge.svc.example.com"); err != nil {
		t.Error(err)
	}
	for _, a := range c.QueryAll(t.Context(), z, "svc.example.com", dns.TypeTXT) {
		if a.Err != nil || !a.Addr.Is4() {
			t.Errorf("answer of %s at %s: %v", a.Server, a.Addr, a.Err)
		}
	}
	z.Servers[0].Addrs = []netip.Addr{netip.MustParseAddr("100::1")}
	if a := c.QueryAll(t.Context(), z, "svc.example.com", dns.TypeTXT); a[0].Err == nil || a[1].Err != nil {
		t.Errorf("answers %v, want none of the first server", a)
	}
}

// TestGlueFromOutside has a server that tells the address of a host that it has no say about.
func TestGlueFromOutside(t *testing.T) {
	told := map[string][]netip.Addr{
		"ns.svc.example.com": {netip.MustParseAddr("192.0.2.1")},
		"ns.other.net":       {netip.MustParseAddr("192.0.2.2")},
		"ns.notexample.com":  {netip.MustParseAddr("192.0.2.3")},
	}
	if kept := within(told, "example.com"); len(kept) != 1 || len(kept["ns.svc.example.com"]) != 1 {
		t.Errorf("kept %v, want what is in example.com", kept)
	}
}

func TestIPv4First(t *testing.T) {
	v6, v4, other := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("192.0.2.1")
	var asked []netip.Addr
	_, err := first(t.Context(), []netip.Addr{v6, v4, other}, func(_ context.Context, addr netip.Addr) (int, error) {
		asked = append(asked, addr)
		return 0, errors.New("no")
	})
	if err == nil || !slices.Equal(asked, []netip.Addr{v4, other, v6}) {
		t.Errorf("asked %v, want IPv4 first and the order kept otherwise", asked)
	}
}

func TestQuery(t *testing.T) {
	w, c, s := world(t)
	w.Add("example.com", "a.example.com TXT value")
	w.AddZone("child.example.com", s["ns.other.net"])
	addr := s["ns1.example.com"].Addr

	if m, err := c.Query(t.Context(), addr, "a.example.com", dns.TypeTXT); err != nil || len(m.Answer) != 1 {
		t.Errorf("Query = %v, %v, want the record", m, err)
	}
	if m, err := c.Query(t.Context(), addr, "b.example.com", dns.TypeTXT); err != nil || m.Rcode != dns.RcodeNameError {
		t.Errorf("Query = %v, %v, want NXDOMAIN", m, err)
	}
	_, err := c.Query(t.Context(), addr, "x.child.example.com", dns.TypeTXT)
	if r, ok := errors.AsType[*Referral](err); !ok || r.Zone != "child.example.com" || !slices.Equal(r.Hosts, []string{"ns.other.net"}) {
		t.Errorf("error %v, want a referral", err)
	}
	_, err = c.Query(t.Context(), addr, "elsewhere.example", dns.TypeTXT)
	if e, ok := errors.AsType[*resolver.Error](err); !ok || e.Rcode != dns.RcodeRefused || e.Server != addr.String() {
		t.Errorf("error %v, want REFUSED", err)
	}
	s["ns1.example.com"].SetNoAA(true)
	if _, err := c.Query(t.Context(), addr, "a.example.com", dns.TypeTXT); !errors.Is(err, ErrNotAuthoritative) {
		t.Errorf("error %v, want ErrNotAuthoritative", err)
	}
	s["ns1.example.com"].SetDead(true)
	if _, err := c.Query(t.Context(), addr, "a.example.com", dns.TypeTXT); !errors.Is(err, resolver.ErrTimeout) {
		t.Errorf("error %v, want ErrTimeout", err)
	}
}

func TestQueryAll(t *testing.T) {
	w, c, s := world(t)
	if err := w.AddTXT("example.com", "a.example.com", "value", 60); err != nil {
		t.Fatal(err)
	}
	z, err := c.Zone(t.Context(), "example.com")
	if err != nil {
		t.Fatal(err)
	}
	z.Servers = append(z.Servers, Server{Name: "ns3.example.com"})
	s["ns1.example.com"].SetRcode(dns.RcodeServerFailure)
	answers := c.QueryAll(t.Context(), z, "a.example.com", dns.TypeTXT)
	if len(answers) != 3 || answers[0].Server != "ns1.example.com" || answers[0].Err == nil || answers[2].Err == nil {
		t.Errorf("answers %v, want errors of the first and the last server", answers)
	}
	if a := answers[1]; a.Err != nil || len(a.Msg.Answer) != 1 || a.Addr != s["ns2.example.com"].Addr {
		t.Errorf("answer %v of ns2", a)
	}
}

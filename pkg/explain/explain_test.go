package explain

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/tests/dnstest"
)

const (
	cname  = challengeAt + " CNAME " + record
	signed = "DS 12345 13 2 3A1B2C3D4E5F60718293A4B5C6D7E8F90123456789ABCDEF0123456789ABCDEF"
)

func TestExplain(t *testing.T) {
	type test struct {
		name    string
		ask     string
		qtype   uint16
		prepare func(*scene)
		want    Verdict
		says    []string // of the text
		heard   []string // what resolvers were asked, besides name servers
	}
	tests := []test{
		{
			name: "a record", ask: name, qtype: dns.TypeA,
			prepare: func(s *scene) { s.add(name + " A 192.0.2.1") },
			want:    Exists, says: []string{"ns1.example.com", "192.0.2.1", "tld.example", s1},
			heard: []string{name + " A"},
		},
		{
			name: "no such name", ask: name, qtype: dns.TypeA,
			want: DoesNotExist, says: []string{"NXDOMAIN", "not asked"}, heard: []string{"example.com SOA"},
		},
		{
			name: "no such record", ask: name, qtype: dns.TypeCAA,
			prepare: func(s *scene) { s.add(name + " A 192.0.2.1") },
			want:    DoesNotExist, says: []string{"NODATA"}, heard: []string{"example.com SOA"},
		},
		{
			name: "a challenge before its value is written", ask: challengeAt, qtype: dns.TypeTXT,
			prepare: func(s *scene) { s.add(cname) },
			want:    DoesNotExist, says: []string{"CNAME " + record, "deleg.example.net", challengeAt + " leads to " + record},
			heard: []string{challengeAt + " CNAME", "deleg.example.net SOA"},
		},
		{
			name: "a challenge with its value", ask: challengeAt, qtype: dns.TypeTXT,
			prepare: func(s *scene) { s.add(cname, record+" 60 TXT value") },
			want:    Exists, says: []string{`TXT "value" (TTL 60)`},
			heard: []string{challengeAt + " CNAME", record + " TXT"},
		},
		{
			name: "a zone of its own at the challenge", ask: challengeAt, qtype: dns.TypeTXT,
			prepare: func(s *scene) { s.AddZone(challengeAt, s.ns["ns.example.net"]) },
			want:    DoesNotExist, says: []string{"in the zone " + challengeAt, "NODATA"},
		},
		{
			name: "a wildcard's own name", ask: "*.example.com", qtype: dns.TypeTXT,
			prepare: func(s *scene) { s.add("*.example.com TXT value") },
			want:    Exists, heard: []string{"*.example.com TXT"},
		},
		{
			name: "servers disagree", ask: name, qtype: dns.TypeTXT,
			prepare: func(s *scene) {
				s.ns["ns2.example.com"].SetLag(1 << 40)
				s.add(name + " TXT value")
			},
			want: Conflict, says: []string{"not asked", `ns1.example.com has TXT "value"; ns2.example.com says`}, heard: []string{"example.com SOA"},
		},
		{
			name: "servers lead to different places", ask: challengeAt, qtype: dns.TypeTXT,
			prepare: func(s *scene) {
				s.add(challengeAt + " CNAME old.example.net")
				s.ns["ns2.example.com"].SetLag(1 << 40)
				s.Remove("example.com", challengeAt+" CNAME old.example.net")
				s.add(cname)
			},
			want: Conflict, says: []string{"old.example.net", record}, heard: []string{"example.com SOA"},
		},
		{
			name: "servers spread visitors", ask: name, qtype: dns.TypeA,
			prepare: func(s *scene) {
				s.add(name + " A 192.0.2.1")
				s.ns["ns2.example.com"].SetLag(1 << 40)
				s.add(name + " A 192.0.2.2")
			},
			want: Exists, heard: []string{name + " A"},
		},
		{
			name: "one server dead, one lame", ask: name, qtype: dns.TypeTXT,
			prepare: func(s *scene) {
				third := s.AddServer("ns3.example.com")
				s.Add("com", "example.com NS ns3.example.com.")
				s.Add("com", "ns3.example.com A "+third.Addr.String())
				s.add(name + " TXT value")
				s.ns["ns1.example.com"].SetDead(true)
			},
			want: Exists, says: []string{"no answer in time", "REFUSED"}, heard: []string{name + " TXT"},
		},
		{
			name: "not authoritative", ask: name, qtype: dns.TypeTXT,
			prepare: func(s *scene) {
				s.add(name + " TXT value")
				s.ns["ns1.example.com"].SetNoAA(true)
			},
			want: Exists, says: []string{"not authoritative"}, heard: []string{name + " TXT"},
		},
		{
			name: "servers out of reach, resolvers see it", ask: name, qtype: dns.TypeTXT,
			prepare: func(s *scene) {
				s.add(name + " TXT value")
				s.each(func(ns *dnstest.Server) { ns.SetBlocked(loopback) })
			},
			want: Exists, says: []string{"no answer in time", "no authoritative server answers"},
			heard: []string{name + " CNAME", name + " TXT"},
		},
		{
			name: "servers out of reach, resolvers follow to the next zone", ask: name, qtype: dns.TypeTXT,
			prepare: func(s *scene) {
				s.add(name+" CNAME "+record, record+" TXT value")
				s.each(func(ns *dnstest.Server) { ns.SetBlocked(loopback) })
			},
			want: Exists, says: []string{"in the zone deleg.example.net"},
			heard: []string{record + " TXT", name + " CNAME"},
		},
		{
			name: "servers out of reach, resolvers deny it", ask: name, qtype: dns.TypeTXT,
			prepare: func(s *scene) { s.each(func(ns *dnstest.Server) { ns.SetBlocked(loopback) }) },
			want:    DoesNotExist, heard: []string{name + " CNAME", name + " TXT"},
		},
		{
			name: "servers out of reach, one resolver denies it", ask: name, qtype: dns.TypeTXT,
			prepare: func(s *scene) {
				s.each(func(ns *dnstest.Server) { ns.SetBlocked(loopback) })
				s.resolvers[1].down = true
			},
			want: Nobody, says: []string{"one resolver alone"}, heard: []string{name + " CNAME", name + " TXT"},
		},
		{
			name: "servers out of reach, resolvers disagree", ask: name, qtype: dns.TypeTXT,
			prepare: func(s *scene) {
				s.add(name + " TXT value")
				s.each(func(ns *dnstest.Server) { ns.SetBlocked(loopback) })
				s.resolvers[1].override = nxdomain
			},
			want: Conflict, says: []string{"the resolvers disagree"}, heard: []string{name + " CNAME", name + " TXT"},
		},
		{
			name: "a challenge whose servers are out of reach", ask: challengeAt, qtype: dns.TypeTXT,
			prepare: func(s *scene) {
				s.add(cname)
				s.each(func(ns *dnstest.Server) { ns.SetBlocked(loopback) })
			},
			want: Nobody, says: []string{"not asked", "ns1.example.com does not answer"}, heard: []string{"example.com SOA"},
		},
		{
			name: "everybody dead", ask: name, qtype: dns.TypeTXT,
			prepare: func(s *scene) {
				s.each(func(ns *dnstest.Server) { ns.SetDead(true) })
				s.resolvers[0].dead, s.resolvers[1].dead = true, true
			},
			want: Nobody, heard: []string{name + " CNAME"},
		},
		{
			name: "no zone", ask: name, qtype: dns.TypeTXT,
			prepare: func(s *scene) {
				s.FailAsk("com", dnstest.ServFail)
				s.FailAsk("example.com", dnstest.ServFail)
				s.resolvers[0].down, s.resolvers[1].down = true, true
			},
			want: Nobody, says: []string{"the zone of svc.example.com cannot be found"}, heard: []string{name + " CNAME"},
		},
		{
			name: "a circle", ask: "a.example.com", qtype: dns.TypeTXT,
			prepare: func(s *scene) { s.add("a.example.com CNAME b.example.net", "b.example.net CNAME a.example.com") },
			want:    NoEnd, says: []string{"leads back to a.example.com"},
			heard: []string{"a.example.com CNAME", "b.example.net CNAME"},
		},
		{
			name: "a resolver with an older answer", ask: name, qtype: dns.TypeTXT,
			prepare: func(s *scene) {
				s.add(name + " TXT value")
				s.resolvers[1].override = nxdomain
			},
			want: Exists, says: []string{"NXDOMAIN); not what the servers say"}, heard: []string{name + " TXT"},
		},
		{
			name: "bogus", ask: name, qtype: dns.TypeTXT,
			prepare: func(s *scene) {
				s.Add("com", "example.com "+signed)
				s.add(name + " TXT value")
				for _, r := range s.resolvers {
					r.bogus["example.com"] = 7
				}
			},
			want: Broken, says: []string{"SERVFAIL: DNSSEC validation fails", "EDE 7 Signature Expired", `withheld: TXT "value"`, "has a DS"},
			heard: []string{name + " TXT"},
		},
		{
			name: "absent in a bogus zone", ask: name, qtype: dns.TypeTXT,
			prepare: func(s *scene) {
				s.Add("com", "example.com "+signed)
				for _, r := range s.resolvers {
					r.bogus["example.com"] = 6
				}
			},
			want: Broken, says: []string{"NXDOMAIN", "EDE 6 DNSSEC Bogus", "withheld: SOA"}, heard: []string{"example.com SOA"},
		},
		{
			name: "bogus at the end of the CNAME", ask: challengeAt, qtype: dns.TypeTXT,
			prepare: func(s *scene) {
				s.add(cname, record+" TXT value")
				for _, r := range s.resolvers {
					r.bogus["deleg.example.net"] = 9
				}
			},
			want: Broken, says: []string{"what stands at " + record}, heard: []string{challengeAt + " CNAME", record + " TXT"},
		},
		{
			name: "bogus to one resolver, while the other one does not validate", ask: name, qtype: dns.TypeTXT,
			prepare: func(s *scene) {
				s.add(name + " TXT value")
				s.resolvers[1].bogus["example.com"] = 6
			},
			want: Broken, heard: []string{name + " TXT"},
		},
		{
			name: "bogus to one resolver, valid to the other one", ask: name, qtype: dns.TypeTXT,
			prepare: func(s *scene) {
				s.Add("com", "example.com "+signed)
				s.add(name + " TXT value")
				s.resolvers[0].signed = []string{"example.com"}
				s.resolvers[1].bogus["example.com"] = 6
			},
			want: Exists, says: []string{"validated by DNSSEC", "DNSSEC validation fails"}, heard: []string{name + " TXT"},
		},
		{
			name: "a failure of resolvers that is not DNSSEC's", ask: name, qtype: dns.TypeTXT,
			prepare: func(s *scene) {
				s.add(name + " TXT value")
				s.resolvers[0].down, s.resolvers[1].down = true, true
			},
			want: Exists, says: []string{"SERVFAIL"}, heard: []string{name + " TXT"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			if tt.prepare != nil {
				s.prepare(tt.prepare)
			}
			e := Explain(t.Context(), s.client, s.panel(2), tt.ask, tt.qtype)
			var b strings.Builder
			e.Text(&b)
			if e.Verdict != tt.want {
				t.Errorf("verdict %q, want %q", e.Verdict, tt.want)
			}
			for _, part := range append(tt.says, string(tt.want)) {
				if !strings.Contains(b.String(), part) {
					t.Errorf("the text lacks %q", part)
				}
			}
			if strings.Contains(b.String(), "\x1b") {
				t.Error("a resolver's words reach the terminal as they are")
			}
			if heard := s.heard(); !slices.Equal(heard, tt.heard) {
				t.Errorf("resolvers heard of %q, want %q", heard, tt.heard)
			}
			kind := map[Verdict]fault.Kind{Conflict: fault.Verdict, Broken: fault.Verdict, NoEnd: fault.Verdict, Nobody: fault.Unknown}[tt.want]
			if err := e.Err(); fault.KindOf(err) != kind || (err == nil) != (kind == fault.Other) || err != nil && fault.HintOf(err) == "" {
				t.Errorf("Err = %v", err)
			}
			if t.Failed() {
				t.Log(b.String())
			}
		})
	}
}

// s1 is how the text shows the address of a zone's server, but for its number.
const s1 = "ns2.example.com  127."

// loopback is where the questions of this process come from; those of resolvers do not go over the network.
var loopback = netip.MustParseAddr("127.0.0.1")

func nxdomain(q *dns.Msg) *dns.Msg { return new(dns.Msg).SetRcode(q, dns.RcodeNameError) }

func TestZones(t *testing.T) {
	s := newScene(t)
	s.AddZone("child.example.com", s.ns["ns1.example.com"]) // which serves the zone above, too
	s.AddZone("deep.child.example.com", s.ns["ns.example.net"])
	s.Add("com", "example.com "+signed)
	s.Add("child.example.com", "deep.child.example.com "+signed)
	s.Add("deep.child.example.com", "svc.deep.child.example.com TXT value")
	e := Explain(t.Context(), s.client, s.panel(1), "svc.deep.child.example.com", dns.TypeTXT)
	var got []string
	for _, z := range e.Zones {
		for _, server := range z.Servers {
			got = append(got, strings.Join(append([]string{z.Name, string(z.DS), server.Name}, server.Addresses...), " "))
		}
	}
	want := []string{
		"com unknown tld.example " + s.ns["tld.example"].Addr.String(),
		"example.com present ns1.example.com " + s.ns["ns1.example.com"].Addr.String(),
		"example.com present ns2.example.com " + s.ns["ns2.example.com"].Addr.String(),
		"child.example.com absent ns1.example.com " + s.ns["ns1.example.com"].Addr.String(),
		"deep.child.example.com present ns.example.net " + s.ns["ns.example.net"].Addr.String(),
	}
	if !slices.Equal(got, want) {
		t.Errorf("zones %q, want %q", got, want)
	}
	if len(e.Chain) != 1 || e.Chain[0].Zone != "deep.child.example.com" {
		t.Errorf("chain %+v", e.Chain)
	}
}

// Resolvers that cannot validate a zone do not tell its servers either.
func TestBogusZoneIsFoundFromAbove(t *testing.T) {
	s := newScene(t)
	s.add(name + " TXT value")
	s.FailAsk("example.com", dnstest.ServFail)
	e := Explain(t.Context(), s.client, s.panel(0), name, dns.TypeTXT)
	if e.Verdict != Exists || e.Chain[0].Zone != "example.com" {
		t.Errorf("%+v", e)
	}
}

// The servers of the registry may be out of reach where those of the zone are not.
func TestRegistryOutOfReach(t *testing.T) {
	s := newScene(t)
	s.add(name + " TXT value")
	s.ns["tld.example"].SetBlocked(loopback)
	e := Explain(t.Context(), s.client, s.panel(1), name, dns.TypeTXT)
	if e.Verdict != Exists || e.Chain[0].Zone != "example.com" || e.Zones[1].DS != DSUnknown {
		t.Errorf("%+v", e)
	}
}

func TestTooManyCNAMEs(t *testing.T) {
	s := newScene(t)
	for c := byte('a'); c < 'a'+20; c++ {
		s.add(string(c) + ".example.com CNAME " + string(c+1) + ".example.com")
	}
	e := Explain(t.Context(), s.client, s.panel(0), "a.example.com", dns.TypeTXT)
	if e.Verdict != NoEnd || len(e.Chain) != maxChain+1 {
		t.Errorf("%s after %d hops: %s", e.Verdict, len(e.Chain), e.Reason)
	}
}

// Every list is there, also where it is empty, for whoever reads the JSON.
func TestJSON(t *testing.T) {
	s := newScene(t)
	text, err := json.Marshal(Explain(t.Context(), s.client, s.panel(0), name, dns.TypeTXT))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "null") {
		t.Errorf("null in %s", text)
	}
	var got struct {
		Name, Type, Verdict string
		Chain               []struct {
			State   string
			Servers []struct{ Server, Answer string }
		}
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if got.Name != name || got.Type != "TXT" || got.Verdict != "does not exist" || got.Chain[0].State != "absent" ||
		len(got.Chain[0].Servers) != 2 || got.Chain[0].Servers[0].Answer != "nxdomain" {
		t.Errorf("%s", text)
	}
}

package delegation

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/authority"
	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/resolver"
	"github.com/certhook/certhook/tests/dnstest"
)

const (
	challenge = "_acme-challenge.svc.example.com"
	record    = challenge + ".deleg.example.net"
	line      = challenge + ". CNAME " + record + "."
)

// lab is a world with the served zone example.com, the alias zone deleg.example.net and a third party's
// zone other.org, each on servers of its own. There are no resolvers besides the world's own until a test
// adds them.
type lab struct {
	*dnstest.World
	client    *authority.Client
	ns        map[string]*dnstest.Server
	resolvers []*dnstest.Resolver
}

func newLab(t *testing.T) *lab {
	t.Helper()
	w := dnstest.New(t)
	l := &lab{World: w, ns: map[string]*dnstest.Server{}}
	for _, host := range []string{"tld.example", "ns1.example.com", "ns2.example.com", "ns.example.net", "ns.deleg.example.net", "ns.other.org"} {
		l.ns[host] = w.AddServer(host)
	}
	for _, tld := range []string{"com", "net", "org"} {
		w.AddZone(tld, l.ns["tld.example"])
	}
	w.AddZone("example.com", l.ns["ns1.example.com"], l.ns["ns2.example.com"])
	w.AddZone("example.net", l.ns["ns.example.net"])
	w.AddZone("deleg.example.net", l.ns["ns.deleg.example.net"])
	w.AddZone("other.org", l.ns["ns.other.org"])
	l.client = &authority.Client{Recursive: w, Port: w.Port, Timeout: 300 * time.Millisecond}
	t.Cleanup(func() {
		for _, q := range w.Queries() {
			if q.Recursive && !l.mayAsk(q) {
				t.Errorf("a recursive resolver was asked: %v", q)
			}
		}
	})
	return l
}

// mayAsk reports whether a recursive question does no harm: about a name server's address, about the NS of a
// registered domain or what is above it, or to a resolver for a CNAME anywhere but where the record lies.
func (l *lab) mayAsk(q dnstest.Query) bool {
	switch q.Type {
	case dns.TypeNS:
		return q.Server == "" && strings.Count(q.Name, ".") <= 1
	case dns.TypeCNAME:
		return q.Server != "" && !dnsname.Within(record, q.Name)
	}
	return l.ns[q.Name] != nil
}

// panel is the resolvers of the test.
func (l *lab) panel(t *testing.T) resolver.Panel {
	t.Helper()
	var endpoints []resolver.Endpoint
	for _, r := range l.resolvers {
		e, err := resolver.ParseEndpoint(r.URL())
		if err != nil {
			t.Fatal(err)
		}
		endpoints = append(endpoints, e)
	}
	return resolver.NewPanel(endpoints)
}

func (l *lab) add(records ...string) {
	for _, rr := range records {
		for _, zone := range []string{"example.com", "deleg.example.net", "other.org"} {
			if name, _, _ := strings.Cut(rr, " "); dnsname.Within(strings.Trim(name, "*."), zone) {
				l.Add(zone, rr)
			}
		}
	}
}

func TestCheck(t *testing.T) {
	tests := []struct {
		name    string
		prepare func(*lab)
		want    Status
		says    []string
	}{
		{"right", func(l *lab) { l.add(challenge + " CNAME " + record) }, OK, nil},
		{"right, with the value written", func(l *lab) {
			l.add(challenge+" CNAME "+record, record+" TXT value")
		}, OK, nil},
		{"right in any case", func(l *lab) { l.add(challenge + " CNAME " + strings.ToUpper(record)) }, OK, nil},
		{"right by way of another zone", func(l *lab) {
			l.add(challenge+" CNAME a.b.other.org.", "a.b.other.org CNAME "+record)
		}, OK, nil},
		{"right by way of its own zone", func(l *lab) {
			l.add(challenge+" CNAME hop.example.com.", "hop.example.com CNAME "+record)
		}, OK, nil},
		{"right by a wildcard", func(l *lab) { l.add("*.svc.example.com CNAME " + record) }, OK, nil},
		{"right, and the server chases", func(l *lab) {
			l.add(challenge+" CNAME "+record, record+" TXT value")
			l.ns["ns1.example.com"].SetChase(true)
		}, OK, nil},
		{"right, one server dead", func(l *lab) {
			l.add(challenge + " CNAME " + record)
			l.ns["ns1.example.com"].SetDead(true)
		}, OK, nil},
		{"right, one server lame", func(l *lab) {
			l.add(challenge + " CNAME " + record)
			l.ns["ns2.example.com"].SetLame(true)
		}, OK, nil},
		{"right in a delegated child", func(l *lab) {
			l.AddZone("svc.example.com", l.ns["ns.other.org"])
			l.Add("svc.example.com", challenge+" CNAME "+record)
		}, OK, nil},
		{"right in a child on the same servers", func(l *lab) {
			l.AddZone("svc.example.com", l.ns["ns1.example.com"], l.ns["ns2.example.com"])
			l.Add("svc.example.com", challenge+" CNAME "+record)
		}, OK, nil},
		{"right, and the domain itself is a CNAME", func(l *lab) {
			l.add(challenge+" CNAME "+record, "svc.example.com CNAME gateway.other.org.")
		}, OK, nil},

		{"missing, nothing there", func(*lab) {}, Wrong, []string{"no CNAME", "example.com"}},
		{"missing, the domain exists", func(l *lab) { l.add("svc.example.com A 192.0.2.1") }, Wrong, []string{"no CNAME"}},
		{"missing, other type there", func(l *lab) { l.add(challenge + " A 192.0.2.1") }, Wrong, []string{"no CNAME"}},
		{"missing, one server dead", func(l *lab) { l.ns["ns1.example.com"].SetDead(true) }, Wrong, []string{"no CNAME"}},
		{"missing, one server lame", func(l *lab) { l.ns["ns1.example.com"].SetLame(true) }, Wrong, []string{"no CNAME"}},
		{"missing from a delegated child", func(l *lab) {
			l.add(challenge + " CNAME " + record) // below the cut: nobody sees it
			l.AddZone("svc.example.com", l.ns["ns.other.org"])
		}, Wrong, []string{"no CNAME", "zone svc.example.com"}},
		{"elsewhere", func(l *lab) {
			l.add(challenge+" CNAME x.other.org.", "x.other.org TXT value")
		}, Wrong, []string{"CNAME to x.other.org.", "replace"}},
		{"elsewhere, into nothing", func(l *lab) { l.add(challenge + " CNAME x.other.org.") }, Wrong, []string{"x.other.org."}},
		{"elsewhere, into no zone", func(l *lab) { l.add(challenge + " CNAME a.b.gone.org.") }, Wrong, []string{"a.b.gone.org."}},
		{"elsewhere, to the root", func(l *lab) { l.add(challenge + " CNAME .") }, Wrong, []string{"CNAME to ."}},
		{"elsewhere in the alias zone", func(l *lab) {
			l.add(challenge + " CNAME _acme-challenge.svc.example.com.example.deleg.example.net.")
		}, Wrong, []string{"svc.example.com.example.deleg.example.net."}},
		{"elsewhere, to the alias zone's apex", func(l *lab) { l.add(challenge + " CNAME deleg.example.net.") }, Wrong, []string{"CNAME to deleg.example.net."}},
		{"elsewhere, the trailing dot forgotten", func(l *lab) { l.add(challenge + " CNAME " + record + ".example.com.") }, Wrong, []string{record + ".example.com."}},
		{"elsewhere by a long way", func(l *lab) {
			l.add(challenge+" CNAME x.other.org.", "x.other.org CNAME y.example.com.")
		}, Wrong, []string{"x.other.org.", "y.example.com."}},
		{"loop of one", func(l *lab) { l.add(challenge + " CNAME " + challenge + ".") }, Wrong, []string{"circle"}},
		{"loop over zones", func(l *lab) {
			l.add(challenge+" CNAME x.other.org.", "x.other.org CNAME y.other.org.", "y.other.org CNAME "+challenge+".")
		}, Wrong, []string{"circle", "y.other.org."}},
		{"loop that does not come back to the start", func(l *lab) {
			l.add(challenge+" CNAME x.other.org.", "x.other.org CNAME y.other.org.", "y.other.org CNAME x.other.org.")
		}, Wrong, []string{"circle"}},
		{"shadowed", func(l *lab) { l.add(challenge + " TXT old") }, Wrong, []string{"TXT at " + challenge, "remove"}},
		{"TXT of a wildcard", func(l *lab) { l.add("*.svc.example.com TXT v=spf1") }, Wrong, []string{"no CNAME", "*.svc.example.com"}},
		{"wildcard elsewhere", func(l *lab) { l.add("*.svc.example.com CNAME lb.other.org.") }, Wrong, []string{"wildcard *.svc.example.com ", "lb.other.org."}},
		{"wildcard elsewhere, higher up", func(l *lab) { l.add("*.example.com CNAME lb.other.org.") }, Wrong, []string{"wildcard *.example.com ", "lb.other.org."}},
		{"wildcard elsewhere, the domain itself the same CNAME", func(l *lab) {
			l.add("*.svc.example.com CNAME lb.other.org.", "svc.example.com CNAME lb.other.org.")
		}, Wrong, []string{"wildcard *.svc.example.com ", "lb.other.org."}},
		{"wildcard in a circle", func(l *lab) {
			l.add("*.svc.example.com CNAME x.other.org.", "x.other.org CNAME "+challenge+".")
		}, Wrong, []string{"wildcard *.svc.example.com ", "circle"}},
		{"wildcard beside a CNAME of its own", func(l *lab) {
			l.add("*.svc.example.com CNAME lb.other.org.", challenge+" CNAME x.other.org.")
		}, Wrong, []string{"is a CNAME to x.other.org."}},
		{"alias zone not delegated", func(l *lab) {
			l.add(challenge + " CNAME " + record)
			l.Undelegate("example.net")
		}, Wrong, []string{"not delegated", "NS records", "deleg.example.net"}},

		{"disagreement, added or removed", func(l *lab) {
			l.ns["ns2.example.com"].SetLag(time.Hour)
			l.add(challenge + " CNAME " + record)
		}, Unknown, []string{"ns1.example.com has a CNAME to " + record, "ns2.example.com has none", "any server"}},
		{"disagreement, and one is right by a detour", func(l *lab) {
			l.add(challenge+" CNAME x.other.org.", "x.other.org CNAME "+record)
			l.ns["ns2.example.com"].SetLag(time.Hour)
			l.Remove("example.com", challenge+" CNAME x.other.org.")
			l.add(challenge + " CNAME y.other.org.")
		}, Unknown, []string{"x.other.org.", "y.other.org."}},
		{"disagreement about the second step", func(l *lab) {
			l.add(challenge + " CNAME hop.example.com.")
			l.ns["ns2.example.com"].SetLag(time.Hour)
			l.add("hop.example.com CNAME " + record)
		}, Unknown, []string{"disagree about hop.example.com", "ns2.example.com has none"}},
		{"disagreement, and another zone on the way is dead", func(l *lab) {
			l.ns["ns2.example.com"].SetLag(time.Hour)
			l.add(challenge + " CNAME x.other.org.")
			l.ns["ns.other.org"].SetDead(true)
		}, Unknown, []string{"x.other.org."}},
		{"disagreement, and none is right", func(l *lab) {
			l.add(challenge + " CNAME x.other.org.")
			l.ns["ns2.example.com"].SetLag(time.Hour)
			l.Remove("example.com", challenge+" CNAME x.other.org.")
			l.add(challenge + " CNAME y.other.org.")
		}, Wrong, []string{"x.other.org.", "y.other.org.", "let all"}},
		{"disagreement, and all is right", func(l *lab) {
			l.add(challenge+" CNAME x.other.org.", "x.other.org CNAME "+record)
			l.ns["ns2.example.com"].SetLag(time.Hour)
			l.Remove("example.com", challenge+" CNAME x.other.org.")
			l.add(challenge + " CNAME " + record)
		}, OK, nil},
		{"disagreement about a delegation, and one is right", func(l *lab) {
			l.add(challenge + " CNAME " + record)
			l.ns["ns2.example.com"].SetLag(time.Hour)
			l.AddZone("svc.example.com", l.ns["ns.other.org"])
		}, Unknown, []string{"ns2.example.com has a CNAME", "ns.other.org has none"}},
		{"SERVFAIL everywhere", func(l *lab) {
			l.ns["ns1.example.com"].SetRcodeFor(challenge, 2)
			l.ns["ns2.example.com"].SetRcodeFor(challenge, 2)
		}, Unknown, []string{"SERVFAIL"}},
		{"lame everywhere", func(l *lab) {
			l.ns["ns1.example.com"].SetNoAA(true)
			l.ns["ns2.example.com"].SetNoAA(true)
		}, Unknown, nil},
		{"dead everywhere", func(l *lab) {
			l.ns["ns1.example.com"].SetDead(true)
			l.ns["ns2.example.com"].SetDead(true)
		}, Unknown, nil},
		{"the resolver fails", func(l *lab) { l.FailAsk("example.com", dnstest.ServFail) }, Unknown, nil},
		{"the alias zone cannot be found", func(l *lab) {
			l.add(challenge + " CNAME " + record)
			l.FailAsk("example.net", dnstest.ServFail)
		}, Unknown, []string{"leads to " + record}},
		{"the alias zone is lame", func(l *lab) {
			l.add(challenge + " CNAME " + record)
			l.ns["ns.deleg.example.net"].SetLame(true)
		}, Unknown, nil},
		{"a zone on the way is dead", func(l *lab) {
			l.add(challenge + " CNAME x.other.org.")
			l.ns["ns.other.org"].SetDead(true)
		}, Unknown, []string{"x.other.org"}},
		{"missing, and the alias zone cannot be found", func(l *lab) { l.FailAsk("example.net", dnstest.ServFail) }, Wrong, []string{"no CNAME"}},
	}
	target, err := Settings{Aliases: []string{"deleg.example.net"}}.Target("svc.example.com")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			tt.prepare(l)
			v := Check(t.Context(), l.client, l.panel(t), target)
			if v.Status != tt.want {
				t.Fatalf("verdict %+v, want %s", v, tt.want)
			}
			for _, word := range tt.says {
				if !strings.Contains(v.Reason, word) {
					t.Errorf("reason %q does not say %q", v.Reason, word)
				}
			}
			if tt.want != Wrong {
				if v.Err() != nil || v.Record != "" {
					t.Errorf("error %v, record %q, want none", v.Err(), v.Record)
				}
				return
			}
			if err := v.Err(); fault.KindOf(err) != fault.Verdict || !strings.Contains(err.Error(), line) || v.Record != line {
				t.Errorf("error %v, record %q, want kind Verdict and the record %q in both", err, v.Record, line)
			}
		})
	}
}

// The alias side: a CA is led to the record, where a TXT has to be able to stand.
func TestCheckLooksAtTheRecord(t *testing.T) {
	const alias = "ns.deleg.example.net"
	tests := []struct {
		name    string
		prepare func(*lab)
		want    Status
		says    string // in the reason
		note    string
	}{
		{"nothing there", func(*lab) {}, OK, "", ""},
		{"a TXT", func(l *lab) { l.add(record + " TXT value") }, OK, "", ""},
		{"a CNAME", func(l *lab) { l.add(record + " CNAME x.other.org.") }, Wrong, "CNAME itself, to x.other.org.", ""},
		{"a wildcard's CNAME, which goes out of the way", func(l *lab) { l.add("*.deleg.example.net CNAME x.other.org.") }, OK, "", "*.deleg.example.net"},
		{"a CNAME on one server of two", func(l *lab) {
			l.AddZone("two.example.net", l.ns[alias], l.ns["ns.example.net"])
			l.ns["ns.example.net"].SetLag(time.Hour)
			l.Add("two.example.net", strings.Replace(record, "deleg", "two", 1)+" CNAME x.other.org.")
		}, Unknown, "disagree", ""},
		{"delegated below the alias zone", func(l *lab) { l.AddZone("example.com.deleg.example.net", l.ns["ns.other.org"]) }, OK, "", "zone example.com.deleg.example.net"},
		{"delegated below to the same servers", func(l *lab) { l.AddZone("com.deleg.example.net", l.ns[alias]) }, OK, "", "zone com.deleg.example.net"},
		{"delegated below to servers without the zone", func(l *lab) {
			l.AddZone("com.deleg.example.net", l.ns["ns.other.org"])
			l.ns["ns.other.org"].SetLame(true)
		}, Unknown, "com.deleg.example.net", ""},
		{"a CNAME in a zone below", func(l *lab) {
			l.AddZone("com.deleg.example.net", l.ns["ns.other.org"])
			l.Add("com.deleg.example.net", record+" CNAME x.other.org.")
		}, Wrong, "CNAME itself", "zone com.deleg.example.net"},
		{"the alias zone's servers fail", func(l *lab) { l.ns[alias].SetRcodeFor(record, dns.RcodeServerFailure) }, Unknown, "SERVFAIL", ""},
		{"the alias zone's servers are dead", func(l *lab) {
			l.AddZone("two.example.net", l.ns[alias])
			l.ns[alias].SetDead(true)
		}, Unknown, "deleg.example.net", ""},
		{"the alias zone is not delegated", func(l *lab) { l.Undelegate("deleg.example.net") }, OK, "", "zone example.net"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			tt.prepare(l)
			target := delegated(t)
			if strings.Contains(tt.name, "of two") {
				target.Record, target.Alias = strings.Replace(record, "deleg", "two", 1), "two.example.net"
			}
			l.add(challenge + " CNAME " + target.Record)
			v := Check(t.Context(), l.client, l.panel(t), target)
			if v.Status != tt.want || !strings.Contains(v.Reason, tt.says) {
				t.Fatalf("verdict %+v, want %s", v, tt.want)
			}
			if notes := strings.Join(v.Notes, "\n"); (tt.note == "") != (notes == "") || !strings.Contains(notes, tt.note) {
				t.Errorf("notes %q", notes)
			}
			if err := v.Err(); (err != nil) != (tt.want == Wrong) {
				t.Errorf("error %v", err)
			}
			if n := len(l.Matching(target.Record, dns.TypeTXT)); n > 2 {
				t.Errorf("%d questions about the record", n)
			}
		})
	}
}

// A server that does not answer while another does is named.
func TestCheckNamesWhoFails(t *testing.T) {
	for name, prepare := range map[string]func(*dnstest.Server){
		"SERVFAIL": func(s *dnstest.Server) { s.SetRcodeFor(challenge, dns.RcodeServerFailure) },
		"lame":     func(s *dnstest.Server) { s.SetLame(true) },
		"dead":     func(s *dnstest.Server) { s.SetDead(true) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.add(challenge + " CNAME " + record)
			prepare(l.ns["ns2.example.com"])
			v := Check(t.Context(), l.client, l.panel(t), delegated(t))
			if v.Status != OK || len(v.Failing) != 1 || v.Failing[0].Server != "ns2.example.com" {
				t.Errorf("verdict %+v", v)
			}
		})
	}
}

func TestCheckRefusesASharedZone(t *testing.T) {
	tests := []struct {
		name, alias, domain string
		prepare             func(*lab)
		refused             bool
	}{
		{"alias inside the served zone", "acme.example.com", "svc.example.com", nil, true},
		{"alias below the domain", "acme.svc.example.com", "svc.example.com", nil, true},
		{"alias in the zone above the served one", "acme.example.com", "svc.example.com", func(l *lab) {
			l.AddZone("svc.example.com", l.ns["ns.other.org"])
		}, true},
		{"delegated child", "acme.example.com", "svc.example.com", func(l *lab) {
			l.AddZone("acme.example.com", l.ns["ns.other.org"])
		}, false},
		{"child on the same servers", "acme.example.com", "svc.example.com", func(l *lab) {
			l.AddZone("acme.example.com", l.ns["ns1.example.com"], l.ns["ns2.example.com"])
		}, false},
		{"alias in a zone of its own, below the apex", "acme.deleg.example.net", "svc.example.com", nil, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			target, err := Settings{Aliases: []string{tt.alias}}.Target(tt.domain)
			if err != nil {
				t.Fatal(err)
			}
			l.add(target.Line())
			if tt.prepare != nil {
				tt.prepare(l)
				if z := "svc.example.com"; tt.refused {
					l.Add(z, target.Line())
				}
			}
			v := Check(t.Context(), l.client, l.panel(t), target)
			if !tt.refused {
				if v.Status != OK {
					t.Errorf("verdict %+v, want ok", v)
				}
				return
			}
			if err := v.Err(); v.Status != Wrong || fault.KindOf(err) != fault.Usage || !strings.Contains(err.Error(), tt.alias) {
				t.Errorf("verdict %+v with error %v, want one of kind Usage that names the alias zone", v, err)
			}
		})
	}
}

func TestCheckWithoutDelegation(t *testing.T) {
	tests := []struct {
		name    string
		prepare func(*lab)
		want    Status
	}{
		{"nothing there", func(*lab) {}, OK},
		{"a TXT", func(l *lab) { l.add(challenge + " TXT foreign") }, OK},
		{"a CNAME", func(l *lab) { l.add(challenge + " CNAME " + record) }, Wrong},
		{"a CNAME that one server lacks", func(l *lab) {
			l.ns["ns2.example.com"].SetLag(time.Hour)
			l.add(challenge + " CNAME " + record)
		}, Unknown},
		{"two CNAMEs", func(l *lab) {
			l.add(challenge + " CNAME " + record)
			l.ns["ns2.example.com"].SetLag(time.Hour)
			l.Remove("example.com", challenge+" CNAME "+record)
			l.add(challenge + " CNAME x.other.org.")
		}, Wrong},
		{"a wildcard's CNAME", func(l *lab) { l.add("*.example.com CNAME lb.other.org.") }, OK},
		{"dead servers", func(l *lab) {
			l.ns["ns1.example.com"].SetDead(true)
			l.ns["ns2.example.com"].SetDead(true)
		}, Unknown},
		{"the resolver fails", func(l *lab) { l.FailAsk("example.com", dnstest.ServFail) }, Unknown},
		{"the challenge is a zone", func(l *lab) { l.AddZone(challenge, l.ns["ns.other.org"]) }, OK},
	}
	target, err := Settings{}.Target("svc.example.com")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			tt.prepare(l)
			v := Check(t.Context(), l.client, l.panel(t), target)
			if v.Status != tt.want {
				t.Fatalf("verdict %+v, want %s", v, tt.want)
			}
			if err := v.Err(); (err != nil) != (tt.want == Wrong) {
				t.Errorf("error %v", err)
			} else if err != nil && !strings.Contains(err.Error()+fault.HintOf(err), "ACME_CHALLENGE_ALIAS") {
				t.Errorf("error %v does not name the setting", err)
			}
		})
	}
}

// TestCheckAsksEveryServerItself counts on the log of the servers: each of the served zone has been asked
// about the challenge without recursion.
func TestCheckAsksEveryServerItself(t *testing.T) {
	l := newLab(t)
	l.add(challenge + " CNAME " + record)
	target, err := Settings{Aliases: []string{"deleg.example.net"}}.Target("svc.example.com")
	if err != nil {
		t.Fatal(err)
	}
	if v := Check(t.Context(), l.client, l.panel(t), target); v.Status != OK {
		t.Fatalf("verdict %+v", v)
	}
	asked := map[string]bool{}
	for _, q := range l.Queries() {
		if !q.Recursive && q.Name == challenge && !q.RD {
			asked[q.Server] = true
		}
	}
	if !asked["ns1.example.com"] || !asked["ns2.example.com"] {
		t.Errorf("asked %v, want both servers", asked)
	}
}

func TestCheckEndsWithContext(t *testing.T) {
	l := newLab(t)
	l.FailAsk("example.com", dnstest.Timeout)
	target, err := Settings{Aliases: []string{"deleg.example.net"}}.Target("svc.example.com")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if v := Check(ctx, l.client, l.panel(t), target); v.Status != Unknown || v.Reason == "" {
		t.Errorf("verdict %+v, want unknown with a reason", v)
	}
}

func TestNotDelegated(t *testing.T) {
	target, err := Settings{Aliases: []string{"deleg.example.net"}}.Target("svc.example.com")
	if err != nil {
		t.Fatal(err)
	}
	v := NotDelegated(target, "example.net")
	if err := v.Err(); fault.KindOf(err) != fault.Verdict || !strings.Contains(err.Error(), "NS records") || !strings.Contains(err.Error(), line) {
		t.Errorf("error %v", err)
	}
}

package propagation

import (
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/authority"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/resolver"
	"github.com/certhook/certhook/tests/dnstest"
)

const record = "_acme-challenge.svc.example.com." + zoneName

// lab is a world with a zone on three servers, and that zone as a client finds it.
func lab(t *testing.T) (*dnstest.World, *authority.Client, []*dnstest.Server, Group) {
	t.Helper()
	w := dnstest.New(t)
	var servers []*dnstest.Server
	for _, host := range []string{"ns1.example", "ns2.example", "ns3.example"} {
		servers = append(servers, w.AddServer(host))
	}
	w.AddZone(zoneName, servers...)
	c := &authority.Client{Recursive: w, Port: w.Port, Timeout: 300 * time.Millisecond}
	z, err := c.Zone(t.Context(), zoneName)
	if err != nil {
		t.Fatal(err)
	}
	// The second value needs escapes and more than one character-string.
	return w, c, servers, Group{z, []Value{{record, "-abc_DEF"}, {record, `a"b\c` + strings.Repeat("x", 300)}}}
}

func TestWaitOnServers(t *testing.T) {
	w, c, servers, g := lab(t)
	servers[0].SetDead(true)
	servers[1].SetLag(700 * time.Millisecond)
	servers[1].SetTCPOnly(true)
	for _, v := range g.Values {
		if err := w.AddTXT(zoneName, v.Name, v.Value, 60); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	last := map[string]time.Duration{}
	report, err := Wait(t.Context(), c, []Group{g}, Options{Timeout: 20 * time.Second, Observe: func(e Event) {
		mu.Lock()
		defer mu.Unlock()
		last[e.Server] = e.Elapsed
	}})
	if err != nil {
		t.Fatal(err)
	}
	if len(last) != 2 || last["ns2.example"] <= last["ns3.example"] {
		t.Errorf("events %v, want ns3 before ns2", last)
	}
	if len(report.Warnings) != 1 || !strings.Contains(report.Warnings[0], "ns1.example") {
		t.Errorf("warnings %q, want one about ns1", report.Warnings)
	}
	for _, q := range w.Queries() {
		if q.Recursive && q.Name != zoneName && !strings.HasPrefix(q.Name, "ns") || !q.Recursive && q.RD {
			t.Errorf("asked %v", q)
		}
	}
}

func TestWaitOnServersInVain(t *testing.T) {
	w, c, servers, g := lab(t)
	servers[0].SetLag(time.Hour)
	servers[1].SetLame(true)
	servers[2].SetNoAA(true)
	if err := w.AddTXT(zoneName, record, "foreign", 60); err != nil {
		t.Fatal(err)
	}
	servers[0].SetLag(0)
	_, err := Wait(t.Context(), c, []Group{g}, Options{Timeout: time.Second})
	if fault.KindOf(err) != fault.Propagation {
		t.Fatalf("error %v", err)
	}
	for _, word := range []string{"ns1.example", servers[0].Addr.String(), `"foreign"`, "ns2.example", "REFUSED", "ns3.example", record} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("error %q does not say %q", err, word)
		}
	}
}

// TestWaitOnResolvers asks a real resolver, which here is a server of the zone.
func TestWaitOnResolvers(t *testing.T) {
	w, c, servers, g := lab(t)
	for _, v := range g.Values {
		if err := w.AddTXT(zoneName, v.Name, v.Value, 60); err != nil {
			t.Fatal(err)
		}
	}
	servers[1].SetRcode(dns.RcodeServerFailure)
	at := func(s *dnstest.Server) resolver.Endpoint {
		return resolver.Endpoint{Transport: resolver.UDP, Addr: s.Addr, Port: w.Port}
	}
	closed := resolver.Endpoint{Transport: resolver.UDP, Addr: netip.MustParseAddr("127.255.255.254"), Port: 9}
	report, err := Wait(t.Context(), c, []Group{g}, Options{Mode: Resolvers, Timeout: 5 * time.Second, Resolvers: []resolver.Endpoint{at(servers[0]), at(servers[1]), closed}})
	if err != nil || len(report.Servers) != 3 || report.Servers[0].State != Shows || report.Servers[1].State != Silent || report.Servers[2].State != Silent {
		t.Errorf("report %+v, error %v", report, err)
	}
}

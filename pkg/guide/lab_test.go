package guide

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/certhook/certhook/pkg/authority"
	"github.com/certhook/certhook/pkg/delegation"
	"github.com/certhook/certhook/pkg/resolver"
	"github.com/certhook/certhook/tests/dnstest"
)

const (
	domain  = "svc.example.com"
	account = "https://acme-v02.api.letsencrypt.org/acme/acct/1"
	other   = "https://acme-v02.api.letsencrypt.org/acme/acct/12"

	cnameRR = "_acme-challenge.svc.example.com CNAME _acme-challenge.svc.example.com.deleg.example.net"
	value   = `letsencrypt.org;validationmethods=dns-01;accounturi=` + account
	caaRR   = `svc.example.com CAA 0 issue "` + value + `"`
	caaLine = `svc.example.com. CAA 0 issue "` + value + `"`
)

// scene is a world with the served zone, the alias zone and two resolvers.
type scene struct {
	*dnstest.World
	production []*dnstest.Server
	alias      *dnstest.Server
	resolvers  []*dnstest.Resolver
	*Guide
}

func newScene(t testing.TB) *scene {
	t.Helper()
	w := dnstest.New(t)
	s := &scene{World: w}
	s.production = []*dnstest.Server{w.AddServer("ns1.example.com"), w.AddServer("ns2.example.com")}
	s.alias = w.AddServer("ns1.example.net")
	w.AddZone("example.com", s.production...)
	w.AddZone("example.net", s.alias)
	w.AddZone("deleg.example.net", s.alias)
	s.resolvers = []*dnstest.Resolver{w.AddResolver(), w.AddResolver()}
	s.Guide = &Guide{
		DNS:   &authority.Client{Recursive: w, Port: w.Port, Timeout: 300 * time.Millisecond},
		Panel: panel(t, s.resolvers...), Interval: 20 * time.Millisecond,
	}
	return s
}

func panel(t testing.TB, resolvers ...*dnstest.Resolver) resolver.Panel {
	t.Helper()
	var endpoints []resolver.Endpoint
	for _, r := range resolvers {
		endpoints = append(endpoints, endpoint(t, r))
	}
	return resolver.NewPanel(endpoints)
}

func endpoint(t testing.TB, r *dnstest.Resolver) resolver.Endpoint {
	t.Helper()
	e, err := resolver.ParseEndpoint(r.URL())
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// create adds the records that the plan of the tests asks for.
func (s *scene) create() {
	s.Add("example.com", "svc.example.com A 192.0.2.1")
	s.Add("example.com", cnameRR)
	s.Add("example.com", caaRR)
}

// block keeps us, and nobody else, from the servers of the served zone.
func (s *scene) block() {
	for _, server := range s.production {
		server.SetBlocked(netip.MustParseAddr("127.0.0.1"))
	}
}

// plan is that of one name with delegation and a lock.
func plan(t testing.TB, name string, change ...func(*Plan)) Plan {
	t.Helper()
	p := Plan{Name: name, Method: DNS01, Include: map[Kind]bool{}}
	p.Domain, p.Wildcard = strings.CutPrefix(name, "*.")
	p.CAAOwner = p.Domain
	for _, kind := range Kinds() {
		p.Include[kind] = true
	}
	var err error
	if p.Target, err = (delegation.Settings{Aliases: []string{"deleg.example.net"}}).Target(p.Domain); err != nil {
		t.Fatal(err)
	}
	p.CAA = Lock{Issuers: []string{"letsencrypt.org"}, Accounts: []string{account}}
	for _, f := range change {
		f(&p)
	}
	return p
}

// finding returns the one of that kind.
func finding(t *testing.T, results []Result, kind Kind) Finding {
	t.Helper()
	for _, f := range results[0].Findings {
		if f.Kind == kind {
			return f
		}
	}
	t.Fatalf("no finding of kind %s: %+v", kind, results)
	return Finding{}
}

// laggards lists the servers that a finding names.
func laggards(f Finding) []string {
	var servers []string
	for _, l := range f.Lagging {
		servers = append(servers, l.Server)
	}
	slices.Sort(servers)
	return slices.Compact(servers)
}

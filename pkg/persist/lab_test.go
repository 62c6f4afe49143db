package persist

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/authority"
	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/pkg/resolver"
	"github.com/certhook/certhook/tests/dnstest"
)

const (
	domain = "svc.example.com"
	owner  = "_validation-persist.svc.example.com"
	issuer = "letsencrypt.org"
	acct   = "https://acme-v02.api.letsencrypt.org/acme/acct/1"
	good   = issuer + "; accounturi=" + acct
)

// lab is a world with the served zone example.com on two servers, a third party's zone cdn.example.net, and what is
// above them.
type lab struct {
	*dnstest.World
	client        *authority.Client
	panel         resolver.Panel
	r1, r2        *dnstest.Resolver // the panel
	one, two, cdn *dnstest.Server
}

// newLab makes a lab. The client's resolver may be asked about registered names and name servers only, and the panel
// about the record's name only.
func newLab(t *testing.T) *lab {
	t.Helper()
	w := dnstest.New(t)
	l := &lab{World: w, one: w.AddServer("one.example.com"), two: w.AddServer("two.example.com"), cdn: w.AddServer("ns.cdn.example.net")}
	w.AddZone("", w.AddServer("root.test"))
	tld := w.AddServer("tld.test")
	for _, zone := range []string{"test", "com", "net"} {
		w.AddZone(zone, tld)
	}
	w.AddZone("example.com", l.one, l.two)
	w.AddZone("example.net", l.cdn)
	w.AddZone("cdn.example.net", l.cdn)
	w.Add("example.com", domain+" A 192.0.2.1")
	l.client = &authority.Client{Recursive: w, Port: w.Port, Timeout: 400 * time.Millisecond}
	l.r1, l.r2 = w.AddResolver(), w.AddResolver()
	l.panel = panelOf(t, l.r1, l.r2)
	t.Cleanup(func() {
		for _, q := range w.Queries() {
			panel := q.Server != "" && q.Name == owner
			client := q.Server == "" && (q.Type == dns.TypeA || q.Type == dns.TypeAAAA || strings.Count(q.Name, ".") <= 1)
			if q.Recursive && !panel && !client {
				t.Errorf("a resolver was asked: %v", q)
			}
		}
	})
	return l
}

func panelOf(t *testing.T, resolvers ...*dnstest.Resolver) resolver.Panel {
	t.Helper()
	var endpoints []resolver.Endpoint
	for _, r := range resolvers {
		e, err := resolver.ParseEndpoint(r.URL())
		if err != nil {
			t.Fatal(err)
		}
		endpoints = append(endpoints, e)
	}
	return resolver.NewPanel(endpoints)
}

// add adds records such as `svc.example.com A 192.0.2.1` to the zones that they lie in.
func (l *lab) add(records ...string) {
	for _, r := range records {
		zone := ""
		for _, z := range []string{"example.com", "example.net", "cdn.example.net"} {
			if dnsname.Within(strings.TrimSuffix(strings.Fields(r)[0], "."), z) {
				zone = z
			}
		}
		l.Add(zone, r)
	}
}

// panelAsked tells how many questions the panel heard.
func (l *lab) panelAsked() int { return len(slices.Concat(l.r1.Queries(), l.r2.Queries())) }

package lab

import (
	"slices"
	"strings"

	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/tests/dnstest"
)

// The zones that tests are about. The alias zones have servers of their own; notdeleg.example.net stands
// for a zone whose name merely ends like theirs.
const (
	ProductionZone = "example.com"
	AliasZone      = "deleg.example.net"
	AliasZone2     = "deleg2.example.org"
	ParentZone     = "example.net"
	LookalikeZone  = "notdeleg.example.net"
)

// zonesOfAccount are served by the DNS provider's account, whatever the token may do.
var zonesOfAccount = []string{ProductionZone, ParentZone, LookalikeZone, AliasZone, AliasZone2}

func (l *Lab) buildWorld() {
	l.tb.Helper()
	w := dnstest.New(l.tb, dnstest.WithPort(53))
	l.World = w
	root := w.AddServerAt("a.root-servers.net", addr("127.0.2.1"))
	tld := w.AddServerAt("a.gtld-servers.net", addr("127.0.2.2"))
	parent := w.AddServerAt("ns1.example.net", addr("127.0.4.1"))
	l.Production = []*dnstest.Server{
		w.AddServerAt("ns1.example.com", addr("127.0.3.1")),
		w.AddServerAt("ns2.example.com", addr("127.0.3.2")),
	}
	l.Alias = []*dnstest.Server{
		w.AddServerAt("ada.ns.cloudflare.com", addr("127.0.5.1")),
		w.AddServerAt("bob.ns.cloudflare.com", addr("127.0.5.2")),
		w.AddServerAt("cyd.ns.cloudflare.com", addr("127.0.5.3")),
	}
	w.AddZone("", root)
	for _, zone := range []string{"com", "net", "org"} {
		w.AddZone(zone, tld)
	}
	w.AddZone(ProductionZone, l.Production...)
	w.AddZone(ParentZone, parent)
	w.AddZone(LookalikeZone, parent)
	w.AddZone("example.org", parent)
	w.AddZone(AliasZone, l.Alias...)
	w.AddZone(AliasZone2, l.Alias[:2]...)
	w.Add(ProductionZone, "example.com A 192.0.2.1")
	w.Add(ProductionZone, "svc.example.com A 192.0.2.2")
}

// Delegate adds the operator's CNAME for each domain, into the first alias zone, to production.
func (l *Lab) Delegate(domains ...string) {
	l.tb.Helper()
	for _, d := range domains {
		l.DelegateTo(d, Target(d, AliasZone))
	}
}

// DelegateTo adds the operator's CNAME for a domain with a target of choice.
func (l *Lab) DelegateTo(domain, target string) {
	l.tb.Helper()
	l.World.Add(ZoneOf(domain), cname(domain, target))
}

// Undelegate removes what [Lab.Delegate] added.
func (l *Lab) Undelegate(domain string) {
	l.tb.Helper()
	l.World.Remove(ZoneOf(domain), cname(domain, Target(domain, AliasZone)))
}

func cname(domain, target string) string {
	return strings.Join([]string{dnsname.Challenge(domain), "300 CNAME", target}, " ")
}

// ZoneOf returns the zone of the account that holds a name, the deepest one; "" if none does.
func ZoneOf(name string) string {
	zone := ""
	for _, z := range zonesOfAccount {
		if dnsname.Within(name, z) && len(z) > len(zone) {
			zone = z
		}
	}
	return zone
}

// Zones returns the zones of the account.
func Zones() []string { return slices.Clone(zonesOfAccount) }

// Target is the record that a domain's challenge has in an alias zone.
func Target(domain, alias string) string {
	return dnsname.Challenge(domain) + "." + alias
}

package cloudflare_test

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/provider"
	"github.com/certhook/certhook/pkg/provider/cloudflare"
	"github.com/certhook/certhook/pkg/provider/providertest"
	"github.com/certhook/certhook/tests/cloudflaretest"
	"github.com/certhook/certhook/tests/dnstest"
)

const (
	token   = "Zx8-TEST_token-Zx8-TEST_token-Zx8-TEST_0"
	zone    = "deleg.example.net"
	owner   = "_acme-challenge.svc.example.com." + zone
	value   = "aGVsbG8gd29ybGQtaGVsbG8gd29ybGQtaGVsbG8gd29"
	foreign = "somebody else's"
)

// allZones is what the account and the DNS have: the alias zone and the ones it is mistaken for.
var allZones = []string{"example.net", zone, "not" + zone, "sub." + zone, "example.com"}

// lab is a Cloudflare account whose zones are served in DNS.
type lab struct {
	*cloudflaretest.Server
	t     *testing.T
	world *dnstest.World
	ns    *dnstest.Server
}

// newLab makes the zones and issues the token, for the alias zone alone unless others are given.
func newLab(t *testing.T, zones ...string) *lab {
	t.Helper()
	world := dnstest.New(t)
	ns := world.AddServer("ns1.example.org")
	l := &lab{Server: cloudflaretest.New(t, world), t: t, world: world, ns: ns}
	for _, z := range allZones {
		world.AddZone(z, ns)
		l.AddZone(z)
	}
	if zones == nil {
		zones = []string{zone}
	}
	l.AddToken(cloudflaretest.Token{Secret: token, Zones: zones, ZoneRead: true, DNSEdit: true})
	return l
}

// provider makes a driver for the lab; zones are the ones known beforehand.
func (l *lab) provider(zones map[string]string) *cloudflare.Provider {
	l.t.Helper()
	p, err := cloudflare.New(cloudflare.Config{Token: token, Zones: zones, APIURL: l.URL, RetryWait: 2 * time.Millisecond})
	if err != nil {
		l.t.Fatal(err)
	}
	return p
}

// pinned is the alias zone as a journal has it.
var pinned = provider.Zone{Name: zone, ID: cloudflaretest.ZoneID(zone)}

// challenge is the record of most tests.
var challenge = provider.TXT{Name: owner, Value: value, TTL: time.Minute}

// dns asks the server for the values at a name.
func (l *lab) dns(name string) []string {
	l.t.Helper()
	client := dns.Client{Net: "tcp", Timeout: 5 * time.Second}
	server := net.JoinHostPort(l.ns.Addr.String(), strconv.Itoa(int(l.world.Port)))
	answer, _, err := client.ExchangeContext(l.t.Context(), new(dns.Msg).SetQuestion(dns.Fqdn(name), dns.TypeTXT), server)
	if err != nil {
		l.t.Fatalf("ask for TXT %q: %v", name, err)
	}
	var values []string
	for _, rr := range answer.Answer {
		if txt, ok := rr.(*dns.TXT); ok {
			values = append(values, strings.Join(txt.Txt, ""))
		}
	}
	slices.Sort(values)
	return values
}

// settle waits until no request is under way, for the client may have left it.
func (l *lab) settle() {
	busy := func(c cloudflaretest.Call) bool { return c.End.IsZero() }
	for slices.ContainsFunc(l.Calls(), busy) {
		time.Sleep(time.Millisecond)
	}
}

// everything lists all records of all zones.
func (l *lab) everything() []string {
	l.settle()
	var all []string
	for _, z := range allZones {
		for _, r := range l.Records(z) {
			all = append(all, fmt.Sprintf("%s: %s %s %s", z, r.Name, r.Type, r.Content))
		}
	}
	slices.Sort(all)
	return all
}

func (l *lab) wantUnchanged(before []string) {
	l.t.Helper()
	if now := l.everything(); !slices.Equal(now, before) {
		l.t.Errorf("records are\n%s\nwant\n%s", strings.Join(now, "\n"), strings.Join(before, "\n"))
	}
}

// asked lists the calls so far as "GET dns_records", "DELETE one" and the like.
func (l *lab) asked() []string {
	var list []string
	for _, c := range l.Calls() {
		what := "zones"
		switch strings.Count(c.Path, "/") {
		case 3:
			what = "records"
		case 4:
			what = "record"
		}
		list = append(list, c.Method+" "+what)
	}
	return list
}

func (l *lab) wantAsked(want ...string) {
	l.t.Helper()
	if got := l.asked(); !slices.Equal(got, want) {
		l.t.Errorf("requests were %q, want %q", got, want)
	}
	l.Forget()
}

func TestConformance(t *testing.T) {
	providertest.Run(t, func(t *testing.T) providertest.Harness {
		l := newLab(t, zone, "example.net")
		return providertest.Harness{
			Provider: l.provider(nil),
			Zone:     zone,
			Other:    "example.net",
			Values:   l.dns,
			Seed:     func(name, value string) { l.Seed(zone, "TXT", name, value) },
			LoseReply: func() {
				l.Break(cloudflaretest.LostReply.On(http.MethodPost, "").Times(1))
				l.Break(cloudflaretest.LostReply.On(http.MethodDelete, "").Times(1))
			},
			FailLookups: func() { l.Break(cloudflaretest.HTML502.On("", cloudflaretest.Zones)) },
			Stall:       func() { l.Break(cloudflaretest.Fault{Delay: time.Minute}) },
			Requests: func(zone string) int {
				n := 0
				for _, c := range l.Calls() {
					if c.Zone == zone && c.Path != cloudflaretest.Zones {
						n++
					}
				}
				return n
			},
		}
	})
}

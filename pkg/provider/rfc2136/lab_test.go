package rfc2136_test

import (
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/provider"
	"github.com/certhook/certhook/pkg/provider/providertest"
	"github.com/certhook/certhook/pkg/provider/rfc2136"
	"github.com/certhook/certhook/tests/bindtest"
)

const (
	zone   = "deleg.example.net"
	parent = "example.net"
	owner  = "_acme-challenge.svc.example.com." + zone
	value  = "aGVsbG8gd29ybGQtaGVsbG8gd29ybGQtaGVsbG8gd29"
)

// challenge is the record of most tests, aliasZone its zone as a journal has it.
var (
	challenge = provider.TXT{Name: owner, Value: value, TTL: time.Minute}
	aliasZone = provider.Zone{Name: zone}
)

// lab is a BIND whose key may do what an operator should allow and nothing more, behind a relay.
type lab struct {
	*bindtest.Server
	t     *testing.T
	key   bindtest.Key
	relay *bindtest.Relay
}

// newLab serves the alias zone, its parent and others.
func newLab(t *testing.T, others ...bindtest.Zone) *lab {
	t.Helper()
	key := bindtest.NewKey("certhook-key")
	server := bindtest.New(t, bindtest.Options{Keys: []bindtest.Key{key}, Zones: append([]bindtest.Zone{
		{Name: zone, Policy: []string{"grant certhook-key. name " + owner + ". TXT"}},
		{
			Name: parent, Policy: []string{"grant certhook-key. name _acme-challenge.example.net. TXT", "grant certhook-key. name " + owner + ". TXT"},
			Records: []string{zone + " NS ns." + zone, "ns." + zone + " A 127.0.0.1"},
		},
	}, others...)})
	return &lab{Server: server, t: t, key: key, relay: server.Relay(t)}
}

func (l *lab) config() rfc2136.Config {
	return rfc2136.Config{
		Server: l.relay.Addr, KeyName: l.key.Name, KeySecret: l.key.Secret, KeyAlgorithm: l.key.Algorithm,
		RetryWait: time.Millisecond,
	}
}

// provider makes a driver for the lab, with settings other than the right ones if change is not nil.
func (l *lab) provider(change func(*rfc2136.Config)) *rfc2136.Provider {
	l.t.Helper()
	cfg := l.config()
	if change != nil {
		change(&cfg)
	}
	p, err := rfc2136.New(cfg)
	if err != nil {
		l.t.Fatal(err)
	}
	return p
}

// updates counts the updates so far.
func (l *lab) updates() int {
	n := 0
	for _, m := range l.relay.Messages() {
		if bindtest.IsUpdate(m) {
			n++
		}
	}
	return n
}

// values are those at the owner in the alias zone, visible or not.
func (l *lab) values() string { return strings.Join(l.TXT(zone, owner), ",") }

func (l *lab) wantValues(want string) {
	l.t.Helper()
	if got := l.values(); got != want {
		l.t.Errorf("the zone has %q, want %q", got, want)
	}
}

// refused checks an error that has to be there: its kind, that it tells what went wrong and what to do, and
// that it is silent about the secret.
func refused(t *testing.T, secret string, err error, text, hint string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	t.Logf("%v\nhint: %s", err, fault.HintOf(err))
	if kind := fault.KindOf(err); kind != fault.Provider {
		t.Errorf("error of kind %d, want Provider", kind)
	}
	if !strings.Contains(err.Error(), text) {
		t.Errorf("the error does not have %q: %v", text, err)
	}
	if !strings.Contains(fault.HintOf(err), hint) || fault.HintOf(err) == "" {
		t.Errorf("the hint does not have %q: %s", hint, fault.HintOf(err))
	}
	if secret != "" && strings.Contains(err.Error()+fault.HintOf(err), secret[:12]) {
		t.Errorf("the secret is in %v", err)
	}
}

func TestConformance(t *testing.T) {
	l := newLab(t)
	zoneOf := func(name string) string {
		if dnsname.Within(name, zone) {
			return zone
		}
		return parent
	}
	providertest.Run(t, func(t *testing.T) providertest.Harness {
		l.Reset(zone)
		l.Reset(parent)
		relay := l.Relay(t)
		return providertest.Harness{
			Provider:    l.provider(func(c *rfc2136.Config) { c.Server = relay.Addr }),
			Zone:        zone,
			Other:       parent,
			Values:      func(name string) []string { return l.TXT(zoneOf(name), name) },
			Seed:        func(name, value string) { l.Add(zoneOf(name), name+` 60 TXT "`+value+`"`) },
			LoseReply:   func() { relay.Break(bindtest.LoseReply, bindtest.IsUpdate, 1) },
			FailLookups: func() { relay.Break(bindtest.ServFail, bindtest.Question(dns.TypeSOA), -1) },
			Stall:       func() { relay.Break(bindtest.Stall, bindtest.Always, -1) },
			Requests: func(zone string) int {
				n := 0
				for _, m := range relay.Messages() {
					about := strings.TrimSuffix(m.Question[0].Name, ".") // of an update, the zone
					if bindtest.IsUpdate(m) && about == zone || bindtest.Question(dns.TypeTXT)(m) && zoneOf(about) == zone {
						n++
					}
				}
				return n
			},
		}
	})
}

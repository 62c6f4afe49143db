package e2e

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/tests/cloudflaretest"
	"github.com/certhook/certhook/tests/dnstest"
	"github.com/certhook/certhook/tests/lab"
)

// What auth-hook does when name servers are slow, ill or out of reach, and when a name was changed a moment ago.
// Each test has a corner of the one lab to itself. In none of them hears a recursive resolver of a challenge
// before the value can be seen.
func TestPropagation(t *testing.T) {
	l := lab.New(t, lab.Options{})
	t.Run("corners", func(t *testing.T) { // returns when all are done
		for name, test := range map[string]func(*testing.T, *lab.Lab){
			"one lags": oneLags, "some do not answer": someDoNotAnswer, "all lag": allLag,
			"port 53 blocked": portBlocked, "settle": settle,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, l)
			})
		}
	})
	for _, q := range l.World.Queries() {
		if underChallenge(q.Name) && q.From != fromHook && !strings.Contains(q.Name, blockedCorner) {
			t.Errorf("a resolver was asked about a challenge: %v", q)
		}
	}
}

// underChallenge reports whether a question about name could plant its absence where a CA looks.
func underChallenge(name string) bool {
	return slices.Contains(strings.Split(name, "."), dnsname.ChallengeLabel)
}

// blockedCorner is the one in which resolvers have to be asked in the end.
const blockedCorner = "wall"

// fromHook is the address that the hooks' own questions come from.
var fromHook = netip.MustParseAddr("127.0.0.1")

// corner has a domain and an alias zone on servers of their own, an API for the alias zone, and a journal.
type corner struct {
	*lab.Lab
	t              *testing.T
	api            *cloudflaretest.Server
	domain, record string
	zone           string // alias zone
	production     *dnstest.Server
	servers        []*dnstest.Server // of the alias zone
	caller         *caller
	settings, log  string // files
	state          string // directory
}

// newCorner makes a corner of that name. settings are added to the usual ones.
func newCorner(t *testing.T, l *lab.Lab, name string, servers int, settings map[string]string) *corner {
	t.Helper()
	dir := t.TempDir()
	production := name + "shop.com"
	c := &corner{
		Lab: l, t: t, domain: "www." + production, zone: name + "deleg.org",
		settings: filepath.Join(dir, "certhook.env"), log: filepath.Join(dir, "certhook.log"), state: filepath.Join(dir, "state"),
	}
	c.record = lab.Target(c.domain, c.zone)
	c.production = l.World.AddServer("ns1." + production)
	l.World.AddZone(production, c.production)
	l.World.Add(production, dnsname.Challenge(c.domain)+" 300 CNAME "+c.record)
	for i := range servers {
		c.servers = append(c.servers, l.World.AddServer(fmt.Sprintf("ns%d.%s", i+1, c.zone)))
	}
	l.World.AddZone(c.zone, c.servers...)
	c.api = cloudflaretest.New(t, l.World)
	c.api.AddZone(c.zone)
	c.api.AddToken(cloudflaretest.Token{Secret: lab.Token, Zones: []string{c.zone}, ZoneRead: true, DNSEdit: true})
	all := map[string]string{
		"ACME_CHALLENGE_ALIAS": c.zone, "CLOUDFLARE_API_URL": c.api.URL, "CERTHOOK_STATE_DIR": c.state, "CERTHOOK_LOG": c.log,
	}
	for key, v := range settings {
		all[key] = v
	}
	l.ConfigureAt(c.settings, all)
	c.caller = c.newCaller()
	return c
}

func (c *corner) newCaller() *caller {
	c.t.Helper()
	return newCaller(c.t, "env", "CERTHOOK_CONFIG="+c.settings)
}

// auth calls auth-hook with the corner's domain and rowValue.
func (c *corner) auth(exit int, says ...string) lab.Result {
	c.t.Helper()
	r, err := c.caller.hook("auth-hook", single(c.domain, rowValue))
	if err != nil {
		c.t.Fatal(err)
	}
	if r.Code != exit {
		c.t.Fatalf("want exit code %d: %v", exit, r)
	}
	for _, words := range says {
		if !strings.Contains(r.Stdout+r.Stderr, words) {
			c.t.Errorf("it does not say %q: %v", words, r)
		}
	}
	return r
}

// cleanUp calls cleanup-hook, after which there are only the values of others.
func (c *corner) cleanUp(others ...string) {
	c.t.Helper()
	c.caller.mustHook("cleanup-hook", single(c.domain, rowValue))
	if got := c.World.TXT(c.zone, c.record); !slices.Equal(got, others) {
		c.t.Errorf("left: %q", got)
	}
	if live := inFlightIn(c.t, c.state); len(live) > 0 {
		c.t.Errorf("still in the journal: %q", live)
	}
}

// answers returns what a server said to the hook about the record, in order.
func (c *corner) answers(server string) []dnstest.Query {
	return slices.DeleteFunc(c.World.Matching(c.record, dns.TypeTXT), func(q dnstest.Query) bool {
		return q.From != fromHook || q.Server != server || q.Rcode < 0
	})
}

func shows(q dnstest.Query) bool { return slices.Contains(q.Answer, rowValue) }

// The hook returns at the first answer of the last server that has the value in it, and asks no server again that
// has shown it.
func oneLags(t *testing.T, l *lab.Lab) {
	c := newCorner(t, l, "lag", 3, nil)
	c.servers[1].SetLag(3 * time.Second)
	c.auth(0, "visible on all 3 servers")
	for i, s := range c.servers {
		said := c.answers(s.Host)
		if first := slices.IndexFunc(said, shows); first < 0 || first != len(said)-1 || i == 1 && first < 2 {
			t.Errorf("%s showed the value at answer %d of %d", s.Host, first+1, len(said))
		}
	}
	all := c.World.Matching(c.record, dns.TypeTXT)
	if last := all[len(all)-1]; last.Server != c.servers[1].Host || !shows(last) {
		t.Errorf("the last question was %v", last)
	}
	c.cleanUp()
}

// A dead and a lame server are reported; a server is not ill for a dead IPv6 address, or for answering over TCP
// alone.
func someDoNotAnswer(t *testing.T, l *lab.Lab) {
	c := newCorner(t, l, "ill", 4, nil)
	dead, lame, six, tcp := c.servers[0], c.servers[1], c.servers[2], c.servers[3]
	dead.SetDead(true)
	lame.SetLame(true)
	tcp.SetTCPOnly(true)
	l.World.Add(c.zone, six.Host+" 3600 AAAA ::1")
	asked := beDeaf(t)
	c.auth(0, "visible on 2 of 4 servers", "2 did not answer", dead.Host+" ("+dead.Addr.String()+"): no answer in time", lame.Host+" ("+lame.Addr.String()+"): REFUSED")
	if !asked() {
		t.Errorf("%s was not asked at ::1", six.Host)
	}
	for _, s := range []*dnstest.Server{six, tcp} {
		said := c.answers(s.Host)
		if len(said) == 0 || !shows(said[len(said)-1]) {
			t.Errorf("%s: %v", s.Host, said)
		}
	}
	log, err := os.ReadFile(c.log)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(log), six.Host+" (::1) shows it") || !strings.Contains(string(log), six.Host+" ("+six.Addr.String()+") shows it") {
		t.Errorf("the log does not tell a server's addresses apart:\n%s", log)
	}
	c.cleanUp()
}

// beDeaf takes questions at ::1 and answers none. asked reports whether there was one. Without IPv6 nobody answers
// there either, and nobody can tell.
func beDeaf(t *testing.T) (asked func() bool) {
	t.Helper()
	if tcp, err := net.Listen("tcp6", "[::1]:53"); err == nil {
		t.Cleanup(func() { tcp.Close() })
	}
	udp, err := net.ListenPacket("udp6", "[::1]:53")
	if err != nil {
		return func() bool { return true }
	}
	t.Cleanup(func() { udp.Close() })
	return func() bool {
		_ = udp.SetReadDeadline(time.Now().Add(patience)) // the question waits in the socket
		_, _, err := udp.ReadFrom(make([]byte, dns.MinMsgSize))
		return err == nil
	}
}

// Exit code 12 comes with every server's last answer, and the value stays: certbot may well succeed.
func allLag(t *testing.T, l *lab.Lab) {
	c := newCorner(t, l, "late", 3, map[string]string{"PROPAGATION_TIMEOUT": "2s"})
	c.servers[0].SetLag(time.Hour)
	c.api.Seed(c.zone, "TXT", c.record, foreign)
	c.servers[1].SetLag(time.Hour)
	c.servers[2].SetLag(time.Hour)
	r := c.auth(12, "hint: ")
	if r.Stdout != "" {
		t.Errorf("stdout: %q", r.Stdout)
	}
	for i, last := range []string{"NXDOMAIN", `TXT "` + foreign + `"`, `TXT "` + foreign + `"`} {
		if s := c.servers[i]; !strings.Contains(r.Stderr, s.Host+" ("+s.Addr.String()+"): "+last) {
			t.Errorf("it does not say that %s answered %s: %v", s.Host, last, r)
		}
	}
	if !slices.Contains(c.World.TXT(c.zone, c.record), rowValue) || len(inFlightIn(t, c.state)) != 1 {
		t.Error("the value is gone, or not in the journal")
	}
	c.cleanUp(foreign)
}

// Where nothing on port 53 can be reached, resolvers over HTTPS are believed, but not before they can know.
func portBlocked(t *testing.T, l *lab.Lab) {
	const least = 30 * time.Second
	doh := l.StartDoH("dns.example.org", "127.0.0.60")
	c := newCorner(t, l, blockedCorner, 2, map[string]string{"DNS_RESOLVERS": "https://dns.example.org@127.0.0.60/dns-query"})
	for _, s := range append(c.servers, c.production) {
		s.SetBlocked(fromHook)
	}
	c.auth(0, "visible on the one resolver", "warning: no server of the zone "+c.zone, "warning: "+c.domain+": cannot tell")
	var written time.Time
	for _, call := range c.api.Calls() {
		if call.Method == "POST" {
			written = call.End
		}
	}
	asked := 0
	for _, q := range doh.Asked() {
		if !underChallenge(q.Name) {
			continue
		}
		asked++
		if waited := q.Time.Sub(written); waited < least {
			t.Errorf("the resolver was asked about %s %v after the write", q.Name, waited)
		}
	}
	if asked != 1 {
		t.Errorf("the resolver was asked %d times about the record", asked)
	}
	c.cleanUp()
}

// Whoever changed a name a moment ago, a CA may remember; but not what the same order wrote.
func settle(t *testing.T, l *lab.Lab) {
	const settle = 3 * time.Second
	c := newCorner(t, l, "calm", 2, map[string]string{"PROPAGATION_SETTLE": settle.String()})
	waits := func() int {
		t.Helper()
		log, err := os.ReadFile(c.log)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(log), "msg=settled")
	}
	both := c.domain + "," + c.domain
	for i, word := range []string{"base", "wildcard"} {
		c.caller.mustHook("auth-hook", hookCall{domain: c.domain, value: value(word), all: both, remaining: 1 - i})
	}
	if n := waits(); n != 0 {
		t.Errorf("an order waited for its own values")
	}
	changed := time.Now()
	c.caller.mustHook("cleanup-hook", hookCall{domain: c.domain, value: value("base"), all: both, remaining: 1})
	c.caller.end()

	c.caller = c.newCaller()
	c.auth(0)
	if took := time.Since(changed); waits() != 1 || took < settle-time.Millisecond { // the journal's times are in ms
		t.Errorf("the next attempt returned %v after the change; it waited %d times", took, waits())
	}
	c.cleanUp()
}

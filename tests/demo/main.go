// Demo shows what certhook does, on a terminal, as it happens: certificates issued and renewed by real
// certbot with a token for another zone, in a lab that vanishes with the program. It needs root.
package main

import (
	"crypto/x509"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/tests/cloudflaretest"
	"github.com/certhook/certhook/tests/haproxytest"
	"github.com/certhook/certhook/tests/lab"
)

func main() {
	perform := play
	if len(os.Args) > 1 {
		var exit int
		if perform, exit = choose(os.Args[1:], os.Stdout, os.Stderr); perform == nil {
			os.Exit(exit)
		}
	}
	os.Exit(lab.Enter(func() int { return lab.Play(perform) }))
}

// demo is one performance.
type demo struct {
	tb       lab.TB
	lab      *lab.Lab
	story    *story
	watch    *watch
	records  []string // names in the alias zone
	lineages []lineage
	account  string // that production is locked to
	printed  []byte // by all programs

	haproxy *haproxytest.HAProxy
	before  string   // serial that HAProxy served before the renewal
	healed  []string // what contradicts that a broken reload was made up for
	probed  int      // connections during the update
	refused []string // of them
}

// lineage is a certificate through its renewals.
type lineage struct {
	names []string
	first *x509.Certificate
}

// The names of the two certificates.
var (
	single   = []string{"svc.example.com"}
	wildcard = []string{"example.com", "*.example.com"}
)

func play(tb lab.TB) {
	d := newDemo(tb, nil)
	d.tellSituation()
	d.rehearse()
	d.issue(single)
	d.issue(wildcard)
	d.serve()
	d.renew()
	d.serveRenewed()
	d.prove()
}

// lags are by how much the alias zone's name servers are late, as they are with every big provider.
var lags = []time.Duration{0, 200 * time.Millisecond, 900 * time.Millisecond}

// newDemo brings up a lab, with settings besides the usual ones, and puts into it what the story is about.
func newDemo(tb lab.TB, settings map[string]string) *demo {
	d := &demo{tb: tb, story: newStory(os.Stdout)}
	d.lab = lab.New(tb, lab.Options{CallDelay: 80 * time.Millisecond, Settings: settings})
	for _, domain := range []string{single[0], wildcard[0]} {
		d.lab.Delegate(domain)
		record := lab.Target(domain, lab.AliasZone)
		d.lab.API.Seed(lab.AliasZone, "TXT", record, foreign)
		d.records = append(d.records, record)
	}
	for i, s := range d.lab.Alias {
		s.SetLag(lags[i])
	}
	d.watch = newWatch(d.story.event, func() []cloudflaretest.Record { return d.lab.API.Records(lab.AliasZone) })
	d.lab.API.Observe(d.watch.call)
	d.lab.World.Observe(d.watch.query)
	d.lab.Register()
	d.lock()
	return d
}

// lock has production's CAA records allow certbot's account and no other.
func (d *demo) lock() {
	before := d.account
	d.account = d.lab.Account()
	for _, domain := range []string{single[0], wildcard[0]} {
		if before != "" {
			d.lab.Unlock(domain, before)
		}
		d.lab.Lock(domain, d.account)
	}
}

func (d *demo) tellSituation() {
	d.story.say("Real certbot, HAProxy, Pebble as the CA, unbound, DNS servers and a Cloudflare API, in a sealed namespace.",
		lab.ProductionZone+" is in production. All that was ever done to it, once and by hand:")
	for i, domain := range []string{single[0], wildcard[0]} {
		d.story.say(fmt.Sprintf("  %-32s  CNAME  %s.", dnsname.Challenge(domain)+".", d.records[i]),
			fmt.Sprintf("  %-32s  CAA    0 issue \"letsencrypt.org;validationmethods=dns-01;accounturi=%s\"", domain+".", d.account))
	}
	var late []string
	for _, lag := range lags {
		late = append(late, fmt.Sprintf("%g", lag.Seconds()))
	}
	d.story.say(lab.AliasZone+" is ours. Its name servers show a change after "+strings.Join(late, ", ")+" s.",
		"At both targets stands a TXT of somebody else's, which has to stay.",
		fmt.Sprintf("The one token here may edit %s, and sees none of the account's %d other zones.",
			lab.AliasZone, len(lab.Zones())-1))
}

// rehearse shows what the program prints, shortened by what is the same in every line, and without a line
// for each server.
func (d *demo) rehearse() {
	d.story.act("$ auth-hook rehearse -d " + single[0] + " | grep -v visible")
	d.watch.begin(silent)
	d.run(func(line string) {
		line = strings.ReplaceAll(line, d.records[0], "…"+lab.AliasZone)
		line = strings.Replace(line, single[0]+": ", "", 1)
		if !strings.Contains(line, "  visible ") {
			d.story.say(line)
		}
	}, lab.Hook("auth-hook"), "rehearse", "-d", single[0])
}

func (d *demo) issue(names []string) {
	d.story.act(certonly(names))
	d.watch.begin(full)
	d.certbot(lab.IssueArgs(names...)...)
	d.watch.end()
	cert, err := d.certificate(names)
	if err != nil {
		d.tb.Fatalf("demo: certbot is content, but: %v", err)
	}
	d.lineages = append(d.lineages, lineage{names, cert})
}

// certonly is what is typed to get a certificate, shortened.
func certonly(names []string) string {
	return "$ certbot certonly --manual --preferred-challenges dns … -d " +
		strings.ReplaceAll(strings.Join(names, " -d "), wildcard[1], "'"+wildcard[1]+"'")
}

// renew renews both certificates with a new account, from which the CA has to ask for proof again.
func (d *demo) renew() {
	d.watch.begin(silent)
	d.lab.FreshAccount()
	d.lock()
	d.story.act("$ env -i PATH=/usr/bin:/bin certbot " + strings.Join(lab.RenewArgs(), " "))
	d.watch.begin(brief)
	d.watch.say("certbot", "renews both, with a new account, which the CA has to ask for proof again")
	d.certbot(lab.RenewArgs()...)
	d.watch.end()
}

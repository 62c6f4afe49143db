package delegation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/net/publicsuffix"

	"github.com/certhook/certhook/pkg/authority"
	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/pkg/resolver"
)

// Bounds of one check.
const (
	checkTimeout = 10 * time.Second
	maxChain     = 12 // names; resolvers follow about as many
)

// Check asks whether a CA that looks at t.Challenge is led to t.Record. It follows the CNAMEs itself,
// asking every authoritative server of each zone on the way, and takes at most ten seconds. Where servers
// disagree each one's way is gone, since a CA may ask any: it is OK where all lead to t.Record, Wrong where
// none does, and whatever cannot be proven is Unknown. Then the servers of the alias zone tell whether a TXT
// can stand at t.Record. Without delegation no CNAME is needed, and one that stands at t.Challenge is
// Wrong, since it hides the TXT.
//
// Recursive resolvers are asked about the registered domains around the names, to find their zones. Where
// then no authoritative server answers, panel is asked for the CNAME at the challenge and on from there;
// without delegation it is never asked.
func Check(ctx context.Context, c *authority.Client, panel resolver.Panel, t Target) Verdict {
	ctx, cancel := resolver.Limit(resolver.Remember(ctx), checkTimeout)
	defer cancel()
	k := &check{c: c, panel: panel, t: t}
	var wg sync.WaitGroup
	wg.Go(func() {
		if k.top, k.servedErr = c.Zone(ctx, authority.Registered(t.Domain)); k.servedErr == nil {
			k.served, k.servedErr = c.Within(ctx, k.top, t.Domain)
		}
	})
	if t.Alias != "" {
		wg.Go(func() { k.alias, k.aliasErr = c.Find(ctx, t.Alias) })
	}
	wg.Wait()
	v := k.verdict(ctx)
	v.Failing = append(v.Failing, k.failing...)
	return v
}

func (k *check) verdict(ctx context.Context) Verdict {
	if k.t.Alias == "" {
		return k.direct(ctx)
	}
	if k.aliasErr == nil {
		if v := k.aliasZone(ctx); v.Status == Wrong {
			return v
		}
	}
	v := k.chain(ctx)
	if v.Status != OK {
		return v
	}
	return k.atRecord(ctx, v)
}

type check struct {
	c         *authority.Client
	panel     resolver.Panel
	t         Target
	top       authority.Zone // around the domain as it was registered
	served    authority.Zone // that encloses the domain
	servedErr error
	alias     authority.Zone // that encloses the alias: itself, as a rule
	aliasErr  error

	steps   int                // of the chain so far
	failing []resolver.Laggard // servers that do not answer while others of their zone do
}

// aliasZone looks at the zone that really holds the alias; the verdict is Wrong or none.
func (k *check) aliasZone(ctx context.Context) Verdict {
	name := k.alias.Name
	switch {
	case publicSuffix(name):
		if k.undelegated(ctx) {
			return NotDelegated(k.t, name)
		}
	case k.servedErr == nil && dnsname.Within(k.served.Name, name):
		return sharedZone(k.t, name, k.served.Name)
	}
	return Verdict{}
}

// publicSuffix reports whether a zone is one that nobody puts records into, but for delegations.
func publicSuffix(zone string) bool {
	suffix, icann := publicsuffix.PublicSuffix(zone)
	return suffix == zone && (icann || !strings.Contains(zone, "."))
}

// undelegated reports whether all servers that answer for the zone around the alias say that it has no
// name servers.
func (k *check) undelegated(ctx context.Context) bool {
	proven := false
	for _, a := range k.c.QueryAll(ctx, k.alias, k.t.Alias, dns.TypeNS) {
		if _, referral := errors.AsType[*authority.Referral](a.Err); referral {
			return false
		}
		if a.Err == nil {
			proven = true
			if len(a.Msg.Answer) > 0 {
				return false
			}
		}
	}
	return proven
}

// zoneOf finds the zone around the registered name that a name on the way lies below; its servers refer to those of
// zones below, and need not agree about that either.
func (k *check) zoneOf(ctx context.Context, name string) (authority.Zone, error) {
	switch {
	case k.servedErr != nil && name == k.t.Challenge:
		return authority.Zone{}, k.servedErr
	case k.top.Name != "" && dnsname.Within(name, k.top.Name):
		return k.top, nil
	}
	return k.c.Zone(ctx, authority.Registered(name))
}

// direct is the check without delegation.
func (k *check) direct(ctx context.Context) Verdict {
	zone, err := k.zoneOf(ctx, k.t.Challenge)
	var views []view
	if err == nil {
		views, k.failing, err = k.ask(ctx, zone, k.t.Challenge)
	}
	if err != nil {
		return unknown("cannot tell whether a CNAME stands at %s: %v", k.t.Challenge, err)
	}
	hidden := 0
	for _, v := range views {
		if v.err != nil {
			return unknown("cannot tell whether a CNAME stands at %s: %s: %v", k.t.Challenge, v, v.err)
		}
		// A wildcard's CNAME goes out of the way as soon as a TXT stands at the name.
		if v.kind == cname && k.wildcard(ctx, k.t.Challenge, v) == "" {
			hidden++
		}
	}
	switch hidden {
	case 0:
		return ok("no CNAME hides %s", k.t.Challenge)
	case len(views):
		v := wrong("%s is a CNAME to %s., which hides a TXT written there, and ACME_CHALLENGE_ALIAS is not set", k.t.Challenge, views[0].target)
		v.hint = fmt.Sprintf("set ACME_CHALLENGE_ALIAS to the alias zone that %s lies in, or remove the CNAME", views[0].target)
		return v
	}
	return unknown("cannot tell whether a CNAME hides %s from a CA, for it may ask any server: those of the zone %s disagree: %s", k.t.Challenge, zone.Name, list(views))
}

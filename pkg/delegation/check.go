package delegation

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
// asking every authoritative server of each zone on the way, and takes at most ten seconds. Wrong needs
// the agreement of all servers that answer; whatever cannot be proven is Unknown. Without delegation no
// CNAME is needed, and one that stands at t.Challenge is Wrong, since it hides the TXT.
//
// Recursive resolvers are asked about the registered domains around the names, to find their zones. Where
// then no authoritative server answers, panel is asked for the CNAME at the challenge and on from there;
// without delegation it is never asked.
func Check(ctx context.Context, c *authority.Client, panel resolver.Panel, t Target) Verdict {
	ctx, cancel := context.WithTimeout(resolver.Remember(ctx), checkTimeout)
	defer cancel()
	k := &check{c: c, panel: panel, t: t}
	var wg sync.WaitGroup
	wg.Go(func() { k.served, k.servedErr = c.Find(ctx, t.Domain) })
	if t.Alias != "" {
		wg.Go(func() { k.alias, k.aliasErr = c.Find(ctx, t.Alias) })
	}
	wg.Wait()
	if t.Alias == "" {
		return k.direct(ctx)
	}
	if k.aliasErr == nil {
		if v := k.aliasZone(ctx); v.Status == Wrong {
			return v
		}
	}
	v := k.chain(ctx)
	if v.Status != OK || k.aliasErr == nil {
		return v
	}
	v.Reason = fmt.Sprintf("%s, but whether that zone is served cannot be told: %v", v.Reason, k.aliasErr)
	// A machine that cannot ask the servers of the domain cannot ask those of the alias zone either.
	if v.Source == Authoritative {
		v.Status, v.Source = Unknown, ""
	}
	return v
}

type check struct {
	c         *authority.Client
	panel     resolver.Panel
	t         Target
	served    authority.Zone // that encloses the domain
	servedErr error
	alias     authority.Zone // that encloses the alias: itself, as a rule
	aliasErr  error
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

// chain follows the CNAMEs from the challenge.
func (k *check) chain(ctx context.Context) Verdict {
	zone, err := k.zoneOf(ctx, k.t.Challenge)
	first := zone
	names := []string{k.t.Challenge}
	var step, began answer
	for len(names) <= maxChain {
		name := names[len(names)-1]
		if err == nil {
			step, err = k.ask(ctx, zone, name)
		}
		if d, differ := errors.AsType[*disagreement](err); differ {
			v := unknown("cannot tell where %s leads: %v", k.t.Challenge, err).via(names)
			if slices.ContainsFunc(d.says, func(s saying) bool { return s.leads(k.t.Record) }) {
				v.Lagging = lagging(d.says, name, k.t.Record)
				v.Partly = len(names) == 1 && !slices.ContainsFunc(d.says, func(s saying) bool { return s.kind != nothing && !s.leads(k.t.Record) })
			}
			return v
		} else if err != nil {
			return k.byResolvers(ctx, names, err)
		}
		if len(names) == 1 {
			began = step
		}
		switch {
		case step.kind != cname && len(names) == 1:
			return k.absent(ctx, zone, step)
		case step.kind != cname:
			return k.elsewhere(ctx, first, began, names)
		case step.target == k.t.Record:
			return ok("%s leads to %s", k.t.Challenge, k.t.Record).via(append(names, step.target))
		case slices.Contains(names, step.target):
			return k.circle(ctx, first, began, append(names, step.target))
		}
		names = append(names, step.target)
		if step.target == "" { // the root holds no TXT
			return k.elsewhere(ctx, first, began, names)
		}
		zone, err = k.zoneOf(ctx, step.target)
	}
	return unknown("cannot tell where %s leads: more than %d CNAMEs", k.t.Challenge, maxChain).via(names)
}

// zoneOf finds the zone of a name on the way, from the zones around the domain and the alias where it lies
// in one of them.
func (k *check) zoneOf(ctx context.Context, name string) (authority.Zone, error) {
	if k.servedErr != nil && name == k.t.Challenge {
		return authority.Zone{}, k.servedErr
	}
	return k.c.Enclosing(ctx, name, k.served, k.alias)
}

// absent is the verdict when no CNAME stands at the challenge.
func (k *check) absent(ctx context.Context, zone authority.Zone, a answer) Verdict {
	add := "add to the zone " + zone.Name
	if a.kind != txt {
		return wrong("there is no CNAME at %s", k.t.Challenge).needs(k.t, add).missing()
	}
	if w := k.wildcard(ctx, zone, a); w != "" {
		return wrong("there is no CNAME at %s, only a TXT of the wildcard %s", k.t.Challenge, w).needs(k.t, add).missing()
	}
	return wrong("a TXT at %s stands in the place of the CNAME", k.t.Challenge).
		needs(k.t, fmt.Sprintf("remove that TXT and add to the zone %s", zone.Name))
}

// elsewhere is the verdict on CNAMEs that end at another name, the last of names.
func (k *check) elsewhere(ctx context.Context, zone authority.Zone, began answer, names []string) Verdict {
	way := way(names)
	if w := k.wildcard(ctx, zone, began); w != "" {
		return wrong("%s has no CNAME of its own, and the wildcard %s leads it to %s instead of %s.", k.t.Challenge, w, way, k.t.Record).
			needs(k.t, "add to the zone "+zone.Name).missing().via(names)
	}
	return wrong("%s is a CNAME to %s instead of %s.", k.t.Challenge, way, k.t.Record).needs(k.t, "replace it by").via(names)
}

// circle is the verdict on CNAMEs that lead back, the last of names being among the others.
func (k *check) circle(ctx context.Context, zone authority.Zone, began answer, names []string) Verdict {
	way := way(names)
	if w := k.wildcard(ctx, zone, began); w != "" {
		return wrong("%s has no CNAME of its own, and the wildcard %s leads it in a circle, to %s", k.t.Challenge, w, way).
			needs(k.t, "add to the zone "+zone.Name).missing().via(names)
	}
	return wrong("the CNAME at %s leads in a circle, to %s", k.t.Challenge, way).needs(k.t, "replace it by").via(names)
}

// way tells where CNAMEs lead from the first of names.
func way(names []string) string { return strings.Join(names[1:], ". and on to ") + "." }

// direct is the check without delegation.
func (k *check) direct(ctx context.Context) Verdict {
	zone, err := k.zoneOf(ctx, k.t.Challenge)
	if err != nil {
		return unknown("cannot tell whether a CNAME stands at %s: %v", k.t.Challenge, err)
	}
	a, err := k.ask(ctx, zone, k.t.Challenge)
	if err != nil {
		return unknown("cannot tell whether a CNAME stands at %s: %v", k.t.Challenge, err)
	}
	// A wildcard's CNAME goes out of the way as soon as a TXT stands at the name.
	if a.kind != cname || k.wildcard(ctx, zone, a) != "" {
		return ok("no CNAME hides %s", k.t.Challenge)
	}
	v := wrong("%s is a CNAME to %s., which hides a TXT written there, and ACME_CHALLENGE_ALIAS is not set", k.t.Challenge, a.target)
	v.hint = fmt.Sprintf("set ACME_CHALLENGE_ALIAS to the alias zone that %s lies in, or remove the CNAME", a.target)
	return v
}

package guide

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/authority"
	"github.com/certhook/certhook/pkg/delegation"
)

// challengeRecord leads a CA from the domain to the alias zone.
func (p Plan) challengeRecord() Record {
	return Record{
		Kind: ChallengeCNAME, Name: p.Target.Challenge, Type: "CNAME", Value: p.Target.Record + ".", Exact: true,
		Note: fmt.Sprintf("leads the CA to the alias zone %s, the only one that this machine's DNS credential needs; made once", p.Target.Alias),
	}
}

// checkChallenge looks whether a CA is led to where the hooks write, with the hooks' own check.
func (g *Guide) checkChallenge(ctx context.Context, p Plan, _ *ground) Finding {
	f := Finding{Kind: ChallengeCNAME}
	if p.wantsChallenge() {
		f.Records = []Record{p.challengeRecord()}
	}
	v := delegation.Check(ctx, g.DNS, g.Panel, p.Target)
	f.Status = map[delegation.Status]Status{delegation.OK: OK, delegation.Wrong: Wrong, delegation.Unknown: Unknown}[v.Status]
	if v.Status == delegation.Wrong && v.Missing {
		f.Status = Missing
	}
	f.Detail, f.Notes = v.Reason, v.Notes
	if v.Cause != nil {
		f.Detail, f.Cause = strings.TrimSuffix(v.Reason, v.Cause.Error())+brief(v.Cause), v.Cause.Error()
	}
	if v.Status == delegation.Wrong && len(v.Chain) == 0 && g.exists(ctx, p.Target.Challenge) {
		f.Notes = append(f.Notes, fmt.Sprintf("a DNS provider that flattens CNAMEs, or proxies the name, shows none: if yours lists one at %s, turn that off for it", p.Target.Challenge))
	}
	f.Source = source(v.Source == delegation.Resolvers, v.Plain)
	f.Lagging = v.Lagging
	f.failing(v.Failing)
	f.hears(delegation.Heard(ctx, g.Panel, p.Target, v), p.Target.Challenge, "CNAME")
	return f
}

// exists reports whether an authoritative server knows of a name, whatever stands there.
func (g *Guide) exists(ctx context.Context, name string) bool {
	zone, err := g.DNS.Zone(ctx, authority.Registered(name))
	if err != nil {
		return false
	}
	for _, said := range g.DNS.QueryEveryone(ctx, zone, name, dns.TypeTXT) {
		if slices.ContainsFunc(said.Answers, func(a authority.Answer) bool { return a.Err == nil && a.Msg.Rcode == dns.RcodeSuccess }) {
			return true
		}
	}
	return false
}

// source says who told.
func source(resolvers, plain bool) Source {
	switch {
	case plain:
		return PlainDNS
	case resolvers:
		return Resolvers
	}
	return Authoritative
}

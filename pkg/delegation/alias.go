package delegation

import (
	"context"
	"fmt"

	"github.com/certhook/certhook/pkg/dnsname"
)

// atRecord looks whether a TXT can stand where v says that a CA is led. The alias zone's own servers are asked, and
// never a resolver, which would remember that there is nothing yet.
func (k *check) atRecord(ctx context.Context, v Verdict) Verdict {
	if k.aliasErr != nil {
		return v.unless("whether that zone is served cannot be told: %v", k.aliasErr)
	}
	views, failing, err := k.ask(ctx, k.alias, k.t.Record)
	if err != nil {
		return v.unless("whether a TXT can stand there cannot be told: %v", err)
	}
	v.Failing = append(v.Failing, failing...)
	v.Notes = append(v.Notes, k.lies(views[0].zone.Name)...)
	taken := 0
	for _, at := range views {
		if at.err != nil {
			return v.unless("whether a TXT can stand there cannot be told: %s: %v", at, at.err)
		}
		if at.kind != cname {
			continue
		}
		// A wildcard's CNAME goes out of the way as soon as a TXT stands at the name (RFC 4592, section 3.3.1).
		if w := k.wildcard(ctx, k.t.Record, at); w != "" {
			v.Notes = append(v.Notes, fmt.Sprintf("the wildcard %s makes %s a CNAME to %s. as long as no TXT stands there, and resolvers may remember that: better have no such wildcard in an alias zone", w, k.t.Record, at.target))
			continue
		}
		taken++
	}
	switch taken {
	case 0:
		return v
	case len(views):
		w := wrong("%s leads to %s, which is a CNAME itself, to %s., so that no TXT can stand there", k.t.Challenge, k.t.Record, views[0].target).via(append([]string{k.t.Challenge}, v.Chain...))
		w.hint = fmt.Sprintf("remove the CNAME at %s from the zone %s", k.t.Record, views[0].zone.Name)
		w.Notes, w.Failing = v.Notes, v.Failing
		return w
	}
	return v.doubt("whether a TXT can stand there cannot be told, for a CA may ask any server: those of the zone %s disagree about it: %s", k.alias.Name, list(views))
}

// lies notes that the record lies in another zone than the alias.
func (k *check) lies(zone string) []string {
	how := "which the alias zone delegates"
	switch {
	case zone == k.t.Alias:
		return nil
	case dnsname.Below(k.t.Alias, zone):
		how = fmt.Sprintf("for %s is not delegated", k.t.Alias)
	}
	return []string{fmt.Sprintf("%s lies in the zone %s, %s: the DNS credential has to be for that zone", k.t.Record, zone, how)}
}

// doubt is a verdict that was OK and, for that reason, is Unknown.
func (v Verdict) doubt(format string, args ...any) Verdict {
	v.Reason = fmt.Sprintf("%s, but %s", v.Reason, fmt.Sprintf(format, args...))
	v.Status, v.Source, v.Cause = Unknown, "", last(args)
	return v
}

// unless is [Verdict.doubt] because no server of the alias zone can be asked. A machine that cannot ask the
// servers of the domain cannot ask those of the alias zone either, which is then no reason to doubt.
func (v Verdict) unless(format string, args ...any) Verdict {
	doubted := v.doubt(format, args...)
	if v.Source == Authoritative {
		return doubted
	}
	v.Reason, v.Cause = doubted.Reason, doubted.Cause
	return v
}

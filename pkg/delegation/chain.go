package delegation

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/certhook/certhook/pkg/authority"
	"github.com/certhook/certhook/pkg/resolver"
)

// maxSteps bounds the steps on all ways together: where servers disagree, each of their ways is gone.
const maxSteps = 4 * maxChain

// trail is a way from the challenge.
type trail struct {
	names []string // the challenge and where CNAMEs lead from there, so far
	began view     // what stands at the challenge
}

// chain follows the CNAMEs from the challenge.
func (k *check) chain(ctx context.Context) Verdict {
	zone, err := k.zoneOf(ctx, k.t.Challenge)
	return k.follow(ctx, zone, err, trail{names: []string{k.t.Challenge}})
}

// follow goes on from the last name of a trail, which lies in zone unless err says that it cannot be found. A CA may
// ask any server, so that where they disagree each one's way is gone.
func (k *check) follow(ctx context.Context, zone authority.Zone, err error, t trail) Verdict {
	name := t.names[len(t.names)-1]
	if k.steps++; len(t.names) > maxChain || k.steps > maxSteps {
		return unknown("cannot tell where %s leads: more than %d CNAMEs", k.t.Challenge, maxChain).via(t.names)
	}
	var views []view
	if err == nil {
		var failed []resolver.Laggard
		views, failed, err = k.ask(ctx, zone, name)
		k.failing = append(k.failing, failed...)
	}
	if err != nil {
		return k.byResolvers(ctx, t.names, err)
	}
	verdicts := make([]Verdict, len(views))
	for i, v := range views {
		verdicts[i] = k.step(ctx, v, t)
	}
	return k.worst(zone.Name, t.names, views, verdicts)
}

// step is the verdict on what one server's view of the last name of a trail comes to.
func (k *check) step(ctx context.Context, v view, t trail) Verdict {
	if v.err != nil {
		return k.byResolvers(ctx, t.names, v.err)
	}
	first := len(t.names) == 1
	if first {
		t.began = v
	}
	switch {
	case v.kind != cname && first:
		return k.absent(ctx, v)
	case v.kind != cname:
		return k.elsewhere(ctx, t)
	}
	back := slices.Contains(t.names, v.target)
	t.names = append(slices.Clip(t.names), v.target)
	switch {
	case v.target == k.t.Record:
		return ok("%s leads to %s", k.t.Challenge, k.t.Record).via(t.names)
	case back:
		return k.circle(ctx, t)
	case v.target == "": // the root holds no TXT
		return k.elsewhere(ctx, t)
	}
	zone, err := k.zoneOf(ctx, v.target)
	return k.follow(ctx, zone, err, t)
}

// worst is the verdict on several views that the servers of a zone have of the last of names, given that on each: it
// is fine only where all are, and proven to be wrong only where none can be right.
func (k *check) worst(zone string, names []string, views []view, verdicts []Verdict) Verdict {
	worst := verdicts[0]
	if len(views) == 1 {
		return worst
	}
	name := names[len(names)-1]
	differ := fmt.Sprintf("the servers of the zone %s disagree about %s: %s", zone, name, list(views))
	fine, no := 0, 0
	for _, v := range verdicts {
		switch v.Status {
		case OK:
			fine++
		case Wrong:
			no++
		}
		worst.Missing = worst.Missing && v.Missing
		worst.Plain = worst.Plain || v.Plain
		if v.Source == Resolvers {
			worst.Source = Resolvers
		}
	}
	switch len(verdicts) {
	case fine:
		for _, v := range views[1:] {
			for _, server := range v.servers {
				worst.Lagging = append(worst.Lagging, resolver.Laggard{Server: server, Says: fmt.Sprintf("has %s at %s", v.fact, name)})
			}
		}
		return worst
	case no:
		worst.Reason = fmt.Sprintf("%s, and none of that leads to %s", differ, k.t.Record)
		return worst.needs(k.t, "let all of them have")
	}
	return unknown("cannot tell where a CA is led from %s, for it may ask any server: %s", k.t.Challenge, differ).via(names)
}

// absent is the verdict when no CNAME stands at the challenge.
func (k *check) absent(ctx context.Context, v view) Verdict {
	add := "add to the zone " + k.holder(ctx, k.t.Challenge, v)
	if v.kind != txt {
		return wrong("there is no CNAME at %s", k.t.Challenge).needs(k.t, add).missing()
	}
	if w := k.wildcard(ctx, k.t.Challenge, v); w != "" {
		return wrong("there is no CNAME at %s, only a TXT of the wildcard %s", k.t.Challenge, w).needs(k.t, add).missing()
	}
	return wrong("a TXT at %s stands in the place of the CNAME", k.t.Challenge).
		needs(k.t, "remove that TXT and "+add)
}

// elsewhere is the verdict on CNAMEs that end at another name.
func (k *check) elsewhere(ctx context.Context, t trail) Verdict {
	way := way(t.names)
	if w := k.wildcard(ctx, k.t.Challenge, t.began); w != "" {
		return wrong("%s has no CNAME of its own, and the wildcard %s leads it to %s instead of %s.", k.t.Challenge, w, way, k.t.Record).
			needs(k.t, "add to the zone "+k.holder(ctx, k.t.Challenge, t.began)).missing().via(t.names)
	}
	return wrong("%s is a CNAME to %s instead of %s.", k.t.Challenge, way, k.t.Record).needs(k.t, "replace it by").via(t.names)
}

// circle is the verdict on CNAMEs that lead back, to one of the names before.
func (k *check) circle(ctx context.Context, t trail) Verdict {
	way := way(t.names)
	if w := k.wildcard(ctx, k.t.Challenge, t.began); w != "" {
		return wrong("%s has no CNAME of its own, and the wildcard %s leads it in a circle, to %s", k.t.Challenge, w, way).
			needs(k.t, "add to the zone "+k.holder(ctx, k.t.Challenge, t.began)).missing().via(t.names)
	}
	return wrong("the CNAME at %s leads in a circle, to %s", k.t.Challenge, way).needs(k.t, "replace it by").via(t.names)
}

// way tells where CNAMEs lead from the first of names.
func way(names []string) string { return strings.Join(names[1:], ". and on to ") + "." }

package caa

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/authority"
	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/pkg/resolver"
)

// fact is what one server says of a name.
type fact struct {
	server  string
	records []*dns.CAA
	target  string // of the CNAME; "." for the root, "" for none
}

// face is what a CA finds at a name that asks some servers of its zone, at the target of their CNAME included.
type face struct {
	servers []string
	records []*dns.CAA
	end     string // of the CNAMEs; "" where there is none
	err     error  // the target cannot be learnt of
}

// authorities asks every server of the zone and of those below it. passed are the CNAMEs that led to the name.
func (l *lookup) authorities(ctx context.Context, zone authority.Zone, name string, passed []string) answer {
	var facts []fact
	var dead []face
	var failed []error
	var failing []resolver.Laggard
	for _, said := range l.c.QueryEveryone(ctx, zone, name, dns.TypeCAA) {
		alive := said.Refers
		for _, a := range said.Answers {
			err := a.Err
			if err == nil {
				err = noTopLevel(a.Msg, a.Server, name)
			}
			if err != nil {
				failed = append(failed, fmt.Errorf("%s: %w", a.Server, err))
				failing = append(failing, resolver.Silent(a.Server, name, err))
				continue
			}
			alive = true
			if f := read(a.Server, a.Msg, name); !slices.ContainsFunc(facts, f.same) {
				facts = append(facts, f)
			}
		}
		if !alive {
			err := cmp.Or(said.Err, errors.Join(failed...))
			failed = append(failed, said.Err)
			dead = append(dead, face{servers: []string{"those of the zone " + said.Zone.Name}, err: err})
		}
	}
	if len(facts) == 0 {
		return answer{err: fmt.Errorf("no server of the zone %s answers: %w", zone.Name, errors.Join(failed...))}
	}
	found := l.merge(ctx, name, facts, dead, passed)
	found.failing = append(found.failing, failing...)
	return found
}

// same reports whether it is what the same server has said before.
func (f fact) same(o fact) bool {
	return f.server == o.server && f.target == o.target && same(f.records, o.records)
}

// read takes from an answer what it says of name; what a server tells of a CNAME's target is another zone's business.
func read(server string, m *dns.Msg, name string) fact {
	f := fact{server: server}
	for _, rr := range m.Answer {
		if resolver.Canonical(rr.Header().Name) != name {
			continue
		}
		switch rr := rr.(type) {
		case *dns.CAA:
			f.records = append(f.records, rr)
		case *dns.CNAME:
			f.target = cmp.Or(resolver.Canonical(rr.Target), ".")
		}
	}
	return f
}

// merge makes one answer of what servers say of a name. Records at the name itself keep those of a CNAME's target
// out. dead are zones to which some refer and that do not answer.
func (l *lookup) merge(ctx context.Context, name string, facts []fact, dead []face, passed []string) answer {
	union := records{}
	for _, f := range facts {
		union.add(f.records)
	}
	found := answer{proven: true, lagging: disagree(name, union, facts)}
	direct := len(union) > 0
	groups := group(facts)
	for _, g := range groups {
		found.sources = append(found.sources, g.servers...)
		if g.target == "" {
			found.faces = append(found.faces, face{servers: g.servers, records: g.records})
			continue
		}
		at := l.target(ctx, name, g.target, passed)
		switch {
		case at.err != nil && !direct:
			return at
		case at.err != nil:
			at.faces = []face{{err: at.err}}
		case !direct:
			union.add(at.records)
			found.end = at.end
			found.sources = append(found.sources, at.sources...)
			found.lagging = append(found.lagging, at.lagging...)
			found.failing = append(found.failing, at.failing...)
		}
		found.proven = found.proven && at.proven
		for _, f := range at.faces {
			f.end = cmp.Or(f.end, at.end)
			if len(groups) > 1 {
				f.servers = g.servers
			}
			found.faces = append(found.faces, f)
		}
	}
	found.records = union.sorted()
	found.faces = distinct(append(found.faces, dead...))
	found.proven = found.proven && len(found.lagging) == 0 && len(found.faces) == 1
	return found
}

// gathering is servers that say the same.
type gathering struct {
	fact
	servers []string
}

func group(facts []fact) []gathering {
	var groups []gathering
	for _, f := range facts {
		i := slices.IndexFunc(groups, func(g gathering) bool { return g.target == f.target && same(g.records, f.records) })
		if i < 0 {
			groups = append(groups, gathering{fact: f})
			i = len(groups) - 1
		}
		groups[i].servers = append(groups[i].servers, f.server)
	}
	slices.SortStableFunc(groups, func(a, b gathering) int { return strings.Compare(a.target, b.target) })
	return groups
}

// distinct takes together the faces with the same records: of each, a CA makes the same.
func distinct(faces []face) []face {
	var some []face
	for _, f := range faces {
		i := slices.IndexFunc(some, func(o face) bool { return o.err == nil && f.err == nil && same(o.records, f.records) })
		if i < 0 {
			some = append(some, f)
			continue
		}
		for _, s := range f.servers {
			if !slices.Contains(some[i].servers, s) {
				some[i].servers = append(slices.Clip(some[i].servers), s)
			}
		}
	}
	return some
}

func same(a, b []*dns.CAA) bool {
	x, y := records{}, records{}
	x.add(a)
	y.add(b)
	return len(x) == len(y) && x.covers(y)
}

func (r records) covers(o records) bool {
	for text := range o {
		if r[text] == nil {
			return false
		}
	}
	return true
}

// views are what comes of several faces of a name: with some of them a CA climbs on.
func (l *lookup) views(ctx context.Context, name string, faces []face) []View {
	if len(faces) < 2 {
		return nil
	}
	var views []View
	for _, f := range faces {
		these := []View{{Servers: f.servers, Set: Set{Owner: name, Target: f.end, Records: f.records}, Err: f.err}}
		if f.err == nil && len(f.records) == 0 {
			above, err := l.climb(ctx, dnsname.Parent(name))
			if these = above.Views; len(these) == 0 {
				these = []View{{Set: above, Err: err}}
			}
			for i := range these {
				these[i].Servers = slices.Concat(f.servers, these[i].Servers)
				these[i].Set.Proven = false
			}
		}
		for _, v := range these {
			if name == l.domain {
				v.Set.CNAME = f.end
			}
			views = append(views, v)
		}
	}
	return views
}

// disagree names the servers of a zone that do not have all that the zone is taken to have, or that have
// another CNAME than others.
func disagree(name string, union records, facts []fact) []resolver.Laggard {
	var lagging []resolver.Laggard
	for _, f := range facts {
		says := ""
		switch {
		case len(union) > 0:
			says = union.differs(name, name, f.records)
		case f.target != "" && slices.ContainsFunc(facts, func(o fact) bool { return o.target != f.target }):
			says = fmt.Sprintf("has the CNAME %s. at %s", strings.TrimSuffix(f.target, "."), name)
		case f.target == "" && slices.ContainsFunc(facts, func(o fact) bool { return o.target != "" }):
			says = "has no CNAME at " + name
		}
		if says != "" {
			lagging = append(lagging, resolver.Laggard{Server: f.server, Says: says})
		}
	}
	return lagging
}

// target learns of what a CNAME at name leads to. Names above it do not count.
func (l *lookup) target(ctx context.Context, name, target string, passed []string) answer {
	passed = append(slices.Clip(passed), name)
	if slices.Contains(passed, target) || len(passed) > maxChain {
		return answer{err: fmt.Errorf("%w: %s", errEndless, strings.Join(append(passed, target), " to ")), end: target}
	}
	if target == "." {
		return answer{proven: true, end: target, faces: []face{{end: target}}}
	}
	zone, err := l.c.Enclosing(ctx, target, l.known...)
	if err != nil {
		return answer{err: err, end: target}
	}
	a := l.authorities(ctx, zone, target, passed)
	a.end = cmp.Or(a.end, target)
	return a
}

var errEndless = errors.New("the CNAMEs lead nowhere")

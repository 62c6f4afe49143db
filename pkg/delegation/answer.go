package delegation

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/authority"
	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/pkg/resolver"
)

// kind is what stands at a name, as far as a CA that asks for TXT is concerned.
type kind int

const (
	nothing kind = iota // NXDOMAIN or NODATA
	txt
	cname
)

// fact is what one server says stands at a name.
type fact struct {
	kind   kind
	target string // of the CNAME
}

// leads reports whether a CNAME leads to target.
func (f fact) leads(target string) bool { return f == fact{cname, target} }

func (f fact) String() string {
	switch f.kind {
	case cname:
		return "a CNAME to " + f.target + "."
	case txt:
		return "a TXT"
	}
	return "none"
}

// view is what one or several servers of a zone say stands at a name.
type view struct {
	fact
	zone    authority.Zone   // that the servers serve
	server  authority.Server // one of them, with the one address that answered
	servers []string
	err     error // a server refers to these, and none of them answers
}

func (v view) String() string {
	if v.err != nil {
		return fmt.Sprintf("some refer to the zone %s, of which no server answers", v.zone.Name)
	}
	verb := "has"
	if len(v.servers) > 1 {
		verb = "have"
	}
	return fmt.Sprintf("%s %s %s", strings.Join(v.servers, " and "), verb, v.fact)
}

// saying is what one recursive resolver says stands at a name.
type saying struct {
	server string
	plain  bool // over plain DNS
	fact
}

func list[T fmt.Stringer](views []T) string {
	var texts []string
	for _, v := range views {
		texts = append(texts, v.String())
	}
	return strings.Join(texts, ", ")
}

func (s saying) String() string { return fmt.Sprintf("%s has %s", s.server, s.fact) }

// lagging names those who do not say that a CNAME leads from name to target.
func lagging(says []saying, name, target string) []resolver.Laggard {
	var late []resolver.Laggard
	for _, s := range says {
		if differs := s.differs(name, target); differs != "" {
			late = append(late, resolver.Laggard{Server: s.server, Says: differs})
		}
	}
	return late
}

// differs says what a server has in place of a CNAME from name to target, "" if that. It goes on where the server's
// name stops.
func (f fact) differs(name, target string) string {
	switch {
	case f.kind != cname:
		return "has no CNAME at " + name
	case f.target != target:
		return fmt.Sprintf("has the CNAME %s. at %s", f.target, name)
	}
	return ""
}

// ask asks every server of zone and of those below it what stands at name, and returns each different view, that of
// most servers first: a CA may ask any of them. A question for TXT tells it all: a server answers it with the CNAME if
// there is one. failed are the servers that do not answer while others do; it is an error if none does.
func (k *check) ask(ctx context.Context, zone authority.Zone, name string) (views []view, failed []resolver.Laggard, err error) {
	var errs []error
	alive := false
	for _, said := range k.c.QueryEveryone(ctx, zone, name, dns.TypeTXT) {
		if err := said.Dead(); err != nil {
			errs = append(errs, err)
			views = append(views, view{zone: said.Zone, servers: names(said.Zone), err: err})
			continue
		}
		for _, a := range said.Answers {
			if a.Err != nil {
				failed = append(failed, resolver.Silent(a.Server, name, a.Err))
				continue
			}
			alive = true
			in := authority.Zone{Name: apex(a.Msg, said.Zone.Name, name), Servers: said.Zone.Servers}
			views = join(views, view{
				fact: read(a.Msg, name), zone: in, servers: []string{a.Server},
				server: authority.Server{Name: a.Server, Addrs: []netip.Addr{a.Addr}},
			})
		}
	}
	if !alive {
		return nil, nil, fmt.Errorf("no server of the zone %s answers about %s: %w", views[len(views)-1].zone.Name, name, errors.Join(errs...))
	}
	slices.SortStableFunc(views, func(a, b view) int { return len(b.servers) - len(a.servers) })
	return views, failed, nil
}

func names(zone authority.Zone) []string {
	var names []string
	for _, s := range zone.Servers {
		names = append(names, s.Name)
	}
	return names
}

// holder is the name of the zone that a view of name is from, which its server may have below the one it was asked for.
func (k *check) holder(ctx context.Context, name string, v view) string {
	if zone, err := k.c.Within(ctx, authority.Zone{Name: v.zone.Name, Servers: []authority.Server{v.server}}, name); err == nil {
		return zone.Name
	}
	return v.zone.Name
}

// join adds the view of one server to others, or the server to the same view.
func join(views []view, v view) []view {
	for i, o := range views {
		if o.fact != v.fact || o.err != nil {
			continue
		}
		if !slices.Contains(o.servers, v.servers[0]) {
			views[i].servers = append(o.servers, v.servers...)
		}
		if dnsname.Below(v.zone.Name, o.zone.Name) {
			views[i].zone, views[i].server = v.zone, v.server
		}
		return views
	}
	return append(views, v)
}

// read takes from an answer what it says of name itself; what a server tells of a CNAME's target is that
// zone's business.
func read(m *dns.Msg, name string) fact {
	f := fact{}
	for _, rr := range m.Answer {
		if resolver.Canonical(rr.Header().Name) != name {
			continue
		}
		switch rr := rr.(type) {
		case *dns.CNAME:
			return fact{cname, resolver.Canonical(rr.Target)}
		case *dns.TXT:
			f.kind = txt
		}
	}
	return f
}

// apex returns the zone that an answer of zone's servers about name is from: zone, or one below that they serve, too.
func apex(m *dns.Msg, zone, name string) string {
	for _, rr := range m.Ns {
		if owner := resolver.Canonical(rr.Header().Name); rr.Header().Rrtype == dns.TypeSOA && dnsname.Within(name, owner) && dnsname.Below(owner, zone) {
			return owner
		}
	}
	return zone
}

// wildcard returns the wildcard that made up what stands at name, or "" if it stands there by itself. It asks the
// server that answered before about a name beside it that nobody can have made.
func (k *check) wildcard(ctx context.Context, name string, v view) string {
	one := authority.Zone{Name: v.zone.Name, Servers: []authority.Server{v.server}}
	same := func(name string) bool {
		a := k.c.QueryAll(ctx, one, name, dns.TypeTXT)[0]
		return a.Err == nil && read(a.Msg, name) == v.fact
	}
	parent := dnsname.Parent(name)
	if name == one.Name || !same("certhook-"+strings.ToLower(rand.Text())+"."+parent) {
		return ""
	}
	// A wildcard also makes up the names between it and the name, where nothing else stands.
	encloser := parent
	for encloser != one.Name && same(encloser) {
		encloser = dnsname.Parent(encloser)
	}
	if same("*." + encloser) {
		return "*." + encloser
	}
	return "*." + parent
}

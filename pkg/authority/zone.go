package authority

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/resolver"
)

// Zone returns the zone that encloses name, as the recursive resolver sees it: it asks for NS at name and
// above, so name must be one that exists; see [Client.Find] for others. Only an answer that there is none
// leads further up; a question that fails is an error of kind Unknown and never yields the zone above. A
// resolver may remember how things were; [Client.Within] from here tells how they are.
func (c *Client) Zone(ctx context.Context, name string) (Zone, error) {
	for n := range dnsname.Ancestors(name) {
		m, err := c.recurse(ctx, n, dns.TypeNS)
		if err != nil {
			return Zone{}, fault.Errorf(fault.Unknown, "find the zone of %q: %w", name, err)
		}
		// Records of another owner are those of a CNAME's target.
		if hosts := nameServers(m.Answer, n); len(hosts) > 0 {
			servers, err := c.servers(ctx, hosts, nil)
			if err != nil {
				return Zone{}, fault.Errorf(fault.Unknown, "find the name servers of %q: %w", n, err)
			}
			return Zone{Name: n, Servers: servers}, nil
		}
	}
	return Zone{}, fault.Errorf(fault.Unknown, "find the zone of %q: no name at or above it has NS records", name)
}

// Within returns the deepest zone at or below zone that contains name. It asks authoritative servers
// only, from those of zone down, and believes the first of a zone's servers that answers. They tell of a
// zone below by a referral or, where they serve that one too, by the owner of the SOA in their answer. It
// is an error of kind Unknown if no server of a zone on the way answers.
func (c *Client) Within(ctx context.Context, zone Zone, name string) (Zone, error) {
	for {
		next, err := c.Step(ctx, zone, name)
		if err != nil || next.Name == zone.Name {
			return next, err
		}
		zone = next
	}
}

// Step is one step of [Client.Within]: it returns the zone that the servers of zone lead to on the way to name,
// whose own servers may be dead, or zone itself if none is below it.
func (c *Client) Step(ctx context.Context, zone Zone, name string) (Zone, error) {
	if !dnsname.Within(name, zone.Name) {
		return Zone{}, fmt.Errorf("find the zone of %q below %q: the name is not within", name, zone.Name)
	}
	for asked := name; ; {
		found, err := first(ctx, zone.addrs(), func(ctx context.Context, addr netip.Addr) (finding, error) {
			return c.look(ctx, addr, zone.Name, asked)
		})
		switch {
		case err != nil:
			return Zone{}, fault.Errorf(fault.Unknown, "find the zone of %q: ask the servers of %q: %w", name, zone.Name, err)
		case found.alias && asked == zone.Name:
			return Zone{}, fault.Errorf(fault.Unknown, "find the zone of %q: the zone %q has a CNAME at its apex", name, zone.Name)
		case found.alias:
			// A CNAME is no zone's apex, so what encloses the name above encloses this one too.
			asked = dnsname.Parent(asked)
		case found.zone == zone.Name:
			return zone, nil
		default:
			servers, err := c.servers(ctx, found.hosts, found.glue)
			if err != nil {
				return Zone{}, fault.Errorf(fault.Unknown, "find the name servers of %q: %w", found.zone, err)
			}
			return Zone{Name: found.zone, Servers: servers}, nil
		}
	}
}

// finding is what one server knows of the zone that a name lies in.
type finding struct {
	zone  string
	hosts []string // servers of zone; none for the zone that was asked
	glue  map[string][]netip.Addr
	alias bool // the name is an alias, and the answer does not tell its zone
}

// look asks one server of zone which zone name lies in.
func (c *Client) look(ctx context.Context, addr netip.Addr, zone, name string) (finding, error) {
	m, err := c.Query(ctx, addr, name, dns.TypeSOA)
	if r, ok := errors.AsType[*Referral](err); ok {
		if !dnsname.Below(r.Zone, zone) {
			return finding{}, fmt.Errorf("ask %s about %q: %w", addr, name, err)
		}
		return finding{zone: r.Zone, hosts: r.Hosts, glue: within(r.Glue, zone)}, nil
	}
	if err != nil {
		return finding{}, err
	}
	apex := ""
	for _, rr := range slices.Concat(m.Answer, m.Ns) {
		owner := resolver.Canonical(rr.Header().Name)
		switch rr.(type) {
		case *dns.CNAME:
			if owner == name {
				return finding{alias: true}, nil
			}
		case *dns.SOA:
			if dnsname.Within(name, owner) && dnsname.Within(owner, zone) {
				apex = owner
			}
		}
	}
	switch apex {
	case "":
		return finding{}, &resolver.Error{
			Server: addr.String(), Name: name, Type: dns.TypeSOA,
			Err: fmt.Errorf("the answer names no SOA within %q", zone),
		}
	case zone:
		return finding{zone: zone}, nil
	}
	// A zone below, on the same server, which therefore does not refer to it.
	m, err = c.Query(ctx, addr, apex, dns.TypeNS)
	if err != nil {
		return finding{}, err
	}
	hosts := nameServers(m.Answer, apex)
	if len(hosts) == 0 {
		return finding{}, fmt.Errorf("ask %s for the name servers of %q: there are none", addr, apex)
	}
	return finding{zone: apex, hosts: hosts, glue: within(glue(m.Extra), zone)}, nil
}

// within keeps the glue of hosts in zone: a server has no say about others.
func within(glue map[string][]netip.Addr, zone string) map[string][]netip.Addr {
	kept := map[string][]netip.Addr{}
	for host, addrs := range glue {
		if dnsname.Within(host, zone) {
			kept[host] = addrs
		}
	}
	return kept
}

// nameServers returns the hosts of the NS records of owner.
func nameServers(rrs []dns.RR, owner string) []string {
	var hosts []string
	for _, rr := range rrs {
		if ns, ok := rr.(*dns.NS); ok && resolver.Canonical(ns.Hdr.Name) == owner {
			hosts = append(hosts, resolver.Canonical(ns.Ns))
		}
	}
	return hosts
}

// servers finds the addresses of hosts, those without glue by the recursive resolver. A host whose
// addresses cannot be found is a server without any; it is an error if that befalls all of them.
func (c *Client) servers(ctx context.Context, hosts []string, glue map[string][]netip.Addr) ([]Server, error) {
	slices.Sort(hosts)
	hosts = slices.Compact(hosts)
	servers := make([]Server, len(hosts))
	errs := make([]error, len(hosts))
	var wg sync.WaitGroup
	for i, host := range hosts {
		servers[i] = Server{Name: host, Addrs: glue[host]}
		if len(servers[i].Addrs) == 0 {
			wg.Go(func() { servers[i].Addrs, errs[i] = c.addresses(ctx, host) })
		}
	}
	wg.Wait()
	for i, err := range errs {
		if err == nil || len(servers[i].Addrs) > 0 {
			return servers, nil
		}
	}
	return nil, errors.Join(errs...)
}

// addresses looks a host up; what one of the two questions yields stands whatever becomes of the other.
func (c *Client) addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	types := []uint16{dns.TypeA, dns.TypeAAAA}
	found := make([][]netip.Addr, len(types))
	errs := make([]error, len(types))
	var wg sync.WaitGroup
	for i, qtype := range types {
		wg.Go(func() {
			m, err := c.recurse(ctx, host, qtype)
			if err != nil {
				errs[i] = err
				return
			}
			for _, rr := range m.Answer {
				if addr, ok := address(rr); ok {
					found[i] = append(found[i], addr)
				}
			}
		})
	}
	wg.Wait()
	return slices.Concat(found...), errors.Join(errs...)
}

// addrs returns the addresses of all servers, each server's first one before any second one.
func (z Zone) addrs() []netip.Addr {
	var all []netip.Addr
	for i, more := 0, true; more; i++ {
		more = false
		for _, s := range z.Servers {
			if i < len(s.Addrs) {
				all = append(all, s.Addrs[i])
				more = true
			}
		}
	}
	return all
}

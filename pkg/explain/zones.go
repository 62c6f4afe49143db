package explain

import (
	"context"

	"github.com/certhook/certhook/pkg/authority"
	"github.com/certhook/certhook/pkg/dnsname"
)

// locate finds the zone that encloses a name and keeps every zone on the way. With an error it returns the deepest
// zone that it got to, which may be none.
//
// It starts from the zone above the registered domain, for a resolver that cannot validate a domain does not even
// tell its servers. The zone above and the registered domain are the only names that resolvers are asked about.
func (w *walk) locate(ctx context.Context, name string) (authority.Zone, error) {
	registered := authority.Registered(name)
	at := w.deepest(name)
	if at.Name == "" {
		var err error
		for _, top := range []string{dnsname.Parent(registered), registered} {
			if at, err = w.c.Zone(ctx, top); err == nil {
				break
			}
		}
		if err != nil {
			return authority.Zone{}, err
		}
		w.keep(at, "")
	}
	for _, n := range between(at.Name, name) {
		next, err := w.c.Step(ctx, at, n)
		if err != nil && n == registered {
			// Whoever keeps us from the registry's servers may still let us ask the resolvers.
			if z, e := w.c.Zone(ctx, registered); e == nil {
				next, err = z, nil
			}
		}
		if err != nil {
			return at, err
		}
		if next.Name != at.Name {
			w.keep(next, at.Name)
			at = next
		}
	}
	return at, nil
}

// between lists the names below zone down to name, the topmost first.
func between(zone, name string) []string {
	var names []string
	for n := range dnsname.Ancestors(name) {
		if n == zone {
			break
		}
		names = append([]string{n}, names...)
	}
	return names
}

// deepest returns the longest of the zones found so far that contains name.
func (w *walk) deepest(name string) authority.Zone {
	var deepest authority.Zone
	for _, z := range w.found {
		if dnsname.Within(name, z.Name) && len(z.Name) > len(deepest.Name) {
			deepest = z
		}
	}
	return deepest
}

func (w *walk) keep(z authority.Zone, parent string) {
	shown := Zone{Name: z.Name, Servers: []Server{}, DS: DSUnknown, parent: parent}
	for _, s := range z.Servers {
		server := Server{Name: s.Name, Addresses: []string{}}
		for _, addr := range s.Addrs {
			server.Addresses = append(server.Addresses, addr.String())
		}
		shown.Servers = append(shown.Servers, server)
	}
	w.zones = append(w.zones, shown)
	w.found = append(w.found, z)
}

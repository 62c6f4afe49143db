package boulder

import (
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/pkg/resolver"
	"github.com/certhook/certhook/tests/boulder/oracle"
	"github.com/certhook/certhook/tests/dnstest"
)

// hierarchy is a world of authoritative servers, from the root down, and of resolvers.
type hierarchy struct {
	*dnstest.World
	servers [3]*dnstest.Server
	panel   resolver.Panel
}

func newHierarchy(t *testing.T) *hierarchy {
	t.Helper()
	h := &hierarchy{World: dnstest.New(t)}
	for i, host := range []string{"one.servers", "two.servers", "three.servers"} {
		h.servers[i] = h.AddServer(host)
	}
	h.AddZone("", h.servers[:]...)
	var endpoints []resolver.Endpoint
	for range resolver.Quorum {
		e, err := resolver.ParseEndpoint(h.AddResolver().URL())
		if err != nil {
			t.Fatal(err)
		}
		endpoints = append(endpoints, e)
	}
	h.panel = resolver.NewPanel(endpoints)
	return h
}

// served adds to the question what only servers can show: zone cuts, wildcards and failures.
func (g *generator) served() question {
	q := g.q.with(newer)
	for _, top := range []string{g.top, g.elsewhere} {
		q.cuts = append(q.cuts, cut{top, 1}, cut{"example." + top, g.IntN(3)})
	}
	names := slices.Collect(dnsname.Ancestors(q.domain))
	for _, name := range names {
		alias := slices.ContainsFunc(q.records, func(r record) bool { return r.owner == name && r.cname != "" })
		if strings.Count(name, ".") > 1 && !alias && g.IntN(5) == 0 {
			q.cuts = append(q.cuts, cut{name, g.IntN(3)})
		}
	}
	if above := dnsname.Parent(q.domain); g.IntN(3) == 0 {
		q.records = append(q.records, pick(g,
			record{owner: "*." + above, tag: "issue", value: oracle.Issuer},
			record{owner: "*." + above, tag: "issue", value: "ca.example"},
			record{owner: "*." + above, cname: "example." + g.elsewhere},
		))
	}
	for _, r := range q.records {
		if r.cname != "" && !strings.Contains(r.cname, "nowhere") && r.cname != "." {
			names = append(names, r.cname, dnsname.Parent(r.cname))
		}
	}
	for _, name := range names {
		if name != "" && g.IntN(12) == 0 { // the root is everybody's
			q.failing = append(q.failing, name)
		}
	}
	return q
}

// serve puts a question's records on the servers.
func (h *hierarchy) serve(q question) {
	for _, c := range q.cuts {
		h.AddZone(c.zone, h.servers[c.first:]...)
	}
	seen := map[string]bool{}
	for _, r := range q.records {
		zone := ""
		for _, c := range q.cuts {
			if dnsname.Within(r.owner, c.zone) && len(c.zone) > len(zone) {
				zone = c.zone
			}
		}
		// Add takes text, in which a value has no more than 255 octets; other words may have made two records one.
		if text := r.String(); len(r.value) <= 255 && !seen[text] {
			seen[text] = true
			h.Add(zone, text)
		}
	}
	for _, name := range q.failing {
		for _, s := range h.servers {
			s.SetRcodeFor(name, dns.RcodeServerFailure)
		}
	}
}

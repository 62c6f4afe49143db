package delegation

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/netip"
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

// answer is a fact that all servers that answered agree on, and one of them.
type answer struct {
	fact
	server authority.Server // with the one address that answered
}

// saying is what one server says stands at a name.
type saying struct {
	server string
	plain  bool // over plain DNS, from a recursive resolver
	fact
}

// disagreement is an error: servers of one zone differ about a name.
type disagreement struct {
	zone, name string
	says       []saying
}

func (d *disagreement) Error() string {
	return fmt.Sprintf("the servers of the zone %s disagree about %s: %s", d.zone, d.name, list(d.says))
}

func list(says []saying) string {
	var texts []string
	for _, s := range says {
		texts = append(texts, fmt.Sprintf("%s has %s", s.server, s.fact))
	}
	return strings.Join(texts, ", ")
}

// lagging names those who do not say that a CNAME leads from name to target.
func lagging(says []saying, name, target string) []resolver.Laggard {
	var late []resolver.Laggard
	for _, s := range says {
		switch {
		case s.kind != cname:
			late = append(late, resolver.Laggard{Server: s.server, Says: "has no CNAME at " + name})
		case s.target != target:
			late = append(late, resolver.Laggard{Server: s.server, Says: fmt.Sprintf("has the CNAME %s. at %s", s.target, name)})
		}
	}
	return late
}

// ask asks every server of zone what stands at name. A question for TXT tells it all: a server answers it
// with the CNAME if there is one. It is an error if no server answers, and a *[disagreement] if they differ.
func (k *check) ask(ctx context.Context, zone authority.Zone, name string) (answer, error) {
	var agreed answer
	var says []saying
	var failed []string
	same := true
	for _, a := range k.c.QueryAll(ctx, zone, name, dns.TypeTXT) {
		if a.Err != nil {
			failed = append(failed, fmt.Sprintf("%s: %v", a.Server, a.Err))
			continue
		}
		f := read(a.Msg, name)
		if len(says) == 0 {
			agreed = answer{f, authority.Server{Name: a.Server, Addrs: []netip.Addr{a.Addr}}}
		}
		same = same && f == agreed.fact
		says = append(says, saying{server: a.Server, fact: f})
	}
	switch {
	case len(says) == 0:
		return answer{}, fmt.Errorf("no server of the zone %s answers about %s: %s", zone.Name, name, strings.Join(failed, "; "))
	case !same:
		return answer{}, &disagreement{zone: zone.Name, name: name, says: says}
	}
	return agreed, nil
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

// wildcard returns the wildcard that made up what stands at the challenge, or "" if it stands there by
// itself. It asks the server that answered before about a name beside it that nobody can have made.
func (k *check) wildcard(ctx context.Context, zone authority.Zone, a answer) string {
	one := authority.Zone{Name: zone.Name, Servers: []authority.Server{a.server}}
	same := func(name string) bool {
		other, err := k.ask(ctx, one, name)
		return err == nil && other.fact == a.fact
	}
	parent := dnsname.Parent(k.t.Challenge)
	if k.t.Challenge == zone.Name || !same("certhook-"+strings.ToLower(rand.Text())+"."+parent) {
		return ""
	}
	// A wildcard also makes up the names between it and the challenge, where nothing else stands.
	encloser := parent
	for encloser != zone.Name && same(encloser) {
		encloser = dnsname.Parent(encloser)
	}
	if same("*." + encloser) {
		return "*." + encloser
	}
	return "*." + parent
}

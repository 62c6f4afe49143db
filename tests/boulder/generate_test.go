package boulder

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/certhook/certhook/pkg/dnsname"
)

// generator makes a question up.
type generator struct {
	*rand.Rand
	q              question
	top, elsewhere string // the domain's top-level name, and another one, for targets of CNAMEs
}

// generate makes the question of that number; equal seeds make equal questions. Its names lie below top-level
// names of its own, so that one world has room for many.
func generate(seed, number uint64) *generator {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, number)), top: fmt.Sprint("test", number), elsewhere: fmt.Sprint("cdn", number)}
	g.q = question{
		domain:   g.domain(),
		wildcard: g.IntN(3) == 0,
		method:   pick(g, "dns-01", "dns-01", "dns-01", "dns-persist-01", "http-01", "tls-alpn-01", "dns-account-01"),
		account:  pick(g, int64(1), 12, 2893451),
	}
	for name := range dnsname.Ancestors(g.q.domain) {
		switch p := g.IntN(20); {
		case p < 3 && name != g.top && name != g.registered():
			g.chain(name)
		case p < 14:
			g.set(name)
		}
	}
	if g.IntN(6) == 0 {
		g.set("*." + g.q.domain)
	}
	return g
}

func (g *generator) registered() string { return "example." + g.top }

func (g *generator) domain() string {
	labels := []string{"svc", "b", "a"}
	return strings.Join(append(labels[len(labels)-g.IntN(4):], g.registered()), ".")
}

// pick returns one of some values, each as likely as it is often among them.
func pick[T any](g *generator, values ...T) T { return values[g.IntN(len(values))] }

// add adds a record unless it is there: an RRset holds none twice.
func (g *generator) add(r record) {
	if !slices.ContainsFunc(g.q.records, func(o record) bool { return o.String() == r.String() }) {
		g.q.records = append(g.q.records, r)
	}
}

// chain makes a name a CNAME, of one step or several, that ends in a set, in nothing or not at all.
func (g *generator) chain(name string) {
	trait := "through a CNAME"
	for range g.IntN(3) {
		next := fmt.Sprintf("hop%d.%s", len(g.q.records), pick(g, g.elsewhere, "example."+g.elsewhere, g.registered()))
		g.add(record{owner: name, cname: next})
		name, trait = next, "through several CNAMEs"
	}
	switch target := fmt.Sprintf("end%d.example.%s", len(g.q.records), g.elsewhere); g.IntN(12) {
	case 0:
		g.add(record{owner: name, cname: "nothing.example." + g.elsewhere})
	case 1:
		g.add(record{owner: name, cname: pick(g, "nowhere.invalid", "nowhere", ".")})
	case 2: // round in a circle
		g.add(record{owner: name, cname: name})
	case 3: // not the target's own: Boulder does not climb from there
		g.add(record{owner: name, cname: "below.of." + target})
		g.set(target)
	case 4:
		g.add(record{owner: name, cname: g.elsewhere})
		g.set(g.elsewhere, trait)
	default:
		g.add(record{owner: name, cname: target})
		g.set(target, trait)
	}
}

// set puts a set of CAA records at a name.
func (g *generator) set(owner string, traits ...string) {
	switch owner {
	case g.q.domain:
		traits = append(traits, "at the domain")
	case g.top:
		traits = append(traits, "at the top-level name")
	case dnsname.Parent(g.q.domain):
		traits = append(traits, "at the parent")
	}
	n := pick(g, 1, 1, 2, 2, 3, 4)
	for range n {
		r := g.record(owner)
		r.traits = append(r.traits, traits...)
		if n > 1 {
			r.traits = append(r.traits, "beside others")
		}
		g.add(r)
	}
}

// record makes a CAA of any kind.
func (g *generator) record(owner string) record {
	r := record{owner: owner, flag: pick[uint8](g, 0, 0, 0, 0, 128, 1, 2, 64, 127, 255)}
	switch p := g.IntN(40); {
	case p < 22:
		r.tag = "issue"
	case p < 31:
		r.tag = "issuewild"
	case p < 34:
		r.tag = pick(g, "ISSUE", "Issue", "issueWild", "ISSUEWILD")
		r.traits = append(r.traits, "property tag in capitals")
	case p < 37:
		r.tag = pick(g, "iodef", "issuemail", "issuevmc", "IODEF", "issueVMC")
		r.traits = append(r.traits, "another property that is known")
		if r.flag&(128|1) != 0 {
			r.traits = append(r.traits, "another property that is known, critical")
		}
	default:
		r.tag = pick(g, "contactemail", "foo", "issued", "issue1", "iodef0", `i\195\159sue`, `\000issue`, `issue\032`, "is-sue")
		r.flag = pick[uint8](g, 0, 0, 0, 2, 64, 126, 128, 1, 129) // a critical one forbids all
		switch {
		case r.flag&128 != 0:
			r.traits = append(r.traits, "unknown property, critical")
		case r.flag&1 != 0:
			r.traits = append(r.traits, "unknown property, bit 1")
		default:
			r.traits = append(r.traits, "unknown property")
		}
	}
	v := g.value()
	r.value, r.traits = v.text, append(r.traits, v.traits...)
	return r
}

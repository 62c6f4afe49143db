package caa

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/resolver"
)

// fallback asks the panel because err keeps us from asking the authoritative servers.
func (l *lookup) fallback(ctx context.Context, name string, err error) answer {
	if l.panel.Size() == 0 {
		return answer{err: err, refused: refused(err)}
	}
	asking, cancel := resolver.Limit(ctx, panelTimeout)
	defer cancel()
	a := together(name, l.panel.Ask(asking, name, dns.TypeCAA))
	if a.err != nil {
		a.refused = a.refused || refused(err)
		a.err = errors.Join(err, a.err)
	}
	return a
}

// together takes what resolvers say of a name as one answer. Each may hold what was true a while ago, so
// that what any of them has counts; and one alone, whatever it says, is not believed.
func together(name string, said []resolver.Statement) answer {
	a := answer{resolvers: true}
	var failed []error
	all, encrypted := records{}, records{}
	answers, sure := 0, 0
	direct := false // records stand at the name itself
	for _, s := range said {
		err := s.Err
		if err == nil {
			err = noTopLevel(s.Msg, s.Server, name)
		}
		if err != nil {
			failed = append(failed, err)
			continue
		}
		end, rrs := follow(s.Msg, name)
		answers++
		a.sources = append(a.sources, s.Server)
		all.add(rrs)
		if !s.Plain {
			sure++
			encrypted.add(rrs)
		}
		direct = direct || end == name && len(rrs) > 0
		if end != name && (a.end == "" || len(rrs) > 0) {
			a.end = end
		}
	}
	if answers < resolver.Quorum {
		return answer{
			err:     fmt.Errorf("%d of %d resolvers answer, and it takes %d: %w", answers, len(said), resolver.Quorum, errors.Join(failed...)),
			refused: answers == 0 && len(said) >= resolver.Quorum && refused(errors.Join(failed...)),
		}
	}
	if direct {
		a.end = ""
	}
	a.plain = sure < resolver.Quorum || len(encrypted) < len(all)
	a.records = all.sorted()
	return a
}

// follow returns where the CNAMEs in an answer lead from name, "." for the root, and the records there.
func follow(m *dns.Msg, name string) (end string, rrs []*dns.CAA) {
	end, found := resolver.Follow(m, name, dns.TypeCAA)
	for _, rr := range found {
		if rr, ok := rr.(*dns.CAA); ok {
			rrs = append(rrs, rr)
		}
	}
	return cmp.Or(end, "."), rrs
}

// Heard tells which resolvers of the panel have other records than the set, or fail. It asks about the set's owner
// alone, and nothing about a set without records or where some server has none: a question about what is not there
// plants a denial.
func Heard(ctx context.Context, panel resolver.Panel, s Set) resolver.Echo {
	if len(s.Records) == 0 || slices.ContainsFunc(s.Views, func(v View) bool { return v.Err != nil || v.Set.Owner != s.Owner }) {
		return resolver.Echo{}
	}
	union := records{}
	union.add(s.Records)
	return resolver.Compare(panel.Ask(ctx, s.Owner, dns.TypeCAA), func(m *dns.Msg) string {
		end, rrs := follow(m, s.Owner)
		if slices.ContainsFunc(s.Views, func(v View) bool { return same(v.Set.Records, rrs) }) {
			return ""
		}
		return union.differs(s.Owner, end, rrs)
	})
}

// records are CAA records by what they say, whoever owns them.
type records map[string]*dns.CAA

func (r records) add(rrs []*dns.CAA) {
	for _, rr := range rrs {
		r[Text("", rr)] = rr
	}
}

// sorted returns the records in an order that does not depend on the servers'.
func (r records) sorted() []*dns.CAA {
	var rrs []*dns.CAA
	for _, text := range slices.Sorted(maps.Keys(r)) {
		rrs = append(rrs, r[text])
	}
	return rrs
}

// differs says how the records that a server has at a name, owned by the end of its CNAMEs, differ from
// these, "" if not. It goes on where the server's name stops.
func (r records) differs(name, end string, theirs []*dns.CAA) string {
	if len(theirs) == 0 {
		return "has no CAA at " + name
	}
	there := records{}
	there.add(theirs)
	var others, lacks []string
	for _, rr := range there.sorted() {
		if r[Text("", rr)] == nil {
			others = append(others, Text(end, rr))
		}
	}
	for _, rr := range r.sorted() {
		if there[Text("", rr)] == nil {
			lacks = append(lacks, Text(end, rr))
		}
	}
	switch has, not := strings.Join(others, " and "), strings.Join(lacks, " and "); {
	case len(others) > 0 && len(lacks) > 0:
		return fmt.Sprintf("has %s, and not %s", has, not)
	case len(others) > 0:
		return "has also " + has
	case len(lacks) > 0:
		return "does not have " + not
	}
	return ""
}

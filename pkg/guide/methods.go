package guide

import (
	"fmt"
	"slices"
	"strings"

	"github.com/certhook/certhook/pkg/caa"
)

// methods are those by which the name is validated, in an order that does not depend on which of them the plan is for.
func (p Plan) methods() (first string, others []string) {
	all := []string{string(p.Method)}
	for _, m := range p.CAA.Methods {
		all = append(all, string(m))
	}
	slices.Sort(all)
	all = slices.Compact(all)
	return all[0], all[1:]
}

// methods are all those by which a question's account is validated.
func methods(q caa.Question) []string { return append([]string{q.Method}, q.Methods...) }

// by is a question about one method.
func by(method string, q caa.Question) caa.Question {
	q.Method, q.Methods = method, nil
	return q
}

// evaluate is [caa.Evaluate] for all methods of a question: the account has to be let in by each.
func evaluate(q caa.Question, s caa.Set) caa.Result {
	r := caa.Evaluate(q, s)
	for _, m := range methods(q) {
		if each := caa.Evaluate(by(m, q), s); !each.Allowed {
			r.Allowed, r.Fault = false, each.Fault
			break
		}
	}
	return r
}

// pinned explains a refusal by a set that lets the account in by another method: certbot and persist-issue validate
// differently, and whoever locked the name for one of them need not have thought of the other.
func pinned(q caa.Question, s caa.Set) string {
	wanted := methods(q)
	for _, m := range []Method{DNS01, DNSPersist01, TLSALPN01} {
		if !caa.Evaluate(by(string(m), q), s).Allowed {
			continue
		}
		both := slices.Compact(slices.Sorted(slices.Values(append(wanted, string(m)))))
		return fmt.Sprintf(" (by %s it is allowed: a CAA that names one method refuses the orders by all others, and a name validated by several needs validationmethods=%s)", m, strings.Join(both, ","))
	}
	return ""
}

package boulder

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
)

// disagreement tells of a question about which two differ, as small as it can be made.
func disagreement(q question, verdicts func(question) (theirs, mine string, err error)) error {
	q = shrink(q, func(q question) bool {
		theirs, mine, err := verdicts(q)
		return err == nil && theirs != mine
	})
	theirs, mine, err := verdicts(q)
	if err != nil {
		return err
	}
	return fmt.Errorf("%v\nBoulder: %s, ours: %s", q, theirs, mine)
}

// shrink takes away what can go without changing that a question is a bad one.
func shrink(q question, bad func(question) bool) question {
	for {
		smaller := false
		for s := range q.smaller() {
			if bad(s) {
				q, smaller = s, true
				break
			}
		}
		if !smaller {
			return q
		}
	}
}

// smaller returns questions that lack one thing.
func (q question) smaller() iter.Seq[question] {
	return func(yield func(question) bool) {
		for i := range q.failing {
			s := q
			s.failing = without(q.failing, i)
			if !yield(s) {
				return
			}
		}
		for i := range q.cuts {
			s := q
			s.cuts = without(q.cuts, i)
			if !yield(s) {
				return
			}
		}
		for i := range q.records {
			s := q
			s.records = without(q.records, i)
			if !yield(s) {
				return
			}
		}
		if q.wildcard {
			s := q
			s.wildcard = false
			if !yield(s) {
				return
			}
		}
		for i, r := range q.records {
			parts := strings.Split(r.value, ";")
			for p := range parts[1:] {
				s := q
				s.records = slices.Clone(q.records)
				s.records[i].value = strings.Join(without(parts, 1+p), ";")
				if !yield(s) {
					return
				}
			}
		}
	}
}

func without[T any](list []T, i int) []T { return slices.Delete(slices.Clone(list), i, i+1) }

func TestShrink(t *testing.T) {
	q := question{
		domain: "svc.example.test", wildcard: true, method: "dns-01", account: 1, failing: []string{"test"}, cuts: []cut{{"example.test", 1}},
		records: []record{
			{owner: "svc.example.test", tag: "issue", value: "ca.example;a=1"},
			{owner: "svc.example.test", tag: "issue", value: "ca.example;a=1;bad=1; ;bad=2"},
			{owner: "example.test", cname: "test"},
		},
	}
	err := disagreement(q, func(q question) (string, string, error) {
		if strings.Contains(q.String(), "bad") {
			return allowed, forbiddenAt("x"), nil
		}
		return allowed, allowed, nil
	})
	const want = `svc.example.test, validated by dns-01, for account 1, with
  svc.example.test. CAA 0 issue "ca.example;bad=2"
Boulder: allowed, ours: forbidden at x`
	if err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

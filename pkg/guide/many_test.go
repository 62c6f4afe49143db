package guide

import (
	"fmt"
	"testing"
	"time"

	"github.com/certhook/certhook/pkg/resolver"
	"github.com/certhook/certhook/tests/dnstest"
)

// many is a scene in which every server takes 20 ms to answer, with n names that have all they need.
func many(tb testing.TB, n int) (*scene, []Plan) {
	tb.Helper()
	s := newScene(tb)
	var recursive resolver.Recursive
	for _, r := range s.resolvers {
		recursive.Endpoints = append(recursive.Endpoints, endpoint(tb, r))
	}
	s.DNS.Recursive = &recursive
	s.DNS.Timeout = 2 * time.Second
	var plans []Plan
	for i := range n {
		name := fmt.Sprintf("svc%d.example.com", i)
		s.Add("example.com", name+" A 192.0.2.1")
		s.Add("example.com", fmt.Sprintf("_acme-challenge.%s CNAME _acme-challenge.%s.deleg.example.net", name, name))
		s.Add("example.com", fmt.Sprintf(`%s CAA 0 issue %q`, name, value))
		plans = append(plans, plan(tb, name))
	}
	for _, server := range append(s.production, s.alias) {
		server.SetDelay(20 * time.Millisecond)
	}
	for _, r := range s.resolvers {
		r.SetDelay(20 * time.Millisecond)
	}
	return s, plans
}

// repeated counts the questions, and those that a server was asked before.
func repeated(queries []dnstest.Query) (all, again int) {
	type question struct {
		server, name string
		qtype        uint16
	}
	seen := map[question]bool{}
	for _, q := range queries {
		key := question{q.Server, q.Name, q.Type}
		if seen[key] {
			again++
		}
		seen[key] = true
		all++
	}
	return all, again
}

// However many names need an answer, a server is asked each question once.
func TestEachQuestionOnce(t *testing.T) {
	s, plans := many(t, 30)
	if results := s.Check(t.Context(), plans); !Fine(results) {
		t.Fatalf("%+v", results)
	}
	all, again := repeated(s.Queries())
	if again > 0 {
		t.Errorf("%d of %d questions were asked again", again, all)
	}
}

// So many names that each waits in line for longer than a look-up may take are all looked at.
func TestManyNamesAndSlowServers(t *testing.T) {
	t.Parallel()
	s, plans := many(t, 300)
	s.DNS.Timeout = 5 * time.Second // this machine may be busy with other tests
	for _, server := range append(s.production, s.alias) {
		server.SetDelay(700 * time.Millisecond)
	}
	for _, r := range s.resolvers {
		r.SetDelay(700 * time.Millisecond)
	}
	for _, r := range s.Check(t.Context(), plans) {
		for _, f := range r.Findings {
			if !f.Fine() {
				t.Fatalf("%s: %+v", r.Name, f)
			}
		}
	}
}

func BenchmarkCheck200(b *testing.B) {
	s, plans := many(b, 200)
	var all, again, before int
	for b.Loop() {
		before = len(s.Queries())
		if results := s.Check(b.Context(), plans); !Fine(results) {
			b.Fatalf("%+v", results)
		}
		all, again = repeated(s.Queries()[before:])
	}
	b.ReportMetric(float64(all), "questions/op")
	b.ReportMetric(float64(again), "repeated/op")
	b.ReportMetric(float64(all)*20, "ms-one-by-one/op")
}

package guide

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/certhook/certhook/pkg/resolver"
)

// Check looks at all plans at once and returns a result for each, in their order. Each server is asked each
// question once, however many names need the answer.
func (g *Guide) Check(ctx context.Context, plans []Plan) []Result {
	ctx = resolver.Remember(ctx)
	gr := g.survey(ctx, plans)
	results := make([]Result, len(plans))
	var wg sync.WaitGroup
	for i, p := range plans {
		checks := g.checks(p)
		results[i] = Result{Name: p.Name, Findings: make([]Finding, len(checks))}
		for j, check := range checks {
			wg.Go(func() { results[i].Findings[j] = check(ctx, p, gr).oneLine() })
		}
	}
	wg.Wait()
	for _, r := range results {
		slices.SortStableFunc(r.Findings, func(a, b Finding) int {
			return cmp.Compare(slices.Index(Kinds(), a.Kind), slices.Index(Kinds(), b.Kind))
		})
	}
	return results
}

// checks lists what is to be looked at for a plan.
func (g *Guide) checks(p Plan) []func(context.Context, Plan, *ground) Finding {
	list := []func(context.Context, Plan, *ground) Finding{g.checkCAA} // even unasked: one that forbids us is a no
	if p.Include[ChallengeCNAME] && p.Method == DNS01 {
		list = append(list, g.checkChallenge)
	}
	if p.validates() {
		list = append(list, g.checkValidation)
	}
	if p.wantsGateway() {
		list = append(list, g.checkCNAME)
	}
	if p.wantsAddress() {
		list = append(list, g.checkAddress)
	}
	if p.wantsTXT() {
		list = append(list, g.checkTXT)
	}
	return list
}

// oneLine is [oneLine] for all texts of a finding.
func (f Finding) oneLine() Finding {
	f.Detail, f.Advice = oneLine(f.Detail), oneLine(f.Advice)
	for i := range f.Notes {
		f.Notes[i] = oneLine(f.Notes[i])
	}
	return f
}

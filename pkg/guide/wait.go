package guide

import (
	"context"
	"slices"
	"time"
)

// Wait checks the plans again and again until nothing has to be done any more or the time is up, and returns
// what was found last. before is what was found already, or nil. observe is told of every pass. What once was
// fine is looked at again only at the end, when all is.
//
// The time is kept: the last sleep is cut short so that one more pass fits in, and a pass that the end of the
// time cuts off does not take back what an earlier one found. Without any time one pass is made all the same.
func (g *Guide) Wait(ctx context.Context, plans []Plan, before []Result, timeout time.Duration, observe func([]Result)) []Result {
	if timeout <= 0 {
		if before == nil {
			before = g.Check(ctx, plans)
			observe(before)
		}
		return before
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	deadline, _ := ctx.Deadline()
	results := before
	for last := false; ; {
		began := time.Now()
		whole := results == nil || Fine(results)
		if whole {
			results = merge(ctx, results, g.Check(ctx, plans))
		} else {
			results = g.pass(ctx, plans, results)
		}
		observe(results)
		left := time.Until(deadline)
		if last || left <= 0 || whole && Fine(results) {
			return results
		}
		sleep := g.Interval
		switch rest := left - time.Since(began); {
		case Fine(results): // so that all of it is looked at once more, at once
			sleep = 0
		case rest < sleep:
			sleep, last = max(0, rest), true
		}
		select {
		case <-ctx.Done():
			return results
		case <-time.After(sleep):
		}
	}
}

// pass looks again at what is not fine yet.
func (g *Guide) pass(ctx context.Context, plans []Plan, before []Result) []Result {
	var open []int
	var again []Plan
	for i, p := range plans {
		if !before[i].Fine() {
			open = append(open, i)
			again = append(again, p)
		}
	}
	results := slices.Clone(before)
	for j, r := range g.Check(ctx, again) {
		results[open[j]] = r
	}
	return merge(ctx, before, results)
}

// merge takes what was found now. Where nobody tells any more a definite no stays, so that it is not drowned; what was
// fine is not, unless it is the end of the time that has cut the questions off.
func merge(ctx context.Context, before, now []Result) []Result {
	if before == nil {
		return now
	}
	for i := range now {
		for k, f := range now[i].Findings {
			was := before[i].Findings[k]
			if f.Status == Unknown && was.Status != Unknown && (!was.Fine() || ctx.Err() != nil) {
				now[i].Findings[k] = was
			}
		}
	}
	return now
}

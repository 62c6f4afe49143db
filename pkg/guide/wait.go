package guide

import (
	"context"
	"time"
)

// Wait checks the plans again and again until nothing has to be done any more or the time is up, and returns
// what was found last. observe is told of every pass. What once was fine is not looked at again.
//
// The time is kept: the last sleep is cut short so that one more pass fits in, and a pass that the end of the
// time cuts off does not take back what an earlier one found.
func (g *Guide) Wait(ctx context.Context, plans []Plan, timeout time.Duration, observe func([]Result)) []Result {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	deadline, _ := ctx.Deadline()
	var results []Result
	for last := false; ; {
		began := time.Now()
		results = g.pass(ctx, plans, results)
		observe(results)
		left := time.Until(deadline)
		if last || left <= 0 || Fine(results) {
			return results
		}
		sleep := g.Interval
		if rest := left - time.Since(began); rest < sleep {
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
		if before == nil || !before[i].Fine() {
			open = append(open, i)
			again = append(again, p)
		}
	}
	checked := g.Check(ctx, again)
	if before == nil {
		return checked
	}
	results := append([]Result(nil), before...)
	for j, i := range open {
		results[i] = checked[j]
		for k, f := range checked[j].Findings {
			// A definite answer outlives the time-out of a later question.
			if f.Status == Unknown && before[i].Findings[k].Status != Unknown {
				results[i].Findings[k] = before[i].Findings[k]
			}
		}
	}
	return results
}

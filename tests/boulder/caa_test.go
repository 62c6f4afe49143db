// Package boulder compares what pkg/caa makes of CAA records with what Boulder does, which Let's Encrypt runs: on
// the questions that Boulder's rules were read from, and on questions made up anew each time. Wherever the two
// differ, one of them would let us believe something wrong about a domain.
//
// BOULDER_N is how many questions to make up, 20000 without it; BOULDER_SEED repeats those of an earlier run.
package boulder

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/certhook/certhook/pkg/caa"
	"github.com/certhook/certhook/tests/boulder/numbers"
	"github.com/certhook/certhook/tests/boulder/oracle"
)

// Boulder and we say the same of whatever records there are.
func TestRandomQuestions(t *testing.T) {
	n, seed := numbers.FromEnv(t)
	all := newTally()
	var mu sync.Mutex // of all
	var wg sync.WaitGroup
	workers := uint64(runtime.GOMAXPROCS(0))
	for w := range workers {
		boulder := oracle.New(t)
		wg.Go(func() {
			seen := newTally()
			for i := w; i < n && !t.Failed(); i += workers {
				if err := compare(t.Context(), boulder, generate(seed, i).q, seen); err != nil {
					t.Errorf("question %d of BOULDER_SEED=%d: %v", i, seed, err)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			all.join(seen)
		})
	}
	wg.Wait()
	t.Log(all)
	if n >= numbers.Enough && !t.Failed() {
		all.check(t)
	}
}

// compare returns an error if Boulder and we differ about a question.
func compare(ctx context.Context, boulder *oracle.Oracle, q question, seen *tally) error {
	theirs, err := ask(ctx, boulder, q.with(newer))
	if err != nil {
		return err
	}
	mine, set, err := evaluate(ctx, q)
	if err != nil {
		return err
	}
	if theirs != mine {
		return disagreement(q, func(q question) (string, string, error) {
			theirs, err := ask(ctx, boulder, q.with(newer))
			if err != nil {
				return "", "", err
			}
			mine, _, err := evaluate(ctx, q)
			return theirs, mine, err
		})
	}
	seen.count(q, set, mine)

	// Where the grammar has changed the one that is asked must not agree by chance.
	if q.with(newer).String() == q.String() {
		return nil
	}
	before, err := ask(ctx, boulder, q)
	if err != nil {
		return err
	}
	mine, _, err = evaluate(ctx, q.with(older))
	if err != nil {
		return err
	}
	if before != mine {
		return fmt.Errorf("%v\nBoulder before the change of the grammar: %s, ours in the words of that: %s", q, before, mine)
	}
	switch {
	case before == theirs:
	case theirs == allowed:
		seen.loosened++
	default:
		seen.tightened++
	}
	return nil
}

// ask returns Boulder's verdict.
func ask(ctx context.Context, boulder *oracle.Oracle, q question) (string, error) {
	answer, err := boulder.CAA(ctx, q.zone(), q.boulders())
	if err != nil {
		return "", err
	}
	return boulders(answer), nil
}

// evaluate returns our verdict, and the set that it is about.
func evaluate(ctx context.Context, q question) (string, caa.Set, error) {
	set, verdict, err := climb(ctx, q.zone(), q.domain)
	if err != nil || verdict != "" {
		return verdict, set, err
	}
	return ours(q.ours(), set), set, nil
}

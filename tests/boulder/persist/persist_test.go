// Package persist compares what pkg/persist makes of validation records with what Boulder does, which Let's Encrypt
// runs: on the questions that its rules were read from, on questions made up anew each time, and on the records that
// pkg/persist writes.
//
// BOULDER_N is how many questions to make up, 20000 without it; BOULDER_SEED repeats those of an earlier run.
package persist

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/persist"
	"github.com/certhook/certhook/tests/boulder/numbers"
	"github.com/certhook/certhook/tests/boulder/oracle"
)

// inTurn asks questions of as many Boulders as there are processors, until one of them fails.
func inTurn(t *testing.T, n uint64, ask func(boulder *oracle.Oracle, number uint64) error) {
	var wg sync.WaitGroup
	workers := uint64(runtime.GOMAXPROCS(0))
	for w := range workers {
		boulder := oracle.New(t)
		wg.Go(func() {
			for i := w; i < n && !t.Failed(); i += workers {
				if err := ask(boulder, i); err != nil {
					t.Errorf("question %d: %v", i, err)
				}
			}
		})
	}
	wg.Wait()
}

// Boulder and we say the same of whatever records there are, word for word.
func TestRandomQuestions(t *testing.T) {
	n, seed := numbers.FromEnv(t)
	var mu sync.Mutex
	allowed, seen := uint64(0), map[string]int{}
	inTurn(t, n, func(boulder *oracle.Oracle, number uint64) error {
		q := generate(seed, number)
		v, err := compare(t.Context(), boulder, q)
		if err != nil {
			return fmt.Errorf("BOULDER_SEED=%d: %w", seed, err)
		}
		mu.Lock()
		defer mu.Unlock()
		if v.allowed {
			allowed++
		}
		for _, trait := range q.traits {
			seen[trait]++
		}
		return nil
	})
	t.Logf("%d of %d are allowed; among them %v", allowed, n, seen)
	if n < numbers.Enough || t.Failed() {
		return
	}
	if allowed*5 < n || allowed*5 > n*4 {
		t.Errorf("%d of %d questions are allowed: not a fifth of each kind", allowed, n)
	}
	for _, trait := range traits {
		if seen[trait] == 0 {
			t.Errorf("no question has %q in it", trait)
		}
		delete(seen, trait)
	}
	for trait := range maps.Keys(seen) {
		t.Errorf("%q is not among the traits to be counted", trait)
	}
}

// compare returns an error if Boulder and we differ about a question.
func compare(ctx context.Context, boulder *oracle.Oracle, q question) (verdict, error) {
	answer, err := boulder.Persist(ctx, q, q.Validation)
	if err != nil {
		return verdict{}, err
	}
	mine, err := q.evaluate(ctx)
	if err != nil {
		return verdict{}, err
	}
	if theirs := boulders(answer); theirs != mine {
		return verdict{}, fmt.Errorf("%v\nBoulder: %+v\nours:    %+v", q, theirs, mine)
	}
	return mine, nil
}

// The Boulder that is asked here gives the answers that are on record. What we make of the same is compared
// there.
func TestHandedCases(t *testing.T) {
	raw, err := os.ReadFile("../../../pkg/persist/testdata/boulder.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	boulder := oracle.New(t)
	for line := range bytes.Lines(raw) {
		var c struct {
			ID, Domain string
			Now        int64
			TXT        []string
			Zone       []string
			Rcode      map[string]string
			Want       struct {
				Allow        bool
				Type, Detail string
			}
		}
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		n++
		q := question{Validation: oracle.Validation{Domain: c.Domain, Account: 1, Now: time.Unix(c.Now, 0)}}
		owner := dns.Fqdn(persist.Owner(c.Domain))
		for _, v := range c.TXT {
			q.values = append(q.values, []string{v})
		}
		for _, text := range c.Zone {
			rr, err := dns.NewRR(text)
			if err != nil {
				t.Fatalf("%s: %v", c.ID, err)
			}
			switch rr := rr.(type) {
			case *dns.CNAME:
				q.target = strings.TrimSuffix(rr.Target, ".")
			case *dns.TXT:
				if rr.Hdr.Name == owner || q.target != "" {
					q.values = append(q.values, []string{strings.Join(rr.Txt, "")})
				}
			}
		}
		switch {
		case c.Rcode[persist.Owner(c.Domain)] != "":
			q.rcode = dns.StringToRcode[c.Rcode[persist.Owner(c.Domain)]]
		case c.Want.Type == "dns":
			q.rcode = dns.RcodeNameError
		}
		answer, err := boulder.Persist(t.Context(), q, q.Validation)
		if want := (oracle.Answer{Allowed: c.Want.Allow, Type: c.Want.Type, Detail: c.Want.Detail}); err != nil || answer != want {
			t.Errorf("%s: Boulder says %+v, %v, on record is %+v", c.ID, answer, err, want)
		}
		if q.rcode != 0 {
			continue
		}
		if _, err := compare(t.Context(), boulder, q); err != nil {
			t.Errorf("%s: %v", c.ID, err)
		}
	}
	if n != 40 {
		t.Errorf("%d cases", n)
	}
}

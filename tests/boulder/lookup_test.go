package boulder

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/authority"
	"github.com/certhook/certhook/pkg/caa"
	"github.com/certhook/certhook/tests/boulder/numbers"
	"github.com/certhook/certhook/tests/boulder/oracle"
)

// The look-up of the governing set, by authoritative servers as well as by resolvers alone, leads to the same
// as Boulder's questions to its resolver: on the way up, along CNAMEs, at wildcards, across zone cuts, and where
// a name fails. There is one for ten of the other questions: each takes dozens of messages.
func TestRandomLookups(t *testing.T) {
	n, seed := numbers.FromEnv(t)
	const (
		ratio  = 10
		world  = 250 // questions in one world
		atOnce = 16
	)
	boulder := oracle.New(t)
	all := newTally()
	for from := uint64(0); from < n/ratio && !t.Failed(); from += world {
		t.Run(fmt.Sprint(from), func(t *testing.T) {
			h := newHierarchy(t)
			var bad []question
			var mu sync.Mutex // of all and bad
			var wg sync.WaitGroup
			slots := make(chan struct{}, atOnce)
			for i := from; i < min(from+world, n/ratio); i++ {
				q := generate(seed, i).served()
				h.serve(q)
				slots <- struct{}{}
				wg.Go(func() {
					defer func() { <-slots }()
					theirs, mine, set, err := h.lookUp(t.Context(), boulder, q)
					mu.Lock()
					defer mu.Unlock()
					switch {
					case err != nil:
						t.Errorf("question %d of BOULDER_SEED=%d: %v", i, seed, err)
					case theirs != mine:
						bad = append(bad, q)
					default:
						all.countLookup(q, set, mine)
					}
				})
			}
			wg.Wait()
			if len(bad) > 0 { // to make one small is enough: each try takes a world
				t.Errorf("%d look-ups of BOULDER_SEED=%d, such as %v", len(bad), seed,
					disagreement(bad[0], func(q question) (string, string, error) {
						h := newHierarchy(t)
						h.serve(q)
						theirs, mine, _, err := h.lookUp(t.Context(), boulder, q)
						return theirs, mine, err
					}))
			}
		})
	}
	t.Log(all)
	if n >= numbers.Enough && !t.Failed() {
		all.has(t, lookups)
	}
}

// lookUp returns Boulder's verdict and ours, which are to rest on one set however it is found, and that set.
func (h *hierarchy) lookUp(ctx context.Context, boulder *oracle.Oracle, q question) (theirs, mine string, set caa.Set, err error) {
	answer, err := boulder.CAA(ctx, h.World, q.boulders())
	if err != nil {
		return "", "", caa.Set{}, err
	}
	mine, set, err = h.verdict(ctx, q, h.World)
	if err != nil {
		return "", "", caa.Set{}, err
	}
	otherwise, same, err := h.verdict(ctx, q, noRecursion{})
	if otherwise != mine || !slices.Equal(written(same), written(set)) {
		mine = fmt.Sprintf("%s by servers, from %q, and %s by resolvers, from %q", mine, written(set), otherwise, written(same))
	}
	return boulders(answer), mine, set, err
}

// written is what a set has, however it was found.
func written(s caa.Set) []string {
	lines := []string{s.Owner, s.Target}
	for _, rr := range s.Records {
		lines = append(lines, caa.Text("", rr))
	}
	return lines
}

// verdict is ours on the set that the look-up finds.
func (h *hierarchy) verdict(ctx context.Context, q question, r authority.Recursive) (string, caa.Set, error) {
	set, err := caa.Lookup(ctx, &authority.Client{Recursive: r, Port: h.Port}, h.panel, q.domain)
	if e, is := errors.AsType[*caa.Error](err); is {
		return unknownAt(e.Name), caa.Set{}, nil
	}
	if err != nil {
		return "", caa.Set{}, err
	}
	return ours(q.ours(), set), set, nil
}

// noRecursion is a resolver through which no zone is found, so that nothing but the panel is left.
type noRecursion struct{}

func (noRecursion) Ask(context.Context, string, uint16) (*dns.Msg, error) {
	return nil, errors.New("no way to the servers")
}

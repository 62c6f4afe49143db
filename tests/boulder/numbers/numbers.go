// Package numbers reads from the environment how many questions to make up.
package numbers

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// FromEnv returns how many questions to make up, BOULDER_N or 20000, and from which seed, BOULDER_SEED or a new one, and
// logs both.
func FromEnv(t *testing.T) (n, seed uint64) {
	t.Helper()
	n, seed = 20000, rand.Uint64()
	for name, value := range map[string]*uint64{"BOULDER_N": &n, "BOULDER_SEED": &seed} {
		if text := os.Getenv(name); text != "" {
			var err error
			if *value, err = strconv.ParseUint(text, 10, 64); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	t.Logf("%d questions of BOULDER_SEED=%d", n, seed)
	return n, seed
}

// Enough is the number of questions from which on there has to be something of everything among them.
const Enough = 5000

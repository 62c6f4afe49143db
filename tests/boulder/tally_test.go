package boulder

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/certhook/certhook/pkg/caa"
	"github.com/certhook/certhook/pkg/dnsname"
)

// traits is all that has to occur in the sets that decide. Each is a rule of Boulder's, or a way to get it
// wrong.
var traits = []string{
	"at the domain", "at the parent", "at the top-level name", "nowhere", "for a wildcard",
	"through a CNAME", "through several CNAMEs", "past a CNAME to nothing", "lost in CNAMEs",
	"past the wildcard's own name", "before records above",
	"beside others", "issuewild alone", "issuewild beside issue", "nothing of issuance",
	"property tag in capitals", "another property that is known", "another property that is known, critical",
	"unknown property", "unknown property, critical", "unknown property, bit 1",
	"another CA", "no CA", "white space around the CA", "the CA in capitals", "almost the CA",
	"semicolon at the end", "semicolons at the end", "white space around a parameter",
	"unknown parameter", "malformed parameter", "tag with a hyphen", "empty tag",
	"accounturi in capitals", "accounturi twice", "our account", "our account by its old URI", "another account",
	"empty accounturi", "accounturi that is no URI", "almost our account",
	"validationmethods in capitals", "validationmethods twice", "our method", "our method among others",
	"perhaps other methods", "our method before a malformed one", "our method after a malformed one", "no method",
	"our method in capitals", "methods with white space", "almost our method",
	"garbled", "tab", "quote", "backslash", "control character", "octet beyond ASCII",
}

// lookups is all that has to occur on the way to the sets.
var lookups = []string{
	"by servers alone", "with resolvers", "made up by a wildcard", "across a zone cut",
	"at the domain", "at the parent", "at the top-level name", "nowhere",
	"through a CNAME", "through several CNAMEs", "past a CNAME to nothing", "lost in CNAMEs",
}

// tally counts what the questions were about and what became of them.
type tally struct {
	questions, allowed  int
	traits              map[string]int
	loosened, tightened int // what a newer grammar has made of the answer of the Boulder that is asked
}

func newTally() *tally { return &tally{traits: map[string]int{}} }

// count counts a question, the set that governs it and the verdict.
func (c *tally) count(q question, s caa.Set, verdict string) {
	c.questions++
	if verdict == allowed {
		c.allowed++
	}
	for trait := range q.traits(s, verdict) {
		c.traits[trait]++
	}
}

// countLookup counts a question, the set that was looked up for it, by servers where that goes, and the verdict.
func (c *tally) countLookup(q question, s caa.Set, verdict string) {
	c.count(q, s, verdict)
	for trait, is := range map[string]bool{
		"by servers alone":      len(s.Sources) > 0 && !s.Resolvers,
		"with resolvers":        s.Resolvers,
		"made up by a wildcard": s.Owner != "" && !slices.ContainsFunc(q.records, func(r record) bool { return r.owner == s.Owner }),
		"across a zone cut": slices.ContainsFunc(q.cuts, func(c cut) bool {
			return s.Owner != c.zone && dnsname.Within(c.zone, s.Owner) && dnsname.Within(q.domain, c.zone)
		}),
	} {
		if is {
			c.traits[trait]++
		}
	}
}

// traits returns what is special about a question and the set that governs it.
func (q question) traits(s caa.Set, verdict string) map[string]bool {
	has := map[string]bool{"for a wildcard": q.wildcard}
	has["lost in CNAMEs"] = strings.HasPrefix(verdict, "unknown")
	has["nowhere"] = s.Owner == "" && !has["lost in CNAMEs"]
	owner := s.Owner
	if s.Target != "" {
		owner = s.Target
	}
	issue, wild := false, false
	for _, r := range q.records {
		above := s.Owner != "" && s.Owner != r.owner && dnsname.Within(s.Owner, r.owner)
		below := s.Owner != r.owner && dnsname.Within(q.domain, r.owner) && dnsname.Within(r.owner, s.Owner)
		has["past a CNAME to nothing"] = has["past a CNAME to nothing"] || below && r.cname != ""
		has["before records above"] = has["before records above"] || above
		has["past the wildcard's own name"] = has["past the wildcard's own name"] || q.wildcard && r.owner == "*."+q.domain
		if r.owner != owner || r.cname != "" {
			continue
		}
		for _, trait := range r.traits {
			has[trait] = true
		}
		issue, wild = issue || strings.EqualFold(r.tag, "issue"), wild || strings.EqualFold(r.tag, "issuewild")
		for trait, odd := range map[string]func(rune) bool{
			"tab":                func(c rune) bool { return c == '\t' },
			"quote":              func(c rune) bool { return c == '"' },
			"backslash":          func(c rune) bool { return c == '\\' },
			"control character":  func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f },
			"octet beyond ASCII": func(c rune) bool { return c > 0x7f },
		} {
			has[trait] = has[trait] || strings.ContainsFunc(r.value, odd)
		}
	}
	has["issuewild alone"], has["issuewild beside issue"] = wild && !issue, wild && issue
	has["nothing of issuance"] = s.Owner != "" && !wild && !issue
	maps.DeleteFunc(has, func(_ string, is bool) bool { return !is })
	return has
}

func (c *tally) join(o *tally) {
	c.questions += o.questions
	c.allowed += o.allowed
	for trait, n := range o.traits {
		c.traits[trait] += n
	}
	c.loosened += o.loosened
	c.tightened += o.tightened
}

func (c *tally) String() string {
	return fmt.Sprintf("%d questions, %d allowed; a newer grammar allows %d and forbids %d; by what decides: %v",
		c.questions, c.allowed, c.loosened, c.tightened, c.traits)
}

// check fails if the questions were too much alike to prove anything.
func (c *tally) check(t *testing.T) {
	t.Helper()
	if c.allowed*5 < c.questions || c.allowed*5 > c.questions*4 {
		t.Errorf("%d of %d questions are allowed: not a fifth of each kind", c.allowed, c.questions)
	}
	c.has(t, traits)
	for trait := range c.traits {
		if !slices.Contains(traits, trait) {
			t.Errorf("%q is not among the traits to be counted", trait)
		}
	}
	if c.loosened == 0 || c.tightened == 0 {
		t.Errorf("a newer grammar allows %d questions and forbids %d: there is to be some of either", c.loosened, c.tightened)
	}
}

// has fails unless there was something of each of the traits.
func (c *tally) has(t *testing.T, traits []string) {
	t.Helper()
	for _, trait := range traits {
		if c.traits[trait] == 0 {
			t.Errorf("no question has %q in it", trait)
		}
	}
}

package delegation

import (
	"fmt"
	"slices"

	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/resolver"
)

// Status is how a check ended.
type Status string

const (
	OK      Status = "ok"
	Wrong   Status = "wrong"
	Unknown Status = "unknown" // it may or may not work
)

// Source is whose word a verdict rests on.
type Source string

const (
	Authoritative Source = "authoritative"
	Resolvers     Source = "resolvers" // of at least [resolver.Quorum] of them, for one step at least
)

// Verdict is the outcome of [Check].
type Verdict struct {
	Status Status
	Reason string // one phrase for people; where Status is Wrong it contains Record
	Cause  error  // the one that Reason ends with, or nil
	Record string // the one zone-file line that makes it right; "" if none does

	Source  Source   // "" where Status is Unknown
	Plain   bool     // what resolvers say came over plain DNS, so that anybody on the way could have written it
	Missing bool     // Status is Wrong because nothing stands at the challenge itself: Record is only to be added
	Chain   []string // the names that CNAMEs lead to from the challenge, one after the other, as far as known

	// Lagging are the servers that answered and do not show the way that others do.
	Lagging []resolver.Laggard

	// Failing are authoritative servers that did not answer while others of their zone did: a CA may ask them.
	Failing []resolver.Laggard

	Notes []string // what else to know, a phrase each

	kind fault.Kind
	hint string
}

// Err returns nil unless authoritative servers prove that it is Wrong, since neither a check that could not
// be made nor a resolver with an old answer must stop an issuance that would have worked. The error is of
// kind Verdict, or Usage where the alias zone itself is a bad choice.
func (v Verdict) Err() error {
	if v.Status != Wrong || v.Source != Authoritative {
		return nil
	}
	return &fault.Error{Kind: v.kind, Err: fmt.Errorf("%s", v.Reason), Hint: v.hint}
}

func ok(format string, args ...any) Verdict {
	return Verdict{Status: OK, Source: Authoritative, Reason: fmt.Sprintf(format, args...)}
}

func unknown(format string, args ...any) Verdict {
	return Verdict{Status: Unknown, Reason: fmt.Sprintf(format, args...), Cause: last(args)}
}

// last returns the error that a text ends with, if it does.
func last(args []any) error {
	if len(args) == 0 {
		return nil
	}
	err, _ := args[len(args)-1].(error)
	return err
}

func wrong(format string, args ...any) Verdict {
	return Verdict{Status: Wrong, Source: Authoritative, kind: fault.Verdict, Reason: fmt.Sprintf(format, args...)}
}

// via notes the names on the way, of which the first is the challenge.
func (v Verdict) via(names []string) Verdict {
	v.Chain = slices.Clone(names[1:])
	return v
}

// missing is a verdict that the record is only to be added.
func (v Verdict) missing() Verdict {
	v.Missing = true
	return v
}

// needs says which record makes it right and how it comes to stand there.
func (v Verdict) needs(t Target, how string) Verdict {
	v.Record = t.Line()
	v.Reason = fmt.Sprintf("%s; %s: %s", v.Reason, how, v.Record)
	v.hint = "a CA is led to the challenge by that record alone; it is made once and stays"
	return v
}

// NotDelegated is the verdict on an alias zone that the zone above it, which DNS serves in its place,
// does not delegate: what is written there nobody can see. [Check] finds out where the zone above is a
// public suffix. Any other zone may hold the alias itself, so that only who knows that the provider does
// not serve it can tell.
func NotDelegated(t Target, above string) Verdict {
	v := wrong("the alias zone %s is not delegated: %s has no NS records for it, so what is written there cannot be seen", t.Alias, above).
		needs(t, "the CNAME that leads there is right in itself")
	v.hint = fmt.Sprintf("add NS records for %s to the zone %s; the DNS provider of %s names the servers", t.Alias, above, t.Alias)
	return v
}

// sharedZone is the verdict on an alias zone that lies in the served domain's zone or in one above it.
func sharedZone(t Target, aliasZone, servedZone string) Verdict {
	v := wrong("the alias zone %s is no zone of its own but lies in the zone %s, and %s is served from the zone %s: the credential would reach more than challenges",
		t.Alias, aliasZone, t.Domain, servedZone)
	v.kind = fault.Usage
	v.hint = fmt.Sprintf("delegate %s to name servers by NS records, or set ACME_CHALLENGE_ALIAS to a zone that holds nothing else", t.Alias)
	return v
}

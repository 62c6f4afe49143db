// Package providertest holds what every DNS provider driver has to do, as one suite of tests: challenge
// records come and go one value at a time, whatever goes wrong, and nobody else's are touched.
package providertest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/provider"
)

// Harness is a fresh provider with two zones, and the means to see and disturb it.
type Harness struct {
	Provider provider.Provider
	Zone     string // a zone that the credentials may write, without records of ours
	Other    string // another one, not looked up so far

	// Values reads the values at a name of Zone or Other where the truth is: in DNS, not through the driver.
	Values func(name string) []string
	// Seed puts a value at a name of Zone, as somebody else would.
	Seed func(name, value string)
	// LoseReply lets the next write take effect and loses the reply.
	LoseReply func()
	// FailLookups makes every further look-up of a zone fail.
	FailLookups func()
	// Stall keeps every further request waiting, well beyond ten seconds.
	Stall func()
	// Requests counts the requests that reached the provider for a zone's records, reading or writing.
	Requests func(zone string) int
}

// Run runs the suite. open makes a new harness for each test.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	for name, test := range map[string]func(*testing.T, *suite){
		"two values, one removed":     twoValues,
		"removed twice":               removedTwice,
		"foreign values survive":      foreignValues,
		"look-alikes survive":         lookAlikes,
		"existing value":              existingValue,
		"hyphen first":                hyphenFirst,
		"empty value":                 emptyValue,
		"unusable values":             unusableValues,
		"name outside the zone":       outsideZone,
		"zone of exactly that name":   exactZone,
		"failed look-up after a good": failedLookup,
		"lost reply to add":           lostAdd,
		"lost reply to remove":        lostRemove,
		"cancelled":                   cancelled,
		"deadline":                    deadline,
		"parallel":                    parallel,
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			test(t, &suite{Harness: open(t), ctx: ctx})
		})
	}
}

// Values as a CA's challenges have them: 43 base64url characters.
const (
	first   = "aGVsbG8gd29ybGQtaGVsbG8gd29ybGQtaGVsbG8gd29"
	second  = "c2Vjb25kX3ZhbHVlLXNlY29uZF92YWx1ZS1zZWNvbmQ"
	foreign = "v=spf1 include:example.org; a=b -all"
)

const ttl = time.Minute

type suite struct {
	Harness
	ctx context.Context
}

// name is where the tests write.
func (s *suite) name() string { return "_acme-challenge.svc.example.com." + s.Zone }

func (s *suite) txt(value string) provider.TXT {
	return provider.TXT{Name: s.name(), Value: value, TTL: ttl}
}

func (s *suite) zone(t *testing.T) provider.Zone {
	t.Helper()
	zone, err := s.Provider.Zone(s.ctx, s.Zone)
	if err != nil || zone.Name != s.Zone {
		t.Fatalf("Zone(%q) = %+v, %v", s.Zone, zone, err)
	}
	return zone
}

func (s *suite) add(t *testing.T, zone provider.Zone, value string) {
	t.Helper()
	if err := s.Provider.Add(s.ctx, zone, s.txt(value)); err != nil {
		t.Fatalf("Add(%q): %v", value, err)
	}
}

func (s *suite) remove(t *testing.T, zone provider.Zone, value string, want bool) {
	t.Helper()
	removed, err := s.Provider.Remove(s.ctx, zone, s.txt(value))
	if err != nil || removed != want {
		t.Errorf("Remove(%q) = %v, %v; want %v", value, removed, err, want)
	}
}

// want compares the values at a name with DNS, in any order.
func (s *suite) want(t *testing.T, name string, want ...string) {
	t.Helper()
	got := slices.Sorted(slices.Values(s.Values(name)))
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("at %q DNS has %q, want %q", name, got, want)
	}
}

// failed checks an error that has to be there, and its kind.
func failed(t *testing.T, call string, err error) {
	t.Helper()
	switch {
	case err == nil:
		t.Errorf("%s succeeded", call)
	case fault.KindOf(err) != fault.Provider:
		t.Errorf("%s: error of kind %d, want Provider: %v", call, fault.KindOf(err), err)
	}
}

func failedAs(t *testing.T, call string, err, target error) {
	t.Helper()
	failed(t, call, err)
	if !errors.Is(err, target) {
		t.Errorf("%s: %v; want it to be %v", call, err, target)
	}
}

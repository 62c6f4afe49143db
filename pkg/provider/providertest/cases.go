package providertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/certhook/certhook/pkg/provider"
)

func twoValues(t *testing.T, s *suite) {
	zone := s.zone(t)
	s.add(t, zone, first)
	s.add(t, zone, second)
	s.want(t, s.name(), first, second)
	s.remove(t, zone, first, true)
	s.want(t, s.name(), second)
	s.remove(t, zone, second, true)
	s.want(t, s.name())
}

func removedTwice(t *testing.T, s *suite) {
	zone := s.zone(t)
	s.add(t, zone, first)
	s.add(t, zone, second)
	s.remove(t, zone, first, true)
	s.remove(t, zone, first, false)
	s.want(t, s.name(), second)
}

func foreignValues(t *testing.T, s *suite) {
	s.Seed(s.name(), foreign)
	zone := s.zone(t)
	s.remove(t, zone, first, false)
	s.add(t, zone, first)
	s.want(t, s.name(), first, foreign)
	s.remove(t, zone, first, true)
	s.want(t, s.name(), foreign)
}

// lookAlikes has values and names that contain ours.
func lookAlikes(t *testing.T, s *suite) {
	zone := s.zone(t)
	elsewhere := "x" + s.name()
	values := []string{first + "x", "x" + first, strings.ToUpper(first), first[:42]}
	for _, v := range values {
		s.Seed(s.name(), v)
	}
	s.Seed(elsewhere, first)
	s.remove(t, zone, first, false)
	s.add(t, zone, first)
	s.remove(t, zone, first, true)
	s.want(t, s.name(), values...)
	s.want(t, elsewhere, first)
}

func existingValue(t *testing.T, s *suite) {
	zone := s.zone(t)
	s.add(t, zone, first)
	s.add(t, zone, first)
	s.want(t, s.name(), first)
	s.remove(t, zone, first, true)
	s.want(t, s.name())
}

// hyphenFirst: one challenge value in 64 begins with a hyphen.
func hyphenFirst(t *testing.T, s *suite) {
	zone := s.zone(t)
	value := "--" + first[2:]
	s.add(t, zone, value)
	s.want(t, s.name(), value)
	s.remove(t, zone, value, true)
	s.want(t, s.name())
}

// emptyValue: to some libraries an empty value means every value.
func emptyValue(t *testing.T, s *suite) {
	zone := s.zone(t)
	s.add(t, zone, first)
	failed(t, "Add of an empty value", s.Provider.Add(s.ctx, zone, s.txt("")))
	_, err := s.Provider.Remove(s.ctx, zone, s.txt(""))
	failed(t, "Remove of an empty value", err)
	s.want(t, s.name(), first)
}

func unusableValues(t *testing.T, s *suite) {
	zone := s.zone(t)
	s.add(t, zone, first)
	for _, value := range []string{strings.Repeat("v", 256), "two\nlines", "nul\x00", "ü"} {
		failed(t, fmt.Sprintf("Add(%q)", value), s.Provider.Add(s.ctx, zone, s.txt(value)))
		_, err := s.Provider.Remove(s.ctx, zone, s.txt(value))
		failed(t, fmt.Sprintf("Remove(%q)", value), err)
	}
	s.want(t, s.name(), first)
}

func outsideZone(t *testing.T, s *suite) {
	zone := s.zone(t)
	before := s.Requests(zone.Name)
	for _, name := range []string{"not" + zone.Name, "a.not" + zone.Name, "example.org", "a." + s.Other, ""} {
		rec := provider.TXT{Name: name, Value: first, TTL: ttl}
		failed(t, fmt.Sprintf("Add at %q", name), s.Provider.Add(s.ctx, zone, rec))
		_, err := s.Provider.Remove(s.ctx, zone, rec)
		failed(t, fmt.Sprintf("Remove at %q", name), err)
	}
	if n := s.Requests(zone.Name) - before; n != 0 {
		t.Errorf("%d requests were made for names outside the zone", n)
	}
}

// exactZone: a name without a zone of its own must not get the zone around it.
func exactZone(t *testing.T, s *suite) {
	s.zone(t)
	for _, name := range []string{"sub." + s.Zone, "not" + s.Zone, "nowhere.invalid"} {
		if zone, err := s.Provider.Zone(s.ctx, name); !errors.Is(err, provider.ErrNoZone) {
			t.Errorf("Zone(%q) = %+v, %v; want ErrNoZone", name, zone, err)
		}
	}
}

// failedLookup: what is meant for one zone must not end up in the zone of the call before.
func failedLookup(t *testing.T, s *suite) {
	zone := s.zone(t)
	s.add(t, zone, first)
	before := s.Requests(zone.Name)
	s.FailLookups()
	other, err := s.Provider.Zone(s.ctx, s.Other)
	failed(t, "Zone with failing look-ups", err)
	if errors.Is(err, provider.ErrNoZone) {
		t.Errorf("a failed look-up says that there is no zone: %v", err)
	}
	if other != (provider.Zone{}) {
		t.Errorf("a failed look-up returned %+v", other)
	}
	rec := provider.TXT{Name: "_acme-challenge." + s.Other, Value: second, TTL: ttl}
	failed(t, "Add after a failed look-up", s.Provider.Add(s.ctx, provider.Zone{Name: s.Other}, rec))
	_, err = s.Provider.Remove(s.ctx, provider.Zone{Name: s.Other}, rec)
	failed(t, "Remove after a failed look-up", err)
	if n := s.Requests(zone.Name) - before; n != 0 {
		t.Errorf("%d requests went to the zone of the call before", n)
	}
	if again := s.zone(t); again != zone { // known already, so this is no look-up
		t.Errorf("Zone(%q) = %+v, before it was %+v", s.Zone, again, zone)
	}
	s.want(t, s.name(), first)
	s.want(t, rec.Name)
}

func lostAdd(t *testing.T, s *suite) {
	zone := s.zone(t)
	s.Seed(s.name(), foreign)
	s.LoseReply()
	s.add(t, zone, first)
	s.want(t, s.name(), first, foreign)
	s.remove(t, zone, first, true)
	s.want(t, s.name(), foreign)
}

func lostRemove(t *testing.T, s *suite) {
	zone := s.zone(t)
	s.add(t, zone, first)
	s.add(t, zone, second)
	s.LoseReply()
	if _, err := s.Provider.Remove(s.ctx, zone, s.txt(first)); err != nil {
		t.Errorf("Remove whose reply is lost: %v", err)
	}
	s.want(t, s.name(), second)
}

func cancelled(t *testing.T, s *suite) {
	zone := s.zone(t)
	s.add(t, zone, first)
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	_, err := s.Provider.Zone(ctx, s.Other)
	failedAs(t, "cancelled Zone", err, context.Canceled)
	failedAs(t, "cancelled Add", s.Provider.Add(ctx, zone, s.txt(second)), context.Canceled)
	_, err = s.Provider.Remove(ctx, zone, s.txt(first))
	failedAs(t, "cancelled Remove", err, context.Canceled)
	s.want(t, s.name(), first)
}

// deadline: calls end with their context when the provider does not answer.
func deadline(t *testing.T, s *suite) {
	zone := s.zone(t)
	s.Stall()
	ctx, cancel := context.WithTimeout(s.ctx, 300*time.Millisecond)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := s.Provider.Zone(ctx, s.Other)
		failedAs(t, "stalled Zone", err, context.DeadlineExceeded)
	})
	wg.Go(func() {
		failedAs(t, "stalled Add", s.Provider.Add(ctx, zone, s.txt(first)), context.DeadlineExceeded)
	})
	wg.Go(func() {
		_, err := s.Provider.Remove(ctx, zone, s.txt(second))
		failedAs(t, "stalled Remove", err, context.DeadlineExceeded)
	})
	wg.Wait()
	if s.ctx.Err() != nil {
		t.Errorf("calls outlived their deadline")
	}
}

func parallel(t *testing.T, s *suite) {
	zone := s.zone(t)
	s.Seed(s.name(), foreign)
	var values []string
	for i := range 32 {
		values = append(values, fmt.Sprintf("%s%02d", first[:41], i))
	}
	each := func(do func(value string) error) {
		var wg sync.WaitGroup
		for _, v := range values {
			wg.Go(func() {
				if err := do(v); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	each(func(v string) error { return s.Provider.Add(s.ctx, zone, s.txt(v)) })
	s.want(t, s.name(), append([]string{foreign}, values...)...)
	each(func(v string) error {
		removed, err := s.Provider.Remove(s.ctx, zone, s.txt(v))
		if err == nil && !removed {
			err = fmt.Errorf("Remove(%q) found nothing", v)
		}
		return err
	})
	s.want(t, s.name(), foreign)
}

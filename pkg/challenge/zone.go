package challenge

import (
	"context"
	"errors"
	"time"

	"golang.org/x/net/publicsuffix"

	"github.com/certhook/certhook/pkg/authority"
	"github.com/certhook/certhook/pkg/delegation"
	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/provider"
)

// place is where a record is written: the zone at the provider, and the zone's servers in DNS. The
// latter has no servers when DNS could not be asked.
type place struct {
	zone provider.Zone
	dns  authority.Zone
	err  error
}

// locate finds the place of every target: the longest label-aligned suffix of the record that the
// provider really serves. Where the zones are cut is asked of their authoritative servers, so that one
// look-up at the provider settles it; only where DNS does not answer are the suffixes tried one by one.
// Each zone is looked up once.
func (h *Hooks) locate(ctx context.Context, targets []delegation.Target) []place {
	began := time.Now()
	places := make([]place, len(targets))
	cuts := make([]error, len(targets))

	dnsCtx, cancel := context.WithTimeout(ctx, preflightTimeout)
	defer cancel()
	enclosing := h.enclosing(dnsCtx, targets)
	each(targets, func(i int, t delegation.Target) {
		if above := enclosing[anchor(t)]; above.err != nil {
			cuts[i] = above.err
		} else {
			places[i].dns, cuts[i] = h.DNS.Within(dnsCtx, above.dns, t.Record)
		}
	})

	byName := make(map[string]*place)
	var names []string
	for i := range targets {
		if name := places[i].dns.Name; cuts[i] == nil && byName[name] == nil {
			byName[name] = new(place)
			names = append(names, name)
		}
	}
	each(names, func(_ int, name string) {
		byName[name].zone, byName[name].err = h.zoneAt(ctx, name)
	})
	for i, t := range targets {
		if cuts[i] == nil {
			found := byName[places[i].dns.Name]
			places[i].zone, places[i].err = found.zone, found.err
			if errors.Is(found.err, provider.ErrNoZone) {
				places[i].err = h.explain(ctx, t, places[i].dns.Name, found.err)
			}
		} else {
			places[i].zone, places[i].err = h.longestSuffix(ctx, t, enclosing[anchor(t)].dns.Name, cuts[i])
		}
		s := Step{Name: StepZone, Domain: t.Domain, Record: t.Record, Took: time.Since(began), Err: places[i].err}
		if s.Err == nil {
			s.Detail = "zone " + places[i].zone.Name
		}
		h.step(s)
	}
	return places
}

// anchor is the name above a target's record at which its zone is sought first, once for all below it.
func anchor(t delegation.Target) string {
	if t.Alias == "" {
		return t.Domain
	}
	return t.Alias
}

func (h *Hooks) enclosing(ctx context.Context, targets []delegation.Target) map[string]*place {
	found := make(map[string]*place)
	var names []string
	for _, t := range targets {
		if name := anchor(t); found[name] == nil {
			found[name] = new(place)
			names = append(names, name)
		}
	}
	each(names, func(_ int, name string) {
		if found[name].dns, found[name].err = h.DNS.Find(ctx, name); found[name].err != nil {
			// Only now, since a resolver that hears of a name too early denies what is then written below it.
			found[name].dns, _ = h.DNS.Zone(ctx, name)
		}
	})
	return found
}

// zoneAt returns the provider's zone of exactly that name, which DNS says holds the record.
func (h *Hooks) zoneAt(ctx context.Context, name string) (provider.Zone, error) {
	if h.PinnedZoneID != "" {
		return provider.Zone{Name: name, ID: h.PinnedZoneID}, nil
	}
	return h.Provider.Zone(ctx, name)
}

// explain says what it means that the provider does not serve the zone that holds the record: the alias
// zone exists at the provider but nobody delegated it, or the credentials do not reach that far.
func (h *Hooks) explain(ctx context.Context, t delegation.Target, zone string, err error) error {
	if t.Alias != "" && dnsname.Below(t.Alias, zone) {
		if _, err := h.Provider.Zone(ctx, t.Alias); err == nil {
			return delegation.NotDelegated(t, zone).Err()
		}
	}
	return fault.Errorf(fault.Provider, "DNS serves the record %q from the zone %q, which the credentials do not reach: %w", t.Record, zone, err).
		WithHint("give the credentials access to the zone %s, or correct ACME_CHALLENGE_ALIAS", zone)
}

// longestSuffix tries the record's suffixes at the provider, the longest first. It stops at enclosing, the
// zone that resolvers know around the alias zone, or, where they know nothing, at the alias zone itself: a
// record in a zone above might be hidden by a cut. Without delegation it stops before public suffixes.
// cause is why DNS could not say where the zone is cut.
func (h *Hooks) longestSuffix(ctx context.Context, t delegation.Target, enclosing string, cause error) (provider.Zone, error) {
	if enclosing == "" && t.Alias != "" {
		enclosing = t.Alias
	}
	if h.PinnedZoneID != "" {
		return provider.Zone{}, fault.Errorf(fault.Provider, "cannot tell which zone the pinned zone id belongs to: %w", cause).
			WithHint("give the zone's name with it, as zone=id")
	}
	h.Log.Warn("DNS does not say where the zone is cut, so the provider is asked for every suffix", "record", t.Record, "error", cause)
	for name := range dnsname.Ancestors(t.Record) {
		if suffix, icann := publicsuffix.PublicSuffix(name); icann && suffix == name {
			break
		}
		zone, err := h.Provider.Zone(ctx, name)
		if !errors.Is(err, provider.ErrNoZone) {
			return zone, err
		}
		if name == enclosing {
			break
		}
	}
	return provider.Zone{}, fault.Errorf(fault.Provider, "the credentials reach no zone that holds %q (and DNS does not say where zones are cut: %w): %w", t.Record, cause, provider.ErrNoZone).
		WithHint("give the credentials access to the zone of %s, or correct ACME_CHALLENGE_ALIAS; DNS_RESOLVERS names resolvers that can be reached from here", anchor(t))
}

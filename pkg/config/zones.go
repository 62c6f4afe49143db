package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/net/publicsuffix"

	"github.com/certhook/certhook/pkg/dnsname"
)

// aliasZones takes the names of ACME_CHALLENGE_ALIAS. A public suffix is nobody's to delegate. Its errors
// quote nothing without a dot: it may be a token in the wrong place.
func aliasZones(v string) ([]string, error) {
	var zones []string
	for _, item := range list(v) {
		zone, err := dnsname.Parse(item)
		if !strings.Contains(item, ".") && (err != nil || !strings.Contains(zone, ".")) {
			return nil, errors.New("a name of a single label is no zone of yours but a public suffix at most, under which names are registered; write the zone's complete name, such as deleg.example.net")
		}
		if err != nil {
			return nil, err
		}
		// Suffixes that companies list for their customers ("github.io") may well be the reader's own. For
		// a name that is not on the list at all, the answer is its top-level name.
		if suffix, icann := publicsuffix.PublicSuffix(zone); suffix == zone && (icann || !strings.Contains(zone, ".")) {
			return nil, fmt.Errorf("%q is a public suffix, under which names are registered; name a zone of your own below it", zone)
		}
		if !slices.Contains(zones, zone) {
			zones = append(zones, zone)
		}
	}
	return zones, nil
}

// mapEntry is one item of ACME_CHALLENGE_MAP.
type mapEntry struct {
	domain string
	target string // canonical
	zone   bool   // target was written with a trailing dot and names an alias zone
}

// challengeMap takes the items of ACME_CHALLENGE_MAP; whether they lie in an alias zone is checked later.
func challengeMap(v string) ([]mapEntry, error) {
	var entries []mapEntry
	for _, item := range list(v) {
		left, right, found := strings.Cut(item, "=")
		if !found {
			return nil, fmt.Errorf("%q is neither domain=record nor domain=zone. (with its dot)", item)
		}
		domain, err := dnsname.ParseHost(strings.TrimSpace(left))
		if err != nil {
			return nil, fmt.Errorf("in %q: %w", item, err)
		}
		right = strings.TrimSpace(right)
		target, err := dnsname.Parse(right)
		if err != nil {
			return nil, fmt.Errorf("in %q: %w", item, err)
		}
		if slices.ContainsFunc(entries, func(e mapEntry) bool { return e.domain == domain }) {
			return nil, fmt.Errorf("%q is mapped twice", domain)
		}
		entries = append(entries, mapEntry{domain, target, strings.HasSuffix(right, ".")})
	}
	return entries, nil
}

// checkMap sorts the entries into pins and alias choices. All of them must lie in one of aliases, and a pin
// below its apex: a value written there could not be removed again.
func checkMap(entries []mapEntry, aliases []string) (pins, aliasFor map[string]string, errs []error) {
	pins, aliasFor = map[string]string{}, map[string]string{}
	for _, e := range entries {
		switch {
		case e.zone && slices.Contains(aliases, e.target):
			aliasFor[e.domain] = e.target
		case e.zone:
			errs = append(errs, fmt.Errorf("%q maps to the zone %q, which is not in ACME_CHALLENGE_ALIAS (%s); add it there, or write a record without the trailing dot",
				e.domain, e.target, strings.Join(aliases, ", ")))
		case slices.Contains(aliases, e.target):
			errs = append(errs, fmt.Errorf("%q is pinned to the apex of the alias zone %q; write a record below it, or, to pick the zone, end it with a dot",
				e.domain, e.target))
		case slices.ContainsFunc(aliases, func(a string) bool { return dnsname.Below(e.target, a) }):
			pins[e.domain] = e.target
		default:
			errs = append(errs, fmt.Errorf("%q maps to the record %q, which is in no zone of ACME_CHALLENGE_ALIAS (%s)",
				e.domain, e.target, strings.Join(aliases, ", ")))
		}
	}
	return pins, aliasFor, errs
}

// zoneIDs takes CLOUDFLARE_ZONE_ID: one bare id, kept under the key "", or zone=id items. Its errors
// never quote an id: it may be a token in the wrong place.
func zoneIDs(v string) (map[string]string, error) {
	ids := map[string]string{}
	items := list(v)
	for _, item := range items {
		zone, id, named := strings.Cut(item, "=")
		if !named {
			zone, id = "", item
			if len(items) > 1 {
				return nil, fmt.Errorf("an id without a zone can only stand alone; write zone=id for each")
			}
		}
		if named {
			var err error
			if zone, err = dnsname.Parse(strings.TrimSpace(zone)); err != nil {
				return nil, err
			}
		}
		id = strings.ToLower(strings.TrimSpace(id))
		if len(id) != 32 || strings.Trim(id, "0123456789abcdef") != "" {
			return nil, fmt.Errorf("a zone id has 32 hexadecimal digits, as the zone's overview page shows it; write it alone, or zone=id for several")
		}
		if _, twice := ids[zone]; twice {
			return nil, fmt.Errorf("%q has two ids", zone)
		}
		ids[zone] = id
	}
	return ids, nil
}

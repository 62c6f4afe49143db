// Package provider says what certhook asks of a DNS provider: three calls, each about exactly one zone
// or one TXT value. Drivers live in folders of their own; every one passes the suite in providertest.
package provider

import (
	"context"
	"errors"
	"time"
)

// ErrNoZone means that the provider answered, and serves no zone of that name to these credentials. A
// look-up that failed is any other error and must never be read as "no zone".
var ErrNoZone = errors.New("the DNS provider serves no such zone")

// ErrZoneID means that the provider knows no zone by the ID in use, or refuses it to these credentials. The ID
// may have been wrong from the start.
var ErrZoneID = errors.New("the DNS provider refuses the zone's ID")

// Zone is a zone that the provider serves.
type Zone struct {
	Name string // canonical form of pkg/dnsname
	ID   string // the provider's own handle; empty where it has none
}

// TXT is one value at one name. Several TXT of one name are siblings and never touch each other.
type TXT struct {
	Name  string        // canonical, at or below the zone's name
	Value string        // one character-string of printable ASCII, unquoted, never empty
	TTL   time.Duration // whole seconds; ignored by Remove
}

// Provider is a DNS provider seen through one set of credentials. All methods are safe for concurrent
// use, honour ctx while they wait and never put a secret into an error. Errors are *fault.Error of kind
// Provider (Usage where a setting of ours is at fault), except for ErrNoZone, which may be wrapped.
type Provider interface {
	// Zone looks up the zone of exactly that name, never one above or below. A success is remembered;
	// a failure is not.
	Zone(ctx context.Context, name string) (Zone, error)

	// Add puts rec beside whatever else is at its name and returns nil only when the provider confirmed
	// that this very name, type and value exist. A value that is already there is a success. On doubt
	// (a lost reply, "identical record") it reads back before it decides.
	Add(ctx context.Context, zone Zone, rec TXT) error

	// Remove takes away exactly rec's value, whatever its TTL, and leaves its siblings. removed is false
	// when a look-up that succeeded showed that the value is not there. After an error the value may or
	// may not exist; it wraps ErrZoneID where another ID of the zone may help.
	Remove(ctx context.Context, zone Zone, rec TXT) (removed bool, err error)
}

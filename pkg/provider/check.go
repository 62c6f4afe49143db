package provider

import (
	"errors"
	"fmt"
	"strings"

	"github.com/certhook/certhook/pkg/dnsname"
)

// maxValue is the length of one character-string (RFC 1035, section 3.3).
const maxValue = 255

// Check refuses what a driver must not hand on: a name that is not canonical or not within the zone, and a
// value that would not come back as it was sent. To some providers an empty value means any value, a long
// one is split, and a quote or backslash changes its spelling, so that it would never be found again.
func (t TXT) Check(zone Zone) error {
	switch {
	case t.Value == "":
		return errors.New("the value is empty")
	case len(t.Value) > maxValue:
		return fmt.Errorf("the value has %d octets, at most %d are allowed", len(t.Value), maxValue)
	case strings.ContainsFunc(t.Value, func(c rune) bool { return c < ' ' || c > '~' || c == '"' || c == '\\' }):
		return errors.New("the value has a character that is not printable ASCII, or a quote or backslash")
	}
	if name, err := dnsname.Parse(t.Name); err != nil || name != t.Name {
		return errors.New("the name is not a canonical domain name")
	}
	if !dnsname.Within(t.Name, zone.Name) {
		return errors.New("the name is not within the zone")
	}
	return nil
}

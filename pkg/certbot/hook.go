// Package certbot reads what certbot tells the programs that it starts: the variables of its manual
// hooks and the process that stands for one run of certbot.
package certbot

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/pkg/fault"
)

// Challenge is one dns-01 challenge as certbot hands it to a manual hook
// (certbot/_internal/plugins/manual.py).
type Challenge struct {
	Domain     string // canonical; the base name where a wildcard was asked for
	Validation string // the TXT value: 43 characters of base64url (RFC 8555, section 8.4)

	// Size is how many challenges the order has in all, and Remaining how many hook calls still follow
	// this one. Certbot before 1.4 says neither: then Counted is false, Size 1 and Remaining 0.
	Size, Remaining int
	Counted         bool

	// Names are those of the order, in its order; a name and its wildcard are the same name twice. Names that
	// the CA needs no proof of any more are not among them. Certbot before 1.4 says only Domain.
	Names []string
}

// Call numbers the calls of an order from 0.
func (c Challenge) Call() int { return c.Size - 1 - c.Remaining }

// First reports whether this call is the first of its order.
func (c Challenge) First() bool { return c.Call() == 0 }

// Last reports whether certbot goes to the CA after this call.
func (c Challenge) Last() bool { return c.Remaining == 0 }

// validation is the form of base64url(SHA-256(key authorization)); one in 64 begins with a hyphen.
var validation = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)

// IsValidation reports whether s has the form of a dns-01 TXT value.
func IsValidation(s string) bool { return validation.MatchString(s) }

// Called reports whether certbot runs this program as a manual hook, whatever else is wrong.
func Called(environ []string) bool {
	return slices.ContainsFunc(environ, func(kv string) bool {
		return strings.HasPrefix(kv, "CERTBOT_DOMAIN=") || strings.HasPrefix(kv, "CERTBOT_VALIDATION=")
	})
}

// HookChallenge reads a manual hook's environment, given as os.Environ does. It uses only what certbot
// sets anew for every call: the other CERTBOT_ and RENEWED_ variables may be left from an earlier
// lineage of the same run. Errors are of kind fault.Usage and never quote the validation.
func HookChallenge(environ []string) (Challenge, error) {
	get := func(key string) string {
		for _, kv := range environ {
			if v, ok := strings.CutPrefix(kv, key+"="); ok {
				return v
			}
		}
		return ""
	}
	domain, value := get("CERTBOT_DOMAIN"), get("CERTBOT_VALIDATION")
	if domain == "" && value == "" {
		return Challenge{}, fault.Errorf(fault.Usage, "CERTBOT_DOMAIN and CERTBOT_VALIDATION are not set: certbot runs this program, as --manual-auth-hook or --manual-cleanup-hook").
			WithHint("to try the settings without a CA, run: auth-hook rehearse -d NAME")
	}
	if get("CERTBOT_TOKEN") != "" {
		return Challenge{}, fault.Errorf(fault.Usage, "this is an http-01 challenge (CERTBOT_TOKEN is set), not dns-01").
			WithHint("add --preferred-challenges dns to the certbot command line")
	}
	if domain == "" {
		return Challenge{}, fault.Errorf(fault.Usage, "CERTBOT_DOMAIN is not set")
	}
	name, err := dnsname.ParseHost(domain)
	if err != nil {
		return Challenge{}, fault.Errorf(fault.Usage, "CERTBOT_DOMAIN: %w", err)
	}
	if !IsValidation(value) {
		return Challenge{}, fault.Errorf(fault.Usage, "CERTBOT_VALIDATION is not a dns-01 value: it has %d characters, not 43 of base64url", len(value)).
			WithHint("add --preferred-challenges dns to the certbot command line")
	}
	c := Challenge{Domain: name, Validation: value, Size: 1, Names: []string{name}}
	if remaining := get("CERTBOT_REMAINING_CHALLENGES"); remaining != "" {
		all := strings.Split(get("CERTBOT_ALL_DOMAINS"), ",")
		c.Remaining, err = strconv.Atoi(remaining)
		if err != nil || c.Remaining < 0 || c.Remaining >= len(all) {
			return Challenge{}, fault.Errorf(fault.Usage, "CERTBOT_REMAINING_CHALLENGES is %q, which does not fit the %d names of CERTBOT_ALL_DOMAINS", remaining, len(all))
		}
		c.Size, c.Counted, c.Names = len(all), true, nil
		for _, n := range all {
			if canonical, err := dnsname.ParseHost(n); err == nil {
				n = canonical
			}
			c.Names = append(c.Names, n)
		}
	}
	return c, nil
}

package cloudflare

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/certhook/certhook/pkg/provider"
)

// Codes of the API.
const (
	codeBadHeaders  = 6003  // chain 6111: the Authorization header cannot be read
	codeNoRoute     = 7003  // the zone id in the path is nobody's
	codeBadToken    = 9109  // no such token; also: not for this resource
	codeAuth        = 10000 // no such token; also: a permission is missing
	codeTTL         = 9021
	codeIdentical   = 81058
	codeExists      = 81057
	codeNoSuchEntry = 81044
)

// failure is a request without a successful answer.
type failure struct {
	asked    request
	status   int        // HTTP status; 0 = no answer
	errors   []apiError // the API's own words
	reason   error      // what else is wrong; nil where the status says it
	tries    int
	late     bool          // given up because the next try would have come after the deadline
	asksWait time.Duration // how long the next try would have waited
}

func (f *failure) Error() string {
	var b strings.Builder
	b.WriteString(f.asked.String())
	if f.status != 0 {
		fmt.Fprintf(&b, ": HTTP %d %s", f.status, http.StatusText(f.status))
	}
	for _, e := range f.errors {
		fmt.Fprintf(&b, ": %s", e)
	}
	if f.reason != nil {
		fmt.Fprintf(&b, ": %v", f.reason)
	}
	switch {
	case f.late:
		fmt.Fprintf(&b, " (gave up after try %d: the next is allowed in %v, later than the time left)", f.tries, f.asksWait)
	case f.tries > 1:
		fmt.Fprintf(&b, " (gave up after %d tries)", f.tries)
	}
	return b.String()
}

func (f *failure) Unwrap() error { return f.reason }

// Is makes a refusal of the zone in the path a [provider.ErrZoneID]. The API answers a zone of somebody else's
// as one for which a permission is missing.
func (f *failure) Is(target error) bool {
	return target == provider.ErrZoneID && (f.status == http.StatusForbidden || f.has(codeNoRoute))
}

func (e apiError) String() string {
	text := fmt.Sprintf("%s (code %d)", e.Message, e.Code)
	for _, inner := range e.Chain {
		text += ", " + inner.String()
	}
	return text
}

func (f *failure) has(codes ...int) bool { return hasCode(f.errors, codes) }

func hasCode(list []apiError, codes []int) bool {
	return slices.ContainsFunc(list, func(e apiError) bool {
		return slices.Contains(codes, e.Code) || hasCode(e.Chain, codes)
	})
}

// doubt reports whether err leaves open what the API did: there was no answer, or not one that says so.
func doubt(err error) bool {
	f, ok := errors.AsType[*failure](err)
	return ok && (f.status == 0 || f.status >= 500 || f.status < 300 || f.has(codeIdentical, codeExists, codeNoSuchEntry))
}

// unanswered reports whether err may go away by itself: there was no answer, or the API was down.
func unanswered(err error) bool {
	f, ok := errors.AsType[*failure](err)
	return ok && (f.status == 0 || f.status >= 500)
}

// ambiguous means that several accounts have the zone.
type ambiguous struct{ n int }

func (e *ambiguous) Error() string { return fmt.Sprintf("the token sees %d zones of that name", e.n) }

// zoneHint says what to do about a failed look-up of a zone.
func zoneHint(err error, name string) string {
	pin := fmt.Sprintf("CLOUDFLARE_ZONE_ID=%s=<id>", name)
	if _, ok := errors.AsType[*ambiguous](err); ok {
		return "say which one with " + pin
	}
	f, ok := errors.AsType[*failure](err)
	switch {
	case !ok:
		return ""
	case f.status == http.StatusForbidden && !f.has(codeBadToken, codeAuth):
		return fmt.Sprintf("the token lacks the permission Zone:Read for %q; or set %s, and DNS:Edit alone is enough", name, pin)
	case f.status == http.StatusForbidden:
		return fmt.Sprintf("the token in CLOUDFLARE_API_TOKEN is wrong or expired, or lacks the permission Zone:Read for %q (with %s DNS:Edit alone is enough)", name, pin)
	}
	return commonHint(f)
}

// recordHint says what to do about a failed request for a zone's records.
func recordHint(err error, zone string) string {
	if e, ok := errors.AsType[*stray](err); ok {
		return fmt.Sprintf("%s is not the id of zone %q: correct CLOUDFLARE_ZONE_ID, or leave it out and give the token Zone:Read", e.zoneID, zone)
	}
	f, ok := errors.AsType[*failure](err)
	switch {
	case !ok:
		return ""
	case f.has(codeTTL):
		return "Cloudflare takes a CHALLENGE_TTL of 60 to 86400 seconds"
	case f.has(codeNoRoute):
		return fmt.Sprintf("the token sees no zone of the id in use for %q: check CLOUDFLARE_ZONE_ID", zone)
	case f.has(codeIdentical, codeExists):
		return fmt.Sprintf("Cloudflare says that the record exists but does not show it in zone %q: check CLOUDFLARE_ZONE_ID", zone)
	case f.status == http.StatusForbidden && !f.has(codeBadToken, codeAuth):
		return fmt.Sprintf("the token lacks the permission DNS:Edit for zone %q", zone)
	case f.status == http.StatusForbidden:
		return fmt.Sprintf("the token in CLOUDFLARE_API_TOKEN is wrong or expired, or lacks the permission DNS:Edit for zone %q (or CLOUDFLARE_ZONE_ID is another zone's)", zone)
	}
	return commonHint(f)
}

func commonHint(f *failure) string {
	switch {
	case f.status == http.StatusUnauthorized, f.has(codeBadHeaders, codeBadToken, codeAuth):
		return "the token in CLOUDFLARE_API_TOKEN is wrong, cut short or expired"
	case f.status == http.StatusTooManyRequests:
		return "Cloudflare allows each user 1200 requests in five minutes, over all tokens and programs: wait, then run it again"
	case f.status >= 300 && f.status < 400:
		return "check CLOUDFLARE_API_URL: an API does not redirect"
	case f.status == 0 || f.status >= 500:
		return "the API did not answer properly: check the network and https://www.cloudflarestatus.com, then run it again"
	case f.status < 300:
		return "the API did not answer properly: check CLOUDFLARE_API_URL and what stands between, such as a proxy, then run it again"
	}
	return ""
}

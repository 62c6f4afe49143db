package persist

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/pkg/resolver"
)

// Bounds of what is written. CAs' account URLs have about sixty octets.
const maxAccount = 2048

// latest is the last second that a timestamp in RFC 3339 can show.
var latest = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)

// Record lets one account have certificates for the names it stands at.
type Record struct {
	Issuer   string    // what the CA calls itself, as [ParseIssuer] returns it
	Account  string    // the account's URL, or what else the challenge has as accounturi, for [Draft01]; for [Draft02] what [HashedAccount] makes of it
	Wildcard bool      // lets the account have a wildcard of the domain, too
	Until    time.Time // the last second in which the record holds; zero: no end
	Draft    Draft
}

// Validate reports what keeps a record from being written.
func (r Record) Validate() error {
	if issuer, err := ParseIssuer(r.Issuer); err != nil {
		return err
	} else if issuer != r.Issuer {
		return fmt.Errorf("the issuer domain name %q has to be written as %q", r.Issuer, issuer)
	}
	if !r.Draft.known() {
		return fmt.Errorf("%q is no draft of dns-persist-01 that is known here: 01 and 02 are", string(r.Draft))
	}
	if err := r.Draft.checkAccount(r.Account); err != nil {
		return err
	}
	if until := r.Until; !until.IsZero() && (until.Unix() <= 0 || until.After(latest)) {
		return fmt.Errorf("the record's end %s is not between the years 1970 and 9999", until.UTC().Format(time.RFC3339))
	}
	return nil
}

// hashed is the end of an accounturi of draft -02.
var hashed = regexp.MustCompile(`sha-256/[A-Za-z0-9_-]{43}$`)

// uri are the characters that a URI may have (RFC 3986, section 2), but for the semicolon, which ends a parameter. Quotes
// and backslashes are none of them, which CAs that compare the presentation form would not read back.
var uri = regexp.MustCompile(`^[A-Za-z0-9._~:/?#\[\]@!$&'()*+,=%-]*$`)

// checkAccount reports what keeps an account from standing in a record of the draft.
func (d Draft) checkAccount(account string) error {
	u, err := url.Parse(account)
	switch {
	case account == "":
		return errors.New("the account's URI is missing")
	case len(account) > maxAccount:
		return fmt.Errorf("the account's URI has %d octets, at most %d are allowed", len(account), maxAccount)
	case !uri.MatchString(account):
		return fmt.Errorf("the account's URI %q has a character that a record cannot hold", account)
	case err != nil:
		return fmt.Errorf("%q is not an account's URI", account)
	case u.Scheme == "":
		return fmt.Errorf("%q is not an account's URI: it has no scheme", account)
	case (u.Scheme == "https" || u.Scheme == "http") && u.Host == "":
		return fmt.Errorf("%q is not an account's URL: it has no host", account)
	case d == Draft02 && !hashed.MatchString(account):
		return fmt.Errorf("%q is not the hash of an account, which draft -02 wants", account)
	}
	return nil
}

// Value writes the record's value. The error is that of Validate.
func (r Record) Value() (string, error) {
	if err := r.Validate(); err != nil {
		return "", err
	}
	value := r.Issuer + "; accounturi=" + r.Account
	if r.Wildcard {
		value += "; policy=wildcard"
	}
	if !r.Until.IsZero() {
		value += fmt.Sprintf("; persistUntil=%d", r.Until.Unix())
	}
	return value, nil
}

// Line writes the whole record as a zone file has it, without TTL and class. A domain that begins with "*." is the
// wildcard of the rest, which takes a record that covers it.
func (r Record) Line(domain string) (string, error) {
	base, wildcard := strings.CutPrefix(domain, "*.")
	base, err := dnsname.ParseHost(base)
	if err != nil {
		return "", err
	}
	owner := Owner(base)
	switch {
	case len(owner) > dnsname.MaxName:
		return "", fmt.Errorf("the record's name %q has %d octets, at most %d are allowed", owner, len(owner), dnsname.MaxName)
	case wildcard && !r.Wildcard:
		return "", fmt.Errorf("a record without policy=wildcard does not cover %q", domain)
	}
	value, err := r.Value()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(`%s. TXT "%s"`, owner, strings.Join(resolver.CharacterStrings(value), `" "`)), nil
}

package config

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/mail"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// checkPersist warns of what gives away the point of dns-persist-01, and checks that a binding is whole.
func (l *loader) checkPersist() {
	for _, key := range keys {
		if !key.Secret || !key.ofProvider {
			continue
		}
		for _, place := range l.placesOf(key) {
			l.warn(place, key.Name, "a DNS credential is configured beside persist-issue, which never reads it; take it off this machine if nothing else here uses it")
		}
	}
	for _, lv := range l.levels {
		for _, name := range []string{"SET_CAA", "SET_TXT"} {
			if yes, err := boolean(lv.values[name].value); err == nil && yes {
				l.fail(lv.values[name].place, name, "persist-issue writes no DNS record: it is built without a way to use a DNS credential, so that none has to be here; persist-issue records prints what to create, once and by hand")
			}
		}
	}
	kid, hmac := l.places["ACME_EAB_KID"], l.places["ACME_EAB_HMAC"]
	if kid != "" && hmac == "" {
		l.fail(kid, "ACME_EAB_KID", "ACME_EAB_HMAC is not set; a binding needs both")
	} else if kid == "" && hmac != "" {
		l.fail(hmac, "ACME_EAB_HMAC", "ACME_EAB_KID is not set; a binding needs both")
	}
}

// placesOf lists where a key has a value that nobody reads.
func (l *loader) placesOf(key Key) []string {
	var found []string
	for _, lv := range l.levels {
		for _, form := range forms(key) {
			if e := lv.values[form]; e.value != "" {
				found = append(found, e.place)
			}
		}
	}
	if dir := l.env["CREDENTIALS_DIRECTORY"]; filepath.IsAbs(dir) {
		path := filepath.Join(dir, strings.ToLower(key.Name))
		if _, err := os.Stat(path); err == nil {
			found = append(found, path)
		}
	}
	return found
}

// draft takes the number of a draft of dns-persist-01.
func draft(v string) (string, error) {
	switch strings.TrimLeft(v, "-0") {
	case "1":
		return "01", nil
	case "2":
		return "02", nil
	}
	return "", fmt.Errorf("%q is no draft of dns-persist-01 that is known here; write 01 or 02", v)
}

// instant takes a day, whose end is meant, a time of RFC 3339, or the seconds since 1970 that a record holds.
func instant(v string) (time.Time, error) {
	const day = "2006-01-02"
	if t, err := time.Parse(day, v); err == nil {
		return t.Add(24*time.Hour - time.Second), nil
	}
	if t, err := time.Parse(time.RFC3339, v); err == nil {
		return t.UTC(), nil
	}
	if n, err := strconv.ParseInt(v, 10, 64); err == nil && n > 0 && n < 253402300800 { // the year 10000
		return time.Unix(n, 0).UTC(), nil
	}
	return time.Time{}, fmt.Errorf("%q is no time; write 2027-06-30, 2027-06-30T12:00:00Z, or seconds since 1970", v)
}

// accountChoice takes which ACME account to use.
func accountChoice(v string) (string, error) {
	if strings.Contains(v, "/") {
		u, err := url.Parse(v)
		if err != nil || u.Host == "" || strings.ContainsFunc(v, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return "", fmt.Errorf("%q is not the URI of an ACME account; persist-issue register prints that of its own", v)
		}
		return v, nil
	}
	return oneOf(v, AccountOwn, AccountCertbot)
}

// word takes text without white space.
func word(v string) (string, error) {
	if strings.ContainsFunc(v, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("%q has white space or characters beyond ASCII", v)
	}
	return v, nil
}

// base64URLSecret takes the key of an external account binding. CAs hand it out in base64url, some with padding.
func base64URLSecret(v string) (Secret, error) {
	v = strings.TrimRight(v, "=")
	if key, err := base64.RawURLEncoding.DecodeString(v); err != nil || len(key) == 0 {
		return Secret{}, errors.New("the secret is not base64url; paste it as the CA shows it")
	}
	return NewSecret(v), nil
}

// email takes a bare address.
func email(v string) (string, error) {
	if a, err := mail.ParseAddress(v); err != nil || a.Address != v {
		return "", fmt.Errorf("%q is no mail address; write it alone, such as you@example.com", v)
	}
	return v, nil
}

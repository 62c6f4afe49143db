package config

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/certhook/certhook/pkg/dnsname"
)

// The functions here turn one value into one type. Their errors complete the sentence "KEY: …" and say
// what to write instead.

// list splits a value at semicolons and commas; empty items do not count.
func list(v string) []string {
	var items []string
	for item := range strings.FieldsFuncSeq(v, func(r rune) bool { return r == ';' || r == ',' }) {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

// boolean takes true and false, yes and no, 1 and 0, in any case.
func boolean(v string) (bool, error) {
	switch strings.ToLower(v) {
	case "true", "yes", "1":
		return true, nil
	case "false", "no", "0":
		return false, nil
	}
	return false, fmt.Errorf("%q is not known; write true or false", v)
}

// oneOf takes one of choices.
func oneOf(v string, choices ...string) (string, error) {
	for _, c := range choices {
		if v == c {
			return c, nil
		}
	}
	if c := nearest(strings.ToLower(v), choices); c != "" {
		return "", fmt.Errorf("%q is not known; did you mean %q?", v, c)
	}
	last := len(choices) - 1
	return "", fmt.Errorf("%q is not known; write %s or %s", v, strings.Join(choices[:last], ", "), choices[last])
}

// ParseDuration takes "90" (seconds), "90s" or "2m", and nothing negative.
func ParseDuration(v string) (time.Duration, error) {
	d, err := time.ParseDuration(v)
	if seconds, errInt := strconv.ParseUint(v, 10, 31); errInt == nil {
		d, err = time.Duration(seconds)*time.Second, nil
	}
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration; write 90, 90s or 2m", v)
	}
	if d < 0 {
		return 0, fmt.Errorf("%q is negative", v)
	}
	return d, nil
}

// within is ParseDuration held to the limits least and most.
func within(v string, least, most time.Duration) (time.Duration, error) {
	d, err := ParseDuration(v)
	switch {
	case err != nil:
		return 0, err
	case d < least || d > most:
		return 0, fmt.Errorf("%q is out of range; it must be from %s to %s", v, spell(least), spell(most))
	}
	return d, nil
}

// spell writes a duration as a setting takes it, without the idle "0m0s" that Go ends it with.
func spell(d time.Duration) string {
	if d > 0 && d%time.Hour == 0 {
		return strconv.FormatInt(int64(d/time.Hour), 10) + "h"
	}
	return d.String()
}

// absolute takes an absolute path: hooks run in whatever directory certbot was started in.
func absolute(v string) (string, error) {
	if !filepath.IsAbs(v) {
		return "", fmt.Errorf("%q is not an absolute path; write it from the root on, beginning with /", v)
	}
	return filepath.Clean(v), nil
}

// webURL takes an https URL, or an http one to loopback.
func webURL(v string) (string, error) {
	if strings.Contains(v, "@") {
		return "", errors.New("the URL " + urlFault(v)) // what stands before the "@" may be a password
	}
	if reason := urlFault(v); reason != "" {
		return "", fmt.Errorf("%q %s", v, reason)
	}
	return v, nil
}

// webhookURL is webURL for a URL that may be a secret as a whole: its errors never quote it.
func webhookURL(v string) (string, error) {
	if reason := urlFault(v); reason != "" {
		return "", fmt.Errorf("the value %s", reason)
	}
	return v, nil
}

// urlFault says what is wrong with a URL, in words that go on after its name.
func urlFault(v string) string {
	u, err := url.Parse(v)
	switch {
	case strings.Contains(v, "@"):
		return `has an "@"; user names and passwords do not belong in it`
	case err != nil || u.Host == "" || u.Hostname() == "" || strings.ContainsAny(v, " \t"):
		return "is not a URL; write https://host/path"
	case u.Scheme == "http" && !isLoopback(u.Hostname()):
		return "would be asked without encryption; write https:// (http:// is for loopback only)"
	case u.Scheme != "https" && u.Scheme != "http":
		return "is not an https URL; write https://host/path"
	case u.Fragment != "" || strings.HasSuffix(v, "#"):
		return `has a fragment; write it without the "#"`
	}
	return ""
}

// baseURL is webURL for a URL that paths are appended to.
func baseURL(v string) (string, error) {
	v, err := webURL(v)
	if err == nil && strings.Contains(v, "?") {
		err = fmt.Errorf("%q has a query; write it without the %q", v, "?")
	}
	return strings.TrimRight(v, "/"), err
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// issuerName takes a CA's name as CAA records and those of dns-persist-01 have it: CAs compare it to the letter
// with their own.
func issuerName(v string) (string, error) {
	if strings.Contains(v, ";") {
		return "", fmt.Errorf("%q has parameters; write the CA's name alone, such as letsencrypt.org", v)
	}
	return dnsname.ParseIssuer(v)
}

// aliasTarget takes a name that a CNAME can lead to.
func aliasTarget(v string) (string, error) {
	if _, err := netip.ParseAddr(strings.Trim(v, "[]")); err == nil {
		return "", fmt.Errorf("%q is an IP address; a CNAME leads to a name", v)
	}
	return dnsname.Parse(v)
}

// label takes one label of a name, with underscores or without.
func label(v string) (string, error) {
	if strings.Contains(v, ".") {
		return "", fmt.Errorf("%q has a dot; write one label, the domain follows by itself", v)
	}
	return dnsname.Parse(v)
}

// hostPort takes a host name or an IP address, with a port or without, and returns it with one.
func hostPort(v, port string) (string, error) {
	if ip, err := netip.ParseAddr(strings.Trim(v, "[]")); err == nil {
		return net.JoinHostPort(ip.String(), port), nil
	}
	host := v
	if strings.Contains(v, ":") {
		var err error
		if host, port, err = net.SplitHostPort(v); err != nil {
			return "", fmt.Errorf("%q is not a server; write host, host:port or [IPv6 address]:port", v)
		}
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("%q has no usable port; it must be from 1 to 65535", v)
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return net.JoinHostPort(ip.String(), port), nil
	}
	name, err := dnsname.ParseHost(host)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(name, port), nil
}

// token takes a secret of printable ASCII without white space. Its errors never quote it.
func token(v string) (Secret, error) {
	if strings.ContainsFunc(v, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return Secret{}, errors.New("the secret has white space or characters beyond ASCII; paste it again, without anything around it")
	}
	return NewSecret(v), nil
}

// base64Secret takes what tsig-keygen prints after "secret", without the quotes.
func base64Secret(v string) (Secret, error) {
	if key, err := base64.StdEncoding.DecodeString(v); err != nil || len(key) == 0 {
		return Secret{}, errors.New("the secret is not base64; paste what tsig-keygen prints after \"secret\", without the quotes")
	}
	return NewSecret(v), nil
}

// absolutes takes a list of absolute paths.
func absolutes(v string) ([]string, error) {
	var paths []string
	for _, item := range list(v) {
		path, err := absolute(item)
		if err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// verifyTargets takes host:port items, or "off".
func verifyTargets(v string) ([]string, error) {
	if strings.EqualFold(v, VerifyOff) {
		return []string{VerifyOff}, nil
	}
	var targets []string
	for _, item := range list(v) {
		target, err := hostPort(item, "443")
		if err != nil {
			return nil, err
		}
		targets = append(targets, target)
	}
	return targets, nil
}

// octets takes a size from 1024 octets up.
func octets(v string) (int, error) {
	n, err := strconv.Atoi(v)
	if err != nil || n < 1024 || n > 1<<20 {
		return 0, fmt.Errorf("%q is no usable size; it must be from 1024 to 1048576 octets", v)
	}
	return n, nil
}

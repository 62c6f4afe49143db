package config

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// checkUnknown reports keys that nobody reads. Of the environment, only names that can be meant for us
// count. One that is nearest to a key of the delegation is refused even where others are not: without it
// challenges would be written to another zone, in silence.
func (l *loader) checkUnknown() {
	var known []string
	for _, key := range keys {
		known = append(known, forms(key)...)
	}
	for _, lv := range l.levels {
		for _, name := range slices.SortedFunc(maps.Keys(lv.values), inOrder(lv)) {
			if slices.Contains(known, name) || name == legacyAlias {
				continue
			}
			near := nearest(strings.ToUpper(name), known)
			delegates := lv.values[name].value != "" && (near == "ACME_CHALLENGE_ALIAS" || near == "ACME_CHALLENGE_MAP")
			if lv.name == "environment" && !isOurs(name) && !delegates {
				continue
			}
			what := "nothing reads this key"
			if near != "" {
				what += "; did you mean " + near + "?"
			}
			shown := printable(name)
			if shown == "" {
				shown = "(a key not shown here)"
			}
			if l.opts.Strict || lv.name == commandLine || delegates {
				l.fail(lv.values[name].place, shown, "%s", what)
			} else {
				l.warn(lv.values[name].place, shown, "%s", what)
			}
		}
	}
}

// inOrder sorts a level's names by where they stand, then by name.
func inOrder(lv level) func(a, b string) int {
	return func(a, b string) int {
		pa, pb := lv.values[a].place, lv.values[b].place
		if len(pa) != len(pb) { // file:9 before file:10
			return len(pa) - len(pb)
		}
		return strings.Compare(pa+a, pb+b)
	}
}

// isOurs reports whether an environment variable that is no key of ours looks as if it were meant to be.
func isOurs(name string) bool {
	return strings.HasPrefix(name, "ACME_CHALLENGE_") || strings.HasPrefix(name, "PROPAGATION_")
}

// printable returns a key if it can be shown. What stands before a "=" need not be a key: a wrapped
// base64 secret ends in one too.
func printable(key string) string {
	if len(key) > 40 || key != strings.ToUpper(key) && key != strings.ToLower(key) {
		return ""
	}
	return key
}

func isSecret(name string) bool {
	return slices.ContainsFunc(keys, func(k Key) bool { return k.Secret && k.Name == name })
}

// legacyAlias is what another program calls ACME_CHALLENGE_ALIAS. Ignoring it would turn delegation
// off in silence.
const legacyAlias = "DELEGATION_ZONE"

// checkDelegation checks the alias zones, the map and the legacy key against each other.
func (l *loader) checkDelegation() {
	for _, lv := range l.levels {
		e := lv.values[legacyAlias]
		switch {
		case e.value == "":
		case !l.given("ACME_CHALLENGE_ALIAS"):
			l.fail(e.place, legacyAlias, "this key is not read; set ACME_CHALLENGE_ALIAS to the zone instead")
		case len(l.s.Aliases) > 0 && strings.TrimSuffix(strings.ToLower(e.value), ".") != l.s.Aliases[0]:
			l.warn(e.place, legacyAlias, "this key is not read; ACME_CHALLENGE_ALIAS counts")
		}
	}
	if place := l.places["ACME_CHALLENGE_MAP"]; place != "" && !l.given("ACME_CHALLENGE_ALIAS") {
		l.fail(place, "ACME_CHALLENGE_MAP", "a map needs alias zones to map to; set ACME_CHALLENGE_ALIAS as well")
		return
	}
	if len(l.s.Aliases) == 0 {
		return // none, or refused already
	}
	var errs []error
	l.s.Pins, l.s.AliasFor, errs = checkMap(l.s.challengeMap, l.s.Aliases)
	for _, err := range errs {
		l.fail(l.places["ACME_CHALLENGE_MAP"], "ACME_CHALLENGE_MAP", "%w", err)
	}
}

// credentials names the key without which a provider cannot be used.
var credentials = map[string]string{
	Cloudflare: "CLOUDFLARE_API_TOKEN",
	RFC2136:    "RFC2136_SERVER",
}

// checkProvider infers the provider from the credentials and checks that they are whole.
func (l *loader) checkProvider() {
	needed := l.opts.NeedProvider && !l.unread
	var usable []string
	for _, name := range slices.Sorted(maps.Keys(credentials)) {
		if l.given(credentials[name]) {
			usable = append(usable, name)
		}
	}
	switch {
	case l.s.DNSProvider != "":
		if key := credentials[l.s.DNSProvider]; needed && !l.given(key) {
			l.fail(l.places["DNS_PROVIDER"], "DNS_PROVIDER", "%s needs %s, which is not set", l.s.DNSProvider, key)
		}
	case l.given("DNS_PROVIDER"): // refused already
	case len(usable) > 1:
		l.fail(l.places[credentials[usable[1]]], credentials[usable[1]],
			"%s is set as well (%s); say which one to use with DNS_PROVIDER=%s or DNS_PROVIDER=%s",
			credentials[usable[0]], l.places[credentials[usable[0]]], usable[0], usable[1])
	case len(usable) == 1:
		l.s.DNSProvider = usable[0]
	case needed:
		l.fail(l.fileName(), "", "no credentials for a DNS provider are set; set CLOUDFLARE_API_TOKEN, or RFC2136_SERVER with RFC2136_TSIG_NAME and RFC2136_TSIG_SECRET")
	}

	if name, secret := l.places["RFC2136_TSIG_NAME"], l.places["RFC2136_TSIG_SECRET"]; name != "" && secret == "" {
		l.fail(name, "RFC2136_TSIG_NAME", "RFC2136_TSIG_SECRET is not set; a key needs both")
	} else if name == "" && secret != "" {
		l.fail(secret, "RFC2136_TSIG_SECRET", "RFC2136_TSIG_NAME is not set; a key needs both")
	}
	if secret := l.places["RFC2136_TSIG_SECRET"]; secret != "" && !l.given("RFC2136_SERVER") {
		l.fail(secret, "RFC2136_TSIG_SECRET", "RFC2136_SERVER is not set; name the server that knows this key")
	}
	if l.s.DNSProvider == Cloudflare && l.s.ChallengeTTL < time.Minute && l.given("CHALLENGE_TTL") {
		l.fail(l.places["CHALLENGE_TTL"], "CHALLENGE_TTL", "%s is too short for Cloudflare; it must be from 60 to 86400 seconds", l.s.ChallengeTTL)
	}
}

// checkServer has ACME_STAGING choose the server where nothing else does.
func (l *loader) checkServer() {
	switch {
	case !l.s.staging || l.refused["ACME_SERVER"]:
	case !l.given("ACME_SERVER"):
		l.s.ACMEServer = LetsEncryptStaging
	case strings.TrimRight(l.s.ACMEServer, "/") != LetsEncryptStaging:
		l.fail(l.places["ACME_STAGING"], "ACME_STAGING", "ACME_SERVER names another server, %s (%s); remove one of the two",
			l.s.ACMEServer, l.places["ACME_SERVER"])
	}
}

// checkSetup checks that the mode has what it needs.
func (l *loader) checkSetup() {
	if !l.opts.NeedSetup || l.unread || l.s.SetupMode != SetupWebhook {
		return
	}
	place := l.places["DNS_SETUP_MODE"]
	switch {
	case !l.given("DNS_WEBHOOK_URL"):
		l.fail(place, "DNS_SETUP_MODE", "webhook needs DNS_WEBHOOK_URL, which is not set")
	case !l.given("DNS_WEBHOOK_TOKEN"):
		l.fail(place, "DNS_SETUP_MODE", "webhook needs DNS_WEBHOOK_TOKEN, which is not set: a request that nobody signed could move a domain")
	}
}

// fileName tells the reader which file to write a missing setting to.
func (l *loader) fileName() string {
	if l.s.File != "" {
		return l.s.File
	}
	return defaultFile + " (there is no such file)"
}

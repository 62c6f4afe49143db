package config

import (
	"fmt"
	"time"

	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/resolver"
)

// Key describes one setting. Every secret one can also be given as NAME_FILE, the path of a file.
type Key struct {
	Name    string
	Default string // as a file would say it; "" means none
	Help    string // one sentence without a full stop
	Secret  bool

	set func(s *Settings, v string) error // nil for a key that nothing reads yet

	// Who alone reads it, see Options; everybody where none is set.
	forGuide, forApply, forPersist bool
	// ofProvider is set for what persist-issue never reads.
	ofProvider bool
	// sameAs names the key that this one is another name of.
	sameAs string
}

// Keys lists every key that any program of the project reads, in the order of the manual.
func Keys() []Key { return append([]Key(nil), keys...) }

// keys drives everything: what is known, what is secret, how it is read and what it is when unset.
var keys = []Key{
	{
		Name: "ACME_CHALLENGE_ALIAS", Help: "alias zones that challenges are delegated to, the first is the default; unset, they are written to the domain's own zone",
		set: func(s *Settings, v string) error { return into(&s.Aliases)(aliasZones(v)) },
	},
	{
		Name: "ACME_CHALLENGE_MAP", Help: "domain=record pins the record of a domain, domain=zone. (with a trailing dot) picks the alias zone of a domain and what is below it",
		set: func(s *Settings, v string) error { return into(&s.challengeMap)(challengeMap(v)) },
	},
	{
		Name: "ACME_CHALLENGE_LABEL", Default: "nested", Help: "nested: _acme-challenge.<domain>.<alias>; hashed: a short label without underscores",
		set: func(s *Settings, v string) error {
			label, err := oneOf(v, "nested", "hashed")
			s.HashedLabels = label == "hashed"
			return err
		},
	},
	{
		Name: "CHALLENGE_TTL", Default: "60", Help: "TTL of a challenge record, 1 s to one day, at Cloudflare no less than 60 s",
		set: func(s *Settings, v string) error {
			ttl, err := within(v, time.Second, 24*time.Hour)
			if err == nil && ttl%time.Second != 0 {
				err = fmt.Errorf("%q is not a whole number of seconds", v)
			}
			return into(&s.ChallengeTTL)(ttl, err)
		},
	},

	{
		Name: "DNS_PROVIDER", ofProvider: true, Help: "cloudflare or rfc2136; needed only where credentials for both are set",
		set: func(s *Settings, v string) error { return into(&s.DNSProvider)(oneOf(v, Cloudflare, RFC2136)) },
	},
	{
		Name: "CLOUDFLARE_API_TOKEN", ofProvider: true, Secret: true, Help: "API token with DNS:Edit and Zone:Read for the alias zone alone",
		set: func(s *Settings, v string) error { return into(&s.CloudflareToken)(token(v)) },
	},
	{
		Name: "CLOUDFLARE_ZONE_ID", ofProvider: true, Help: "id of the zone, or zone=id for several; spares the look-up, so that a token with DNS:Edit alone suffices",
		set: func(s *Settings, v string) error { return into(&s.CloudflareZoneIDs)(zoneIDs(v)) },
	},
	{
		Name: "CLOUDFLARE_API_URL", ofProvider: true, Help: "base URL of the API, for a proxy; unset, Cloudflare's own",
		set: func(s *Settings, v string) error { return into(&s.CloudflareAPIURL)(baseURL(v)) },
	},
	{
		Name: "RFC2136_SERVER", ofProvider: true, Help: "primary server that takes dynamic updates, host or host:port",
		set: func(s *Settings, v string) error { return into(&s.RFC2136Server)(hostPort(v, "53")) },
	},
	{
		Name: "RFC2136_TSIG_NAME", ofProvider: true, Help: "name of the key that signs updates; without one the server has to know this machine by its address",
		set: func(s *Settings, v string) error { return into(&s.RFC2136TSIGName)(dnsname.Parse(v)) },
	},
	{
		Name: "RFC2136_TSIG_SECRET", ofProvider: true, Secret: true, Help: "the key itself, in base64",
		set: func(s *Settings, v string) error { return into(&s.RFC2136TSIGSecret)(base64Secret(v)) },
	},
	{
		Name: "RFC2136_TSIG_ALGORITHM", ofProvider: true, Default: "hmac-sha256", Help: "hmac-sha1, hmac-sha224, hmac-sha256, hmac-sha384 or hmac-sha512",
		set: func(s *Settings, v string) error {
			return into(&s.RFC2136TSIGAlgorithm)(oneOf(v, "hmac-sha1", "hmac-sha224", "hmac-sha256", "hmac-sha384", "hmac-sha512"))
		},
	},
	{
		Name: "RFC2136_ZONE", ofProvider: true, Help: "the only zone to write to; unset, it is found",
		set: func(s *Settings, v string) error { return into(&s.RFC2136Zone)(dnsname.Parse(v)) },
	},
	{
		Name: "PROVIDER_TIMEOUT", Default: "60s", Help: "limit for all API calls of one hook call together",
		set: func(s *Settings, v string) error {
			return into(&s.ProviderTimeout)(within(v, time.Millisecond, 24*time.Hour))
		},
	},

	{
		Name: "DNS_RESOLVERS", Help: "recursive resolvers: an IP address, https://host/dns-query, https://host@ip/path, https://dns.google/resolve, tls://host, udp://ip:port or tcp://ip:port; unset, Google's and Cloudflare's",
		set: func(s *Settings, v string) error { return into(&s.Resolvers)(resolvers(v)) },
	},
	{Name: "DOH_RESOLVERS", sameAs: "DNS_RESOLVERS", Help: "another name of DNS_RESOLVERS"},
	{
		Name: "PROPAGATION", Default: PropagationAuthoritative, Help: "whom to ask whether a challenge is visible: authoritative, resolvers or none",
		set: func(s *Settings, v string) error {
			return into(&s.Propagation)(oneOf(v, PropagationAuthoritative, PropagationResolvers, PropagationNone))
		},
	},
	{
		Name: "PROPAGATION_TIMEOUT", Default: "120s", Help: "how long to wait until it is",
		set: func(s *Settings, v string) error {
			return into(&s.PropagationTimeout)(within(v, time.Millisecond, 24*time.Hour))
		},
	},
	{
		Name: "PROPAGATION_WAIT", Default: "0", Help: "how long to wait besides",
		set: func(s *Settings, v string) error { return into(&s.PropagationWait)(within(v, 0, 24*time.Hour)) },
	},
	{
		Name: "PROPAGATION_SETTLE", Default: "60s", Help: "how long a CA may go on seeing the older values of a name",
		set: func(s *Settings, v string) error { return into(&s.PropagationSettle)(within(v, 0, 24*time.Hour)) },
	},

	{
		Name: "ACME_SERVER", Default: LetsEncrypt, Help: "directory URL of the CA",
		set: func(s *Settings, v string) error { return into(&s.ACMEServer)(webURL(v)) },
	},
	{
		Name: "ACME_STAGING", Default: "false", Help: "use Let's Encrypt's staging server where ACME_SERVER is not set",
		set: func(s *Settings, v string) error { return into(&s.staging)(boolean(v)) },
	},
	{
		Name: "ISSUER_DOMAIN_NAME", Help: "the CA's name in CAA records; unset, that of Let's Encrypt for its servers, and with another CA what its directory says",
		set: func(s *Settings, v string) error { return into(&s.IssuerDomain)(issuerName(v)) },
	},
	{
		Name: "ALLOW_MISSING_CAA", Default: "false", Help: "accept that no CAA record locks the domain to this account",
		set: func(s *Settings, v string) error { return into(&s.AllowMissingCAA)(boolean(v)) },
	},
	{
		Name: "CERTBOT_CONFIG_DIR", Default: "/etc/letsencrypt", Help: "certbot's --config-dir",
		set: func(s *Settings, v string) error { return into(&s.CertbotConfigDir)(absolute(v)) },
	},
	{
		Name: "CERTBOT_ABORT_ON_FAILURE", Default: "false", Help: "keep certbot from asking the CA when a hook failed",
		set: func(s *Settings, v string) error { return into(&s.AbortOnFailure)(boolean(v)) },
	},

	{Name: "CERTHOOK_CONFIG", Default: DefaultFile, Help: "the file with these settings; read from the environment only"},
	{
		Name: "CERTHOOK_STATE_DIR", Default: "/var/lib/certhook", Help: "directory of the journal, and of the accounts and lineages of persist-issue",
		set: func(s *Settings, v string) error { return into(&s.StateDir)(absolute(v)) },
	},
	{
		Name: "CERTHOOK_LOG", Default: "/var/log/certhook/certhook.log", Help: "log file",
		set: func(s *Settings, v string) error { return into(&s.LogFile)(absolute(v)) },
	},

	{
		Name: "DNS_SETUP_MODE", Default: SetupOnce, forGuide: true, Help: "what dnsguide verify does: once, wait, print or webhook",
		set: func(s *Settings, v string) error {
			return into(&s.SetupMode)(oneOf(v, SetupOnce, SetupWait, SetupPrint, SetupWebhook))
		},
	},
	{
		Name: "DNS_SETUP_TIMEOUT", Default: "1800", forGuide: true, Help: "how long it waits, up to a week",
		set: func(s *Settings, v string) error { return into(&s.SetupTimeout)(within(v, 0, 7*24*time.Hour)) },
	},
	{
		Name: "DNS_SETUP_INTERVAL", Default: "15", forGuide: true, Help: "how long between two checks, at least 1 s",
		set: func(s *Settings, v string) error { return into(&s.SetupInterval)(within(v, time.Second, 24*time.Hour)) },
	},
	{
		Name: "DNS_WEBHOOK_URL", forGuide: true, Help: "where it sends the records that are to be created",
		set: func(s *Settings, v string) error { return into(&s.WebhookURL)(webhookURL(v)) },
	},
	{
		Name: "DNS_WEBHOOK_TOKEN", Secret: true, forGuide: true, Help: "key that signs what it sends; without one nothing is sent",
		set: func(s *Settings, v string) error { return into(&s.WebhookToken)(token(v)) },
	},
	{
		Name: "DNS_WEBHOOK_TIMEOUT", Default: "15", forGuide: true, Help: "limit for one request",
		set: func(s *Settings, v string) error {
			return into(&s.WebhookTimeout)(within(v, time.Millisecond, 24*time.Hour))
		},
	},
	{
		Name: "CHALLENGE_TYPE", Default: ChallengeDNS01, forGuide: true, Help: "how the CA validates: dns-01, dns-persist-01, tls-alpn-01, or both for the first two",
		set: func(s *Settings, v string) error {
			return into(&s.ChallengeType)(oneOf(v, ChallengeDNS01, ChallengePersist, ChallengeTLSALPN01, ChallengeBoth))
		},
	},
	{
		Name: "GATEWAY_DOMAIN", forGuide: true, Help: "gateway that the domains have to point at",
		set: func(s *Settings, v string) error { return into(&s.GatewayDomain)(aliasTarget(v)) },
	},
	{
		Name: "TXT_PREFIX", Default: "_dstack-app-address", forGuide: true, Help: "first label of the routing TXT; for a wildcard -wildcard is appended to it",
		set: func(s *Settings, v string) error { return into(&s.TXTPrefix)(label(v)) },
	},
	{
		Name: "DSTACK_APP_ID", forGuide: true, Help: "app id for the webhook",
		set: func(s *Settings, v string) error { return into(&s.DstackAppID)(v, nil) },
	},
	{
		Name: "DSTACK_INSTANCE_ID", forGuide: true, Help: "instance id for the webhook",
		set: func(s *Settings, v string) error { return into(&s.DstackInstanceID)(v, nil) },
	},

	{
		Name: "HAPROXY_CERT_DIR", Default: "/etc/haproxy/certs", forApply: true, Help: "folder of HAProxy's PEM files, as its bind lines name it after crt",
		set: func(s *Settings, v string) error { return into(&s.HAProxy.CertDir)(absolute(v)) },
	},
	{
		Name: "HAPROXY_CONFIG", Default: "/etc/haproxy/haproxy.cfg", forApply: true, Help: "HAProxy's configuration, several files and folders as -f takes them; the running process tells better",
		set: func(s *Settings, v string) error { return into(&s.HAProxy.Config)(absolutes(v)) },
	},
	{
		Name: "HAPROXY_STATS_SOCKET", forApply: true, Help: "stats socket with level admin; unset, as HAProxy's configuration says",
		set: func(s *Settings, v string) error { return into(&s.HAProxy.StatsSocket)(absolute(v)) },
	},
	{
		Name: "HAPROXY_MASTER_SOCKET", forApply: true, Help: "master socket (-S); unset, as the running process says",
		set: func(s *Settings, v string) error { return into(&s.HAProxy.MasterSocket)(absolute(v)) },
	},
	{
		Name: "HAPROXY_PIDFILE", forApply: true, Help: "pidfile of the master process, where several HAProxys run",
		set: func(s *Settings, v string) error { return into(&s.HAProxy.PIDFile)(absolute(v)) },
	},
	{
		Name: "HAPROXY_RELOAD_COMMAND", forApply: true, Help: "shell line that reloads HAProxy, where it has neither a master socket nor a master process to signal",
		set: func(s *Settings, v string) error { return into(&s.HAProxy.ReloadCommand)(v, nil) },
	},
	{
		Name: "HAPROXY_VERIFY", forApply: true, Help: "host:port list at which the certificates have to show; unset, the TLS binds of HAProxy's configuration; off: do not look, with a warning",
		set: func(s *Settings, v string) error { return into(&s.HAProxy.Verify)(verifyTargets(v)) },
	},
	{
		Name: "HAPROXY_GROUP", forApply: true, Help: "group that may read the PEM files, for a HAProxy that does not start as root",
		set: func(s *Settings, v string) error { return into(&s.HAProxy.Group)(v, nil) },
	},
	{
		Name: "HAPROXY_MAX_PAYLOAD", Default: "15360", forApply: true, Help: "octets of an update beyond which HAProxy is reloaded instead, below its tune.bufsize",
		set: func(s *Settings, v string) error { return into(&s.HAProxy.MaxPayload)(octets(v)) },
	},

	{
		Name: "PERSIST_DRAFT", forGuide: true, forPersist: true, Help: "draft of dns-persist-01 that records are for, 01 or 02; unset, the one that the CA offers, or else 01",
		set: func(s *Settings, v string) error { return into(&s.Persist.Draft)(draft(v)) },
	},
	{
		Name: "PERSIST_UNTIL", forGuide: true, forPersist: true, Help: "when new records stop holding: a day (2027-06-30, to its end in UTC), an RFC 3339 time, or seconds since 1970; unset, never",
		set: func(s *Settings, v string) error { return into(&s.Persist.Until)(instant(v)) },
	},
	{
		Name: "PERSIST_ACCOUNT", forGuide: true, forPersist: true, Help: "ACME account that persist-issue uses: own, certbot, or an account's URI; unset, its own if it has one, or else certbot's",
		set: func(s *Settings, v string) error { return into(&s.Persist.Account)(accountChoice(v)) },
	},
	{
		Name: "PERSIST_BUDGET", Default: "300s", forPersist: true, Help: "how long one order may take, at least 1 s; half of it at most is spent on waiting for records",
		set: func(s *Settings, v string) error {
			return into(&s.Persist.Budget)(within(v, time.Second, 24*time.Hour))
		},
	},
	{
		Name: "ACME_PROFILE", forPersist: true, Help: "certificate profile to ask the CA for; unset, the CA chooses",
		set: func(s *Settings, v string) error { return into(&s.Persist.Profile)(word(v)) },
	},
	{
		Name: "ACME_EAB_KID", forPersist: true, Help: "key id of an external account binding, for a CA that asks for one",
		set: func(s *Settings, v string) error { return into(&s.Persist.EABKid)(word(v)) },
	},
	{
		Name: "ACME_EAB_HMAC", Secret: true, forPersist: true, Help: "key of an external account binding, in base64url as the CA hands it out",
		set: func(s *Settings, v string) error { return into(&s.Persist.EABHMAC)(base64URLSecret(v)) },
	},
	{
		Name: "ACME_EMAIL", forPersist: true, Help: "contact address of a new ACME account",
		set: func(s *Settings, v string) error { return into(&s.Persist.Email)(email(v)) },
	},

	{Name: "DOMAIN", Help: "domain that the container serves"},
	{Name: "DOMAINS", Help: "domains that the container serves"},
	{Name: "ROUTING_MAP", Help: "domain to backend"},
	{Name: "TARGET_ENDPOINT", Help: "backend of a single domain"},
	{Name: "RENEW_INTERVAL", Help: "how often the container renews"},
	{Name: "ON_FAILURE", Help: "what the container does when it cannot get a certificate"},
}

// into returns a function that stores a parsed value, so that a parser's two results can be passed on.
// Nothing is stored beside an error.
func into[T any](field *T) func(T, error) error {
	return func(v T, err error) error {
		if err == nil {
			*field = v
		}
		return err
	}
}

// resolvers checks each item as the one who will use it reads it.
func resolvers(v string) ([]string, error) {
	items := list(v)
	for _, item := range items {
		if _, err := resolver.ParseEndpoint(item); err != nil {
			return nil, fmt.Errorf("%v; %s", err, fault.HintOf(err))
		}
	}
	return items, nil
}

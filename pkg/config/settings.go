// Package config turns command-line flags, the environment, systemd's credentials and one file into
// checked [Settings]. A table of keys drives it (see [Keys]); everything that is wrong is reported at
// once, each fault with the place it stands in, and never with the value of a secret.
//
// Precedence, the first that has a value wins: flags, the environment, $CREDENTIALS_DIRECTORY (what the
// unit handed to this very process), the file. An empty value is the same as none, wherever it stands.
package config

import "time"

// DefaultFile is read when neither a flag nor CERTHOOK_CONFIG names a file; it need not exist.
const DefaultFile = "/etc/certhook/certhook.env"

// Options says where settings come from and how strict to be.
type Options struct {
	Flags     map[string]string // key to value, such as "CHALLENGE_TTL": "90"; beats everything else
	FlagNames map[string]string // key to the flag that sets it, such as "CHALLENGE_TTL": "--ttl", for messages
	Environ   []string          // as os.Environ returns it; the process's own environment is never read
	File      string            // "" means $CERTHOOK_CONFIG, or else DefaultFile if that exists

	// NeedProvider makes it an error that no DNS provider is configured.
	NeedProvider bool
	// Guide reads the keys of dnsguide too, so that what is wrong with them is an error. No renewal stops over
	// them, and no hook holds the webhook's token.
	Guide bool
	// NeedSetup is Guide, and makes it an error that the mode in DNS_SETUP_MODE lacks what it needs.
	NeedSetup bool
	// Apply reads the keys of haproxy-apply too. No other program stops over them.
	Apply bool
	// Persist reads the keys of persist-issue too, and none of a DNS provider's: that program has no use for them, and
	// warns where one is set.
	Persist bool
	// Strict is Guide, and makes an unknown key an error instead of a warning (--check-config).
	Strict bool
}

// Settings is what certhook is told, checked and with defaults filled in. Domain names are in the
// canonical form of pkg/dnsname, paths are absolute.
type Settings struct {
	Aliases      []string          // alias zones, the default one first; none means no delegation
	Pins         map[string]string // served domain to the record that holds its challenge, inside an alias zone
	AliasFor     map[string]string // served domain, and what is below it, to one of Aliases
	HashedLabels bool              // hashed instead of nested record names
	ChallengeTTL time.Duration     // whole seconds

	DNSProvider       string // "cloudflare", "rfc2136", or "" where no credentials are set
	CloudflareToken   Secret
	CloudflareZoneIDs map[string]string // zone name to id; the key "" holds an id given without a name
	CloudflareAPIURL  string            // without a trailing slash; "" means Cloudflare's own

	RFC2136Server        string // host:port
	RFC2136TSIGName      string // "" means that updates are not signed
	RFC2136TSIGSecret    Secret // base64
	RFC2136TSIGAlgorithm string // "hmac-sha256" and the like
	RFC2136Zone          string // "" means that the zone is found

	Resolvers          []string // as pkg/resolver.ParseEndpoint takes them; none means the default ones
	Propagation        string   // PropagationAuthoritative, PropagationResolvers or PropagationNone
	PropagationTimeout time.Duration
	PropagationWait    time.Duration // waited besides
	PropagationSettle  time.Duration
	ProviderTimeout    time.Duration // all API calls of one hook call together

	ACMEServer       string // directory URL
	IssuerDomain     string // lower case, as CAs write it; "" means: as ACMEServer says
	CertbotConfigDir string
	AbortOnFailure   bool
	AllowMissingCAA  bool

	// Of dnsguide; without Options.Guide these are the defaults.
	SetupMode        string        // SetupOnce, SetupWait, SetupPrint or SetupWebhook
	SetupTimeout     time.Duration // how long to wait
	SetupInterval    time.Duration // between two checks, at least 1 s
	WebhookURL       string        // it may hold a secret, and does not belong in messages
	WebhookToken     Secret
	WebhookTimeout   time.Duration // of one request
	ChallengeType    string        // ChallengeDNS01, ChallengePersist, ChallengeTLSALPN01 or ChallengeBoth
	GatewayDomain    string        // "" for none; underscores are possible
	TXTPrefix        string        // one label; underscores are possible
	DstackAppID      string
	DstackInstanceID string

	Persist Persist // of persist-issue; without Options.Persist, or for what dnsguide reads too Options.Guide, these are the defaults

	HAProxy HAProxy // of haproxy-apply; without Options.Apply these are the defaults

	StateDir string
	LogFile  string

	File     string   // the file that was read; "" where there is none
	Warnings []string // what is odd but stops nothing, each one line with its place

	challengeMap []mapEntry // as written, before it is checked against Aliases
	staging      bool       // ACME_STAGING, before it is checked against ACME_SERVER
}

// Persist is how certificates are got by dns-persist-01.
type Persist struct {
	Draft   string        // "01", "02", or "" for what the CA offers
	Until   time.Time     // when new records stop holding; zero: never
	Account string        // AccountCertbot, AccountOwn, an account's URI, or "" for the one that there is
	Budget  time.Duration // of one order
	Email   string        // contact of a new account; "" for none
	Profile string        // certificate profile to ask for; "" leaves it to the CA
	EABKid  string        // external account binding (RFC 8555, section 7.3.4); "" for none
	EABHMAC Secret        // its key, in base64url without padding
}

// Values of [Persist].Account.
const (
	AccountCertbot = "certbot"
	AccountOwn     = "own"
)

// HAProxy is where HAProxy is and how it is reached. Paths are absolute; "" leaves it to HAProxy's configuration and
// the running process.
type HAProxy struct {
	CertDir       string
	Config        []string // files and folders
	StatsSocket   string
	MasterSocket  string
	PIDFile       string
	ReloadCommand string   // shell line
	Verify        []string // host:port to look at; none: the configuration's binds; VerifyOff alone: nowhere
	Group         string
	MaxPayload    int // octets
}

// VerifyOff in [HAProxy].Verify means that nobody looks at what HAProxy serves.
const VerifyOff = "off"

// Values of [Settings.Propagation].
const (
	PropagationAuthoritative = "authoritative"
	PropagationResolvers     = "resolvers"
	PropagationNone          = "none"
)

// Names of DNS providers, as DNS_PROVIDER takes them.
const (
	Cloudflare = "cloudflare"
	RFC2136    = "rfc2136"
)

// Directory URLs of Let's Encrypt.
const (
	LetsEncrypt        = "https://acme-v02.api.letsencrypt.org/directory"
	LetsEncryptStaging = "https://acme-staging-v02.api.letsencrypt.org/directory"
)

// Values of [Settings.SetupMode].
const (
	SetupOnce    = "once"
	SetupWait    = "wait"
	SetupPrint   = "print"
	SetupWebhook = "webhook"
)

// Values of [Settings.ChallengeType].
const (
	ChallengeDNS01     = "dns-01"
	ChallengePersist   = "dns-persist-01"
	ChallengeTLSALPN01 = "tls-alpn-01"
	ChallengeBoth      = "both" // dns-01 for certbot and dns-persist-01 for persist-issue
)

package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/certhook/certhook/pkg/fault"
)

// load loads and fails the test on an error. No test reads this machine's own configuration.
func load(t *testing.T, opts Options) *Settings {
	t.Helper()
	withoutDefaultFile(t)
	s, err := Load(opts)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return s
}

// refuse loads, expects an error of kind Usage with all the parts in its text, and returns the text.
func refuse(t *testing.T, opts Options, parts ...string) string {
	t.Helper()
	withoutDefaultFile(t)
	s, err := Load(opts)
	if err == nil {
		t.Fatal("loaded without an error")
	}
	if s == nil {
		t.Fatal("no settings beside the error")
	}
	if kind := fault.KindOf(err); kind != fault.Usage {
		t.Errorf("kind %v, want Usage", kind)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error lacks %q:\n%v", part, err)
		}
	}
	return err.Error()
}

func withoutDefaultFile(t *testing.T) {
	old := defaultFile
	defaultFile = filepath.Join(t.TempDir(), "certhook.env")
	t.Cleanup(func() { defaultFile = old })
}

func TestDefaults(t *testing.T) {
	want := &Settings{
		ChallengeTTL:         60 * time.Second,
		RFC2136TSIGAlgorithm: "hmac-sha256",
		ProviderTimeout:      60 * time.Second,
		Propagation:          PropagationAuthoritative,
		PropagationTimeout:   120 * time.Second,
		PropagationSettle:    60 * time.Second,
		ACMEServer:           "https://acme-v02.api.letsencrypt.org/directory",
		CertbotConfigDir:     "/etc/letsencrypt",
		SetupMode:            SetupOnce,
		SetupTimeout:         30 * time.Minute,
		SetupInterval:        15 * time.Second,
		WebhookTimeout:       15 * time.Second,
		ChallengeType:        ChallengeDNS01,
		TXTPrefix:            "_dstack-app-address",
		Persist:              Persist{Budget: 5 * time.Minute},
		HAProxy:              HAProxy{CertDir: "/etc/haproxy/certs", Config: []string{"/etc/haproxy/haproxy.cfg"}, MaxPayload: 15360},
		StateDir:             "/var/lib/certhook",
		LogFile:              "/var/log/certhook/certhook.log",
	}
	for _, opts := range []Options{{}, {Guide: true}, {NeedSetup: true}, {Persist: true}, {Strict: true}} {
		if got := load(t, opts); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v:\ngot  %+v\nwant %+v", opts, got, want)
		}
	}
}

func TestEachKey(t *testing.T) {
	const id = "0123456789abcdef0123456789abcdef"
	alias := func(more ...string) []string {
		return append([]string{"ACME_CHALLENGE_ALIAS=deleg.example.net,other.example.org"}, more...)
	}
	for _, tc := range []struct {
		env  []string
		got  func(*Settings) any
		want any
	}{
		{[]string{"ACME_CHALLENGE_ALIAS=Deleg.Example.NET."}, func(s *Settings) any { return s.Aliases }, []string{"deleg.example.net"}},
		{[]string{"ACME_CHALLENGE_ALIAS=a.example.net; b.example.net ,a.example.net;"}, func(s *Settings) any { return s.Aliases }, []string{"a.example.net", "b.example.net"}},
		{[]string{"ACME_CHALLENGE_ALIAS=dëleg.example.net"}, func(s *Settings) any { return s.Aliases }, []string{"xn--dleg-lpa.example.net"}},
		{[]string{"ACME_CHALLENGE_ALIAS=me.github.io,github.io"}, func(s *Settings) any { return s.Aliases }, []string{"me.github.io", "github.io"}},
		{alias("ACME_CHALLENGE_MAP=svc.example.com=_x.deleg.example.net;Foo.example.com = Other.example.org."), func(s *Settings) any { return s.Pins }, map[string]string{"svc.example.com": "_x.deleg.example.net"}},
		{alias("ACME_CHALLENGE_MAP=svc.example.com=_x.deleg.example.net;Foo.example.com = Other.example.org."), func(s *Settings) any { return s.AliasFor }, map[string]string{"foo.example.com": "other.example.org"}},
		{[]string{"ACME_CHALLENGE_LABEL=hashed"}, func(s *Settings) any { return s.HashedLabels }, true},
		{[]string{"ACME_CHALLENGE_LABEL=nested"}, func(s *Settings) any { return s.HashedLabels }, false},
		{[]string{"CHALLENGE_TTL=1"}, func(s *Settings) any { return s.ChallengeTTL }, time.Second},
		{[]string{"CHALLENGE_TTL=86400"}, func(s *Settings) any { return s.ChallengeTTL }, 24 * time.Hour},
		{[]string{"CHALLENGE_TTL=2m"}, func(s *Settings) any { return s.ChallengeTTL }, 2 * time.Minute},
		{[]string{"DNS_PROVIDER=rfc2136"}, func(s *Settings) any { return s.DNSProvider }, RFC2136},
		{[]string{"CLOUDFLARE_API_TOKEN=t0ken_-"}, func(s *Settings) any { return s.CloudflareToken.Reveal() }, "t0ken_-"},
		{[]string{"CLOUDFLARE_API_TOKEN=t0ken"}, func(s *Settings) any { return s.DNSProvider }, Cloudflare},
		{[]string{"CLOUDFLARE_ZONE_ID=" + id}, func(s *Settings) any { return s.CloudflareZoneIDs }, map[string]string{"": id}},
		{[]string{"CLOUDFLARE_ZONE_ID=Example.net=" + strings.ToUpper(id) + ";example.org=" + id}, func(s *Settings) any { return s.CloudflareZoneIDs }, map[string]string{"example.net": id, "example.org": id}},
		{[]string{"CLOUDFLARE_API_URL=https://api.example.com/client/v4/"}, func(s *Settings) any { return s.CloudflareAPIURL }, "https://api.example.com/client/v4"},
		{[]string{"CLOUDFLARE_API_URL=http://127.0.0.1:8080"}, func(s *Settings) any { return s.CloudflareAPIURL }, "http://127.0.0.1:8080"},
		{[]string{"CLOUDFLARE_API_URL=http://[::1]:8080"}, func(s *Settings) any { return s.CloudflareAPIURL }, "http://[::1]:8080"},
		{[]string{"CLOUDFLARE_API_URL=http://localhost/v4"}, func(s *Settings) any { return s.CloudflareAPIURL }, "http://localhost/v4"},
		{[]string{"RFC2136_SERVER=NS1.example.net"}, func(s *Settings) any { return s.RFC2136Server }, "ns1.example.net:53"},
		{[]string{"RFC2136_SERVER=ns1.example.net:5353"}, func(s *Settings) any { return s.RFC2136Server }, "ns1.example.net:5353"},
		{[]string{"RFC2136_SERVER=2001:db8::1"}, func(s *Settings) any { return s.RFC2136Server }, "[2001:db8::1]:53"},
		{[]string{"RFC2136_SERVER=[2001:db8::1]:5353"}, func(s *Settings) any { return s.RFC2136Server }, "[2001:db8::1]:5353"},
		{[]string{"RFC2136_SERVER=192.0.2.1"}, func(s *Settings) any { return s.DNSProvider }, RFC2136},
		{[]string{"RFC2136_SERVER=192.0.2.1", "RFC2136_TSIG_NAME=Acme-Key.", "RFC2136_TSIG_SECRET=c2VjcmV0"}, func(s *Settings) any { return s.RFC2136TSIGName }, "acme-key"},
		{[]string{"RFC2136_SERVER=192.0.2.1", "RFC2136_TSIG_NAME=k", "RFC2136_TSIG_SECRET=c2VjcmV0"}, func(s *Settings) any { return s.RFC2136TSIGSecret.Reveal() }, "c2VjcmV0"},
		{[]string{"RFC2136_TSIG_ALGORITHM=hmac-sha512"}, func(s *Settings) any { return s.RFC2136TSIGAlgorithm }, "hmac-sha512"},
		{[]string{"RFC2136_ZONE=Deleg.example.net."}, func(s *Settings) any { return s.RFC2136Zone }, "deleg.example.net"},
		{[]string{"PROVIDER_TIMEOUT=5"}, func(s *Settings) any { return s.ProviderTimeout }, 5 * time.Second},
		{
			[]string{"DNS_RESOLVERS=192.0.2.1; https://dns.example.net/dns-query,https://dns.example.net@192.0.2.2/dns-query"},
			func(s *Settings) any { return s.Resolvers },
			[]string{"192.0.2.1", "https://dns.example.net/dns-query", "https://dns.example.net@192.0.2.2/dns-query"},
		},
		{[]string{"DOH_RESOLVERS=https://dns.google/resolve"}, func(s *Settings) any { return s.Resolvers }, []string{"https://dns.google/resolve"}},
		{[]string{"PROPAGATION=none"}, func(s *Settings) any { return s.Propagation }, PropagationNone},
		{[]string{"PROPAGATION=resolvers"}, func(s *Settings) any { return s.Propagation }, PropagationResolvers},
		{[]string{"PROPAGATION_TIMEOUT=2m"}, func(s *Settings) any { return s.PropagationTimeout }, 2 * time.Minute},
		{[]string{"PROPAGATION_WAIT=30s"}, func(s *Settings) any { return s.PropagationWait }, 30 * time.Second},
		{[]string{"PROPAGATION_SETTLE=0"}, func(s *Settings) any { return s.PropagationSettle }, time.Duration(0)},
		{[]string{"ACME_SERVER=https://localhost:14000/dir"}, func(s *Settings) any { return s.ACMEServer }, "https://localhost:14000/dir"},
		{[]string{"ACME_STAGING=true"}, func(s *Settings) any { return s.ACMEServer }, LetsEncryptStaging},
		{[]string{"ACME_STAGING=false"}, func(s *Settings) any { return s.ACMEServer }, LetsEncrypt},
		{[]string{"ACME_STAGING=false", "ACME_SERVER=" + LetsEncryptStaging}, func(s *Settings) any { return s.ACMEServer }, LetsEncryptStaging},
		{[]string{"ACME_STAGING=1", "ACME_SERVER=" + LetsEncryptStaging}, func(s *Settings) any { return s.ACMEServer }, LetsEncryptStaging},
		{[]string{"ISSUER_DOMAIN_NAME=Pki.Goog"}, func(s *Settings) any { return s.IssuerDomain }, "pki.goog"},
		{[]string{"ALLOW_MISSING_CAA=TRUE"}, func(s *Settings) any { return s.AllowMissingCAA }, true},
		{[]string{"ALLOW_MISSING_CAA=no"}, func(s *Settings) any { return s.AllowMissingCAA }, false},
		{[]string{"CERTBOT_ABORT_ON_FAILURE=1"}, func(s *Settings) any { return s.AbortOnFailure }, true},
		{[]string{"CERTBOT_CONFIG_DIR=/srv/letsencrypt/"}, func(s *Settings) any { return s.CertbotConfigDir }, "/srv/letsencrypt"},
		{[]string{"DNS_SETUP_MODE=wait"}, func(s *Settings) any { return s.SetupMode }, SetupWait},
		{[]string{"DNS_SETUP_MODE=print"}, func(s *Settings) any { return s.SetupMode }, SetupPrint},
		{[]string{"DNS_SETUP_MODE=webhook"}, func(s *Settings) any { return s.SetupMode }, SetupWebhook},
		{[]string{"DNS_SETUP_TIMEOUT=90"}, func(s *Settings) any { return s.SetupTimeout }, 90 * time.Second},
		{[]string{"DNS_SETUP_TIMEOUT=0"}, func(s *Settings) any { return s.SetupTimeout }, time.Duration(0)},
		{[]string{"DNS_SETUP_TIMEOUT=168h"}, func(s *Settings) any { return s.SetupTimeout }, 7 * 24 * time.Hour},
		{[]string{"DNS_SETUP_INTERVAL=1"}, func(s *Settings) any { return s.SetupInterval }, time.Second},
		{[]string{"DNS_SETUP_INTERVAL=2m"}, func(s *Settings) any { return s.SetupInterval }, 2 * time.Minute},
		{[]string{"DNS_WEBHOOK_URL=https://hooks.example.com/x?y=z"}, func(s *Settings) any { return s.WebhookURL }, "https://hooks.example.com/x?y=z"},
		{[]string{"DNS_WEBHOOK_URL=http://127.0.0.1:8080/"}, func(s *Settings) any { return s.WebhookURL }, "http://127.0.0.1:8080/"},
		{[]string{"DNS_WEBHOOK_TOKEN=t0ken"}, func(s *Settings) any { return s.WebhookToken.Reveal() }, "t0ken"},
		{[]string{"DNS_WEBHOOK_TIMEOUT=90s"}, func(s *Settings) any { return s.WebhookTimeout }, 90 * time.Second},
		{[]string{"CHALLENGE_TYPE=dns-persist-01"}, func(s *Settings) any { return s.ChallengeType }, ChallengePersist},
		{[]string{"CHALLENGE_TYPE=tls-alpn-01"}, func(s *Settings) any { return s.ChallengeType }, ChallengeTLSALPN01},
		{[]string{"GATEWAY_DOMAIN=Gateway.Example.net."}, func(s *Settings) any { return s.GatewayDomain }, "gateway.example.net"},
		{[]string{"GATEWAY_DOMAIN=_.gateway.example.net"}, func(s *Settings) any { return s.GatewayDomain }, "_.gateway.example.net"},
		{[]string{"TXT_PREFIX=_App-Address"}, func(s *Settings) any { return s.TXTPrefix }, "_app-address"},
		{[]string{"DSTACK_APP_ID=0xAB"}, func(s *Settings) any { return s.DstackAppID }, "0xAB"},
		{[]string{"DSTACK_INSTANCE_ID=i 1"}, func(s *Settings) any { return s.DstackInstanceID }, "i 1"},
		{[]string{"HAPROXY_CERT_DIR=/srv/certs/"}, func(s *Settings) any { return s.HAProxy.CertDir }, "/srv/certs"},
		{[]string{"HAPROXY_CONFIG=/srv/a.cfg;/srv/conf.d/"}, func(s *Settings) any { return s.HAProxy.Config }, []string{"/srv/a.cfg", "/srv/conf.d"}},
		{[]string{"HAPROXY_STATS_SOCKET=/run/admin.sock"}, func(s *Settings) any { return s.HAProxy.StatsSocket }, "/run/admin.sock"},
		{[]string{"HAPROXY_MASTER_SOCKET=/run/master.sock"}, func(s *Settings) any { return s.HAProxy.MasterSocket }, "/run/master.sock"},
		{[]string{"HAPROXY_PIDFILE=/run/haproxy.pid"}, func(s *Settings) any { return s.HAProxy.PIDFile }, "/run/haproxy.pid"},
		{[]string{"HAPROXY_RELOAD_COMMAND=systemctl reload haproxy; true"}, func(s *Settings) any { return s.HAProxy.ReloadCommand }, "systemctl reload haproxy; true"},
		{[]string{"HAPROXY_VERIFY=192.0.2.1,[2001:db8::1]:8443; Www.example.com:444"}, func(s *Settings) any { return s.HAProxy.Verify }, []string{"192.0.2.1:443", "[2001:db8::1]:8443", "www.example.com:444"}},
		{[]string{"HAPROXY_VERIFY=OFF"}, func(s *Settings) any { return s.HAProxy.Verify }, []string{VerifyOff}},
		{[]string{"HAPROXY_GROUP=haproxy"}, func(s *Settings) any { return s.HAProxy.Group }, "haproxy"},
		{[]string{"HAPROXY_MAX_PAYLOAD=131072"}, func(s *Settings) any { return s.HAProxy.MaxPayload }, 131072},
		{[]string{"PERSIST_DRAFT=-02"}, func(s *Settings) any { return s.Persist.Draft }, "02"},
		{[]string{"PERSIST_DRAFT=1"}, func(s *Settings) any { return s.Persist.Draft }, "01"},
		{[]string{"PERSIST_UNTIL=2027-06-30"}, func(s *Settings) any { return s.Persist.Until }, time.Date(2027, 6, 30, 23, 59, 59, 0, time.UTC)},
		{[]string{"PERSIST_UNTIL=2027-06-30T14:00:00+02:00"}, func(s *Settings) any { return s.Persist.Until }, time.Date(2027, 6, 30, 12, 0, 0, 0, time.UTC)},
		{[]string{"PERSIST_UNTIL=1798675200"}, func(s *Settings) any { return s.Persist.Until }, time.Unix(1798675200, 0).UTC()},
		{[]string{"PERSIST_ACCOUNT=certbot"}, func(s *Settings) any { return s.Persist.Account }, AccountCertbot},
		{[]string{"PERSIST_ACCOUNT=https://ca.example/acct/1"}, func(s *Settings) any { return s.Persist.Account }, "https://ca.example/acct/1"},
		{[]string{"PERSIST_BUDGET=10"}, func(s *Settings) any { return s.Persist.Budget }, 10 * time.Second},
		{[]string{"ACME_PROFILE=shortlived"}, func(s *Settings) any { return s.Persist.Profile }, "shortlived"},
		{[]string{"ACME_EAB_KID=kid-1", "ACME_EAB_HMAC=c2Vjc_-V0A=="}, func(s *Settings) any { return s.Persist.EABKid + " " + s.Persist.EABHMAC.Reveal() }, "kid-1 c2Vjc_-V0A"},
		{[]string{"ACME_EMAIL=you@example.com"}, func(s *Settings) any { return s.Persist.Email }, "you@example.com"},
		{[]string{"CERTHOOK_STATE_DIR=/srv/./state"}, func(s *Settings) any { return s.StateDir }, "/srv/state"},
		{[]string{"CERTHOOK_LOG=/srv/log"}, func(s *Settings) any { return s.LogFile }, "/srv/log"},
	} {
		t.Run(strings.Join(tc.env, " "), func(t *testing.T) {
			s := load(t, Options{Environ: tc.env, Strict: true})
			if got := tc.got(s); !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got %#v, want %#v", got, tc.want)
			}
			if len(s.Warnings) > 0 {
				t.Errorf("warnings: %q", s.Warnings)
			}
		})
	}
}

// TestEveryKeyIsTested keeps the table of TestEachKey and the table of keys together.
func TestEveryKeyIsTested(t *testing.T) {
	source, err := os.ReadFile("load_test.go")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, key := range Keys() {
		if key.Help == "" || strings.HasSuffix(key.Help, ".") {
			t.Errorf("%s: help %q should be one sentence without a full stop", key.Name, key.Help)
		}
		if names[key.Name] {
			t.Errorf("%s is listed twice", key.Name)
		}
		names[key.Name] = true
		if key.set != nil && !strings.Contains(string(source), `"`+key.Name+`=`) {
			t.Errorf("no test sets %s", key.Name)
		}
	}
}

func TestPrecedence(t *testing.T) {
	file := write(t, "certhook.env", "CHALLENGE_TTL=70\nPROPAGATION_WAIT=1\nPROVIDER_TIMEOUT=7\nCLOUDFLARE_API_TOKEN=from-file\nRFC2136_SERVER=192.0.2.1\n", 0o600)
	credentials := t.TempDir()
	if err := os.WriteFile(filepath.Join(credentials, "cloudflare_api_token"), []byte("from-credentials\n"), 0o400); err != nil {
		t.Fatal(err)
	}
	named := write(t, "token", "from-named-file\n", 0o600)
	env := []string{"DNS_PROVIDER=cloudflare", "CHALLENGE_TTL=80", "PROPAGATION_WAIT=2", "PROVIDER_TIMEOUT="}

	s := load(t, Options{File: file, Environ: env, Flags: map[string]string{"CHALLENGE_TTL": "90"}})
	if s.ChallengeTTL != 90*time.Second {
		t.Errorf("a flag does not beat the environment: %v", s.ChallengeTTL)
	}
	if s.PropagationWait != 2*time.Second {
		t.Errorf("the environment does not beat the file: %v", s.PropagationWait)
	}
	if s.ProviderTimeout != 7*time.Second {
		t.Errorf("an empty variable is not the same as none: %v", s.ProviderTimeout)
	}
	if s.DNSProvider != Cloudflare || s.RFC2136Server == "" {
		t.Errorf("provider %q, server %q: the environment's DNS_PROVIDER should decide between two", s.DNSProvider, s.RFC2136Server)
	}
	if s.File != file {
		t.Errorf("File = %q, want %q", s.File, file)
	}

	for _, tc := range []struct {
		what  string
		env   []string
		flags map[string]string
		want  string
	}{
		{"file", nil, nil, "from-file"},
		{"credentials", []string{"CREDENTIALS_DIRECTORY=" + credentials}, nil, "from-credentials"},
		{"environment", []string{"CREDENTIALS_DIRECTORY=" + credentials, "CLOUDFLARE_API_TOKEN=from-environment"}, nil, "from-environment"},
		{"environment's file", []string{"CREDENTIALS_DIRECTORY=" + credentials, "CLOUDFLARE_API_TOKEN_FILE=" + named}, nil, "from-named-file"},
		{"flag", []string{"CLOUDFLARE_API_TOKEN=from-environment"}, map[string]string{"CLOUDFLARE_API_TOKEN": "from-flag"}, "from-flag"},
		{"flag's file", []string{"CLOUDFLARE_API_TOKEN=from-environment"}, map[string]string{"CLOUDFLARE_API_TOKEN_FILE": named}, "from-named-file"},
	} {
		t.Run(tc.what, func(t *testing.T) {
			s := load(t, Options{File: file, Environ: append(tc.env, "DNS_PROVIDER=cloudflare"), Flags: tc.flags})
			if got := s.CloudflareToken.Reveal(); got != tc.want {
				t.Errorf("token %q, want %q", got, tc.want)
			}
		})
	}
}

func TestWhichFile(t *testing.T) {
	a := write(t, "a.env", "CHALLENGE_TTL=61\n", 0o644)
	b := write(t, "b.env", "CHALLENGE_TTL=62\n", 0o644)
	if s := load(t, Options{File: a, Environ: []string{"CERTHOOK_CONFIG=" + b}}); s.ChallengeTTL != 61*time.Second {
		t.Errorf("the file that is named does not beat CERTHOOK_CONFIG: %v", s.ChallengeTTL)
	}
	if s := load(t, Options{Environ: []string{"CERTHOOK_CONFIG=" + b}}); s.ChallengeTTL != 62*time.Second || s.File != b {
		t.Errorf("CERTHOOK_CONFIG is not read: %v, %q", s.ChallengeTTL, s.File)
	}
	missing := filepath.Join(t.TempDir(), "none.env")
	if text := refuse(t, Options{File: missing, NeedProvider: true}, missing, "no such file"); strings.Contains(text, "\n") {
		t.Errorf("a missing file is more than one fault:\n%s", text)
	}
	refuse(t, Options{Environ: []string{"CERTHOOK_CONFIG=" + missing}}, missing, "no such file")
	refuse(t, Options{Environ: []string{"CERTHOOK_CONFIG=c.env"}}, "CERTHOOK_CONFIG", "absolute")
	refuse(t, Options{File: t.TempDir()}, "not a regular file")

	withoutDefaultFile(t)
	if err := os.WriteFile(defaultFile, []byte("CHALLENGE_TTL=63\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := Load(Options{})
	if err != nil || s.ChallengeTTL != 63*time.Second || s.File != defaultFile {
		t.Errorf("the default file is not read: %v, %v, %q", err, s.ChallengeTTL, s.File)
	}
}

// TestAllAtOnce wants every fault of every source in one error, and the settings that tell where the
// log is beside it.
func TestAllAtOnce(t *testing.T) {
	file := write(t, "c.env", "CHALLENGE_TTL=x\nnonsense\nCERTHOOK_LOG=/srv/certhook.log\nCLOUDFLARE_API_TOKEN='t'\n", 0o644)
	opts := Options{
		File:    file,
		Environ: []string{"PROPAGATION=maybe", "DELEGATION_ZONE=deleg.example.net"},
		Flags:   map[string]string{"PROVIDER_TIMEOUT": "-1", "NO_SUCH_KEY": "1"},
	}
	text := refuse(t, opts,
		file+":1: CHALLENGE_TTL: ", file+":2: ", file+":4: CLOUDFLARE_API_TOKEN: ", "chmod 600 "+file,
		"environment: PROPAGATION: ", "environment: DELEGATION_ZONE: ", "ACME_CHALLENGE_ALIAS",
		"command line: PROVIDER_TIMEOUT: ", "command line: NO_SUCH_KEY: ")
	if lines := strings.Count(text, "\n") + 1; lines != 8 {
		t.Errorf("%d lines, want 8:\n%s", lines, text)
	}
	s, err := Load(opts)
	if err == nil || s.LogFile != "/srv/certhook.log" || s.StateDir != "/var/lib/certhook" {
		t.Errorf("settings beside the error: log %q, state %q", s.LogFile, s.StateDir)
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		t.Fatalf("the error is a %T, not a join", err)
	}
	for _, e := range joined.Unwrap() {
		if _, ok := e.(*fault.Error); !ok {
			t.Errorf("%q is a %T", e, e)
		}
	}
}

// TestRefusedCredentialIsNotMissing: one fault, one line.
func TestRefusedCredentialIsNotMissing(t *testing.T) {
	for _, line := range []string{"CLOUDFLARE_API_TOKEN='t'", "CLOUDFLARE_API_TOKEN=a b", "CLOUDFLARE_API_TOKEN_FILE='/x'", "CLOUDFLARE_API_TOKEN_FILE=/nonexistent"} {
		text := refuse(t, Options{File: write(t, "c.env", line+"\n", 0o600), NeedProvider: true}, "CLOUDFLARE_API_TOKEN")
		if strings.Contains(text, "\n") {
			t.Errorf("%s: more than one fault:\n%s", line, text)
		}
	}
}

func TestNeedProvider(t *testing.T) {
	text := refuse(t, Options{NeedProvider: true}, "CLOUDFLARE_API_TOKEN", "RFC2136_SERVER", "there is no such file")
	if strings.Contains(text, "\n") {
		t.Errorf("more than one fault:\n%s", text)
	}
	load(t, Options{NeedProvider: true, Environ: []string{"CLOUDFLARE_API_TOKEN=t"}})
	load(t, Options{NeedProvider: true, Environ: []string{"RFC2136_SERVER=192.0.2.1"}})
	load(t, Options{Environ: []string{"DNS_PROVIDER=cloudflare"}})
}

func TestUnknownKeys(t *testing.T) {
	file := write(t, "c.env", "CERTHOOK_LOGS=/x\nHTTP_PROXY=x\nDOMAIN=svc.example.com\nCERTHOOK_CONFIG=/x\n", 0o600)
	env := []string{"ACME_CHALLENGE_LABLE=hashed", "CLOUDFLARE_EMAIL=me@example.com", "PATH=/bin"}
	s := load(t, Options{File: file, Environ: env})
	want := []string{"environment: ACME_CHALLENGE_LABLE: ", file + ":1: CERTHOOK_LOGS: ", file + ":2: HTTP_PROXY: "}
	if len(s.Warnings) != len(want) {
		t.Fatalf("warnings %q, want %d", s.Warnings, len(want))
	}
	for i := range want {
		if !strings.HasPrefix(s.Warnings[i], want[i]) {
			t.Errorf("warning %q, want %q…", s.Warnings[i], want[i])
		}
	}
	if !strings.Contains(s.Warnings[0], "did you mean ACME_CHALLENGE_LABEL?") {
		t.Errorf("no nearest key in %q", s.Warnings[0])
	}
	text := refuse(t, Options{File: file, Environ: env, Strict: true}, want...)
	if n := strings.Count(text, "\n") + 1; n != len(want) {
		t.Errorf("%d faults, want %d:\n%s", n, len(want), text)
	}
}

// TestUnknownKeyOfDelegation: a typo must not turn delegation off, in the hooks (which are not strict) either.
func TestUnknownKeyOfDelegation(t *testing.T) {
	for name, near := range map[string]string{
		"ACME_CHALENGE_ALIAS": "ACME_CHALLENGE_ALIAS", "ACME_CHALLENGE_ALIASES": "ACME_CHALLENGE_ALIAS",
		"acme_challenge_alias": "ACME_CHALLENGE_ALIAS", "ACME_CHALLANGE_MAP": "ACME_CHALLENGE_MAP", "ACME_CHALLENGE_MPA": "ACME_CHALLENGE_MAP",
	} {
		line := name + "=deleg.example.net"
		file := write(t, "c.env", line+"\n", 0o600)
		refuse(t, Options{File: file}, file+":1: "+name+": ", "did you mean "+near+"?")
		refuse(t, Options{Environ: []string{line}}, "environment: "+name+": ", "did you mean "+near+"?")
		load(t, Options{Environ: []string{name + "="}}) // as if it were not set
	}
	if s := load(t, Options{Environ: []string{"ACME_HOME=/x", "CHALLENGE_MAP_SIZE=1"}}); len(s.Warnings) > 0 {
		t.Errorf("warnings %q about what is not ours", s.Warnings)
	}
}

// TestAliasIsNotAToken: a token set for the alias zone is shown by no error, in whatever spelling.
func TestAliasIsNotAToken(t *testing.T) {
	for _, v := range []string{"zx8-test_token", "Zx8-TEST_token", "zx8-test_token-zx8-test_token-zx8-test_token-zx8-test_token-zx8-test_token", "zx8-test_token+/="} {
		text := refuse(t, Options{Environ: []string{"ACME_CHALLENGE_ALIAS=" + v}}, "environment: ACME_CHALLENGE_ALIAS: ", "public suffix")
		if strings.Contains(strings.ToLower(text), "zx8") {
			t.Errorf("the error shows the value: %s", text)
		}
	}
}

func TestDelegationZone(t *testing.T) {
	const legacy = "DELEGATION_ZONE=deleg.example.net"
	refuse(t, Options{Environ: []string{legacy}}, "environment: DELEGATION_ZONE: ", "ACME_CHALLENGE_ALIAS")
	refuse(t, Options{Environ: []string{legacy, "ACME_CHALLENGE_ALIAS="}}, "DELEGATION_ZONE")
	if s := load(t, Options{Environ: []string{legacy, "ACME_CHALLENGE_ALIAS=Deleg.example.net"}}); len(s.Warnings) > 0 {
		t.Errorf("the same zone twice: %q", s.Warnings)
	}
	if s := load(t, Options{Environ: []string{legacy}, Flags: map[string]string{"ACME_CHALLENGE_ALIAS": "other.example.net"}}); len(s.Warnings) != 1 || s.Aliases[0] != "other.example.net" {
		t.Errorf("another zone: aliases %q, warnings %q", s.Aliases, s.Warnings)
	}
}

func TestControlCharactersInTheEnvironment(t *testing.T) {
	refuse(t, Options{Environ: []string{"CERTHOOK_LOG=/var/log/\x1b[31m"}}, "environment: CERTHOOK_LOG: ", "control character")
}

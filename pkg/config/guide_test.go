package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestKeysOfTheGuide wants no other program to stop over them, or to hold the webhook's token.
func TestKeysOfTheGuide(t *testing.T) {
	credentials := t.TempDir()
	if err := os.WriteFile(filepath.Join(credentials, "dns_webhook_token"), []byte("t0ken"), 0o600); err != nil {
		t.Fatal(err)
	}
	wrong := map[string]string{
		"DNS_SETUP_MODE": "always", "DNS_SETUP_TIMEOUT": "169h", "DNS_SETUP_INTERVAL": "999ms",
		"DNS_WEBHOOK_URL": "http://hooks.example.com/", "DNS_WEBHOOK_TOKEN": "a b", "DNS_WEBHOOK_TIMEOUT": "0",
		"CHALLENGE_TYPE": "http-01", "GATEWAY_DOMAIN": "192.0.2.1", "TXT_PREFIX": "_a.b", "DSTACK_APP_ID": "\x1b", "DSTACK_INSTANCE_ID": "\x00",
	}
	env := []string{"DNS_WEBHOOK_TOKEN_FILE=/nonexistent", "CREDENTIALS_DIRECTORY=" + credentials}
	parts := []string{"DNS_WEBHOOK_TOKEN_FILE"}
	for key, value := range wrong {
		env = append(env, key+"="+value)
		parts = append(parts, "environment: "+key+": ")
	}
	s := load(t, Options{Environ: env})
	if len(s.Warnings) > 0 || s.SetupMode != SetupOnce || s.WebhookURL != "" || !s.WebhookToken.IsZero() {
		t.Errorf("a hook gets %q, %q, token %v and warnings %q", s.SetupMode, s.WebhookURL, s.WebhookToken.Reveal(), s.Warnings)
	}
	for _, opts := range []Options{{Guide: true}, {NeedSetup: true}, {Strict: true}} {
		opts.Environ = env
		refuse(t, opts, parts...)
	}
	if s := load(t, Options{Environ: env[1:2], Guide: true}); s.WebhookToken.Reveal() != "t0ken" {
		t.Error("the webhook's token is not read from the credentials")
	}
	if err := os.Truncate(filepath.Join(credentials, "dns_webhook_token"), 0); err != nil {
		t.Fatal(err)
	}
	load(t, Options{Environ: env[1:2]}) // a hook does not even look at it
	refuse(t, Options{Environ: env[1:2], Guide: true}, "dns_webhook_token", "empty")
}

func TestNeedSetup(t *testing.T) {
	const mode, url, token = "DNS_SETUP_MODE=webhook", "DNS_WEBHOOK_URL=https://hooks.example.com/", "DNS_WEBHOOK_TOKEN=t0ken"
	need := func(environ ...string) Options { return Options{Environ: environ, NeedSetup: true} }
	load(t, need(mode, url, token))
	load(t, need(url)) // nothing is sent
	load(t, Options{Environ: []string{mode}, Guide: true, Strict: true})
	refuse(t, need(mode, token), "environment: DNS_SETUP_MODE: ", "DNS_WEBHOOK_URL")
	refuse(t, need(mode, url), "environment: DNS_SETUP_MODE: ", "DNS_WEBHOOK_TOKEN")
	for _, opts := range []Options{need(mode, url, "DNS_WEBHOOK_TOKEN=a b"), need(mode, "DNS_WEBHOOK_URL=x", token)} {
		if text := refuse(t, opts); strings.Contains(text, "\n") {
			t.Errorf("more than one fault:\n%s", text)
		}
	}
	opts := need(url)
	opts.Flags = map[string]string{"DNS_SETUP_MODE": "webhook"}
	opts.FlagNames = map[string]string{"DNS_SETUP_MODE": "--mode"}
	if text := refuse(t, opts, "DNS_WEBHOOK_TOKEN"); !strings.HasPrefix(text, "--mode: ") {
		t.Errorf("%q does not begin with the flag", text)
	}
}

// TestFlagNames wants whoever gave a flag to read of the flag, and of nothing else.
func TestFlagNames(t *testing.T) {
	names := map[string]string{"DNS_SETUP_TIMEOUT": "--timeout", "DNS_SETUP_INTERVAL": "--interval", "DNS_RESOLVERS": "--resolver"}
	opts := Options{
		Flags:     map[string]string{"DNS_SETUP_TIMEOUT": "soon", "DNS_RESOLVERS": "ftp://x", "CHALLENGE_TTL": "0"},
		FlagNames: names,
		Environ:   []string{"DNS_SETUP_INTERVAL=0", "DNS_SETUP_TIMEOUT=5"},
		Guide:     true,
	}
	text := refuse(t, opts)
	lines := strings.Split(text, "\n")
	if len(lines) != 4 {
		t.Fatalf("%d faults, want 4:\n%s", len(lines), text)
	}
	for i, prefix := range []string{"command line: CHALLENGE_TTL: ", "--resolver: ", "--timeout: ", "environment: DNS_SETUP_INTERVAL: "} {
		if !strings.HasPrefix(lines[i], prefix) {
			t.Errorf("fault %q, want %s…", lines[i], prefix)
		}
	}
	s := load(t, Options{
		Flags: map[string]string{
			"DNS_SETUP_MODE": "wait", "DNS_SETUP_TIMEOUT": "2m", "DNS_SETUP_INTERVAL": "3", "CHALLENGE_TYPE": "tls-alpn-01",
			"GATEWAY_DOMAIN": "flag.example.net", "ACME_CHALLENGE_ALIAS": "flag.example.org", "DNS_RESOLVERS": "192.0.2.1;192.0.2.2",
		},
		FlagNames: names,
		Environ: []string{
			"DNS_SETUP_MODE=print", "DNS_SETUP_TIMEOUT=7", "DNS_SETUP_INTERVAL=7", "CHALLENGE_TYPE=dns-01",
			"GATEWAY_DOMAIN=env.example.net", "ACME_CHALLENGE_ALIAS=env.example.org", "DNS_RESOLVERS=192.0.2.7",
		},
		Guide: true,
	})
	if s.SetupMode != SetupWait || s.SetupTimeout != 2*time.Minute || s.SetupInterval != 3*time.Second || s.ChallengeType != ChallengeTLSALPN01 ||
		s.GatewayDomain != "flag.example.net" || s.Aliases[0] != "flag.example.org" || len(s.Resolvers) != 2 {
		t.Errorf("a flag does not beat the environment: %+v", s)
	}
}

func TestStaging(t *testing.T) {
	const other = "https://ca.example/directory"
	file := write(t, "c.env", "ACME_STAGING=true\n", 0o600)
	refuse(t, Options{File: file, Environ: []string{"ACME_SERVER=" + other}}, file+":1: ACME_STAGING: ", "ACME_SERVER", other, "environment")
	refuse(t, Options{File: file, Environ: []string{"ACME_SERVER=" + LetsEncrypt}}, LetsEncrypt)
	if text := refuse(t, Options{File: file, Environ: []string{"ACME_SERVER=x"}}); strings.Contains(text, "\n") {
		t.Errorf("more than one fault:\n%s", text)
	}
}

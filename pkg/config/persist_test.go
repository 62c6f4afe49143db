package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// No other program stops over the keys of persist-issue, or holds its secret.
func TestKeysOfPersistIssue(t *testing.T) {
	wrong := map[string]string{
		"PERSIST_DRAFT": "03", "PERSIST_UNTIL": "soon", "PERSIST_ACCOUNT": "mine", "PERSIST_BUDGET": "0", "ACME_PROFILE": "a b",
		"ACME_EAB_KID": "a b", "ACME_EAB_HMAC": "a+b", "ACME_EMAIL": "you",
	}
	var env, parts []string
	for key, value := range wrong {
		env = append(env, key+"="+value)
		parts = append(parts, "environment: "+key+": ")
	}
	if s := load(t, Options{Environ: env}); len(s.Warnings) > 0 || !s.Persist.EABHMAC.IsZero() || s.Persist.EABKid != "" {
		t.Errorf("another program gets %+v and warnings %q", s.Persist, s.Warnings)
	}
	for _, opts := range []Options{{Persist: true}, {Strict: true}} {
		opts.Environ = env
		refuse(t, opts, parts...)
	}
	refuse(t, Options{Environ: env, Guide: true}, "PERSIST_DRAFT", "PERSIST_UNTIL")
	refuse(t, Options{Persist: true, Environ: []string{"ACME_EAB_KID=k"}}, "ACME_EAB_HMAC is not set")
	refuse(t, Options{Persist: true, Environ: []string{"ACME_EAB_HMAC=c2VjcmV0"}}, "ACME_EAB_KID is not set")
}

// persist-issue warns of a DNS credential wherever it is, and neither reads nor judges it.
func TestCredentialBesidePersistIssue(t *testing.T) {
	credentials := t.TempDir()
	if err := os.WriteFile(filepath.Join(credentials, "cloudflare_api_token"), []byte("from-credentials"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := write(t, "c.env", "RFC2136_TSIG_SECRET_FILE=/nonexistent\n", 0o600)
	for _, strict := range []bool{false, true} {
		s := load(t, Options{Persist: true, Strict: strict, File: file, Environ: []string{
			"CLOUDFLARE_API_TOKEN=white space", "RFC2136_SERVER=not a server", "CREDENTIALS_DIRECTORY=" + credentials,
		}})
		if !s.CloudflareToken.IsZero() || s.RFC2136Server != "" || s.DNSProvider != "" {
			t.Errorf("it reads %+v", s)
		}
		want := []string{"environment: CLOUDFLARE_API_TOKEN: ", filepath.Join(credentials, "cloudflare_api_token") + ": ", file + ":1: RFC2136_TSIG_SECRET: "}
		if len(s.Warnings) != len(want) {
			t.Fatalf("warnings %q, want %d", s.Warnings, len(want))
		}
		for i, w := range want {
			if !strings.HasPrefix(s.Warnings[i], w) || strings.Contains(s.Warnings[i], "white space") {
				t.Errorf("warning %q, want %q", s.Warnings[i], w)
			}
		}
	}
	if s := load(t, Options{Persist: true}); len(s.Warnings) > 0 {
		t.Errorf("warnings without a credential: %q", s.Warnings)
	}
}

func TestPersistIssueWritesNoRecord(t *testing.T) {
	refuse(t, Options{Persist: true, Environ: []string{"SET_CAA=true"}}, "environment: SET_CAA: ", "without a way to use a DNS credential")
	load(t, Options{Persist: true, Environ: []string{"SET_CAA=false"}})
	load(t, Options{Environ: []string{"SET_CAA=true"}})
}

// Package man renders the manual pages of the commands. Only tests import it: the pages are files in the
// repository, and a test of each command compares its own.
package man

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cpuguy83/go-md2man/v2/md2man"
	"github.com/urfave/cli/v2"

	hookcli "github.com/certhook/certhook/pkg/cli"
	"github.com/certhook/certhook/pkg/config"
)

var update = flag.Bool("update", false, "rewrite the manual page")

// Check compares the page at path with what app, which must never have run, renders to: a run puts the
// values of environment variables into the defaults of flags. keys are the settings to describe; an
// entry that ends with "*" stands for all that begin so.
func Check(t *testing.T, app *cli.App, section int, path string, keys []string, tail string) {
	t.Helper()
	body, err := app.ToMarkdown()
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("%% %s %d\n\n%s\n# EXIT STATUS\n\n%s# SETTINGS\n\nFrom the environment, or from /etc/certhook/certhook.env with one KEY=value a line; the environment wins.\n\n%s%s",
		app.Name, section, body, hookcli.ExitStatus(app), settings(keys), tail)
	want := md2man.Render([]byte(text))
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%s is out of date; run: go test ./cmd/%s -update", path, app.Name)
	}
}

func settings(keys []string) string {
	var b strings.Builder
	for _, k := range config.Keys() {
		if !wanted(k.Name, keys) {
			continue
		}
		fmt.Fprintf(&b, "**%s**\n: %s", k.Name, strings.ReplaceAll(k.Help, "<", `\<`))
		if k.Default != "" {
			fmt.Fprintf(&b, " (default: %s)", k.Default)
		}
		if k.Secret {
			fmt.Fprintf(&b, "; secret, also as %s_FILE", k.Name)
		}
		b.WriteString("\n\n")
	}
	return b.String()
}

func wanted(name string, keys []string) bool {
	for _, k := range keys {
		if prefix, ok := strings.CutSuffix(k, "*"); name == k || (ok && strings.HasPrefix(name, prefix)) {
			return true
		}
	}
	return false
}

// HookKeys are the settings that both hooks take.
var HookKeys = []string{
	"ACME_CHALLENGE_*", "CHALLENGE_TTL", "DNS_PROVIDER", "CLOUDFLARE_*", "RFC2136_*", "DNS_RESOLVERS",
	"PROPAGATION*", "PROVIDER_TIMEOUT", "CERTBOT_ABORT_ON_FAILURE", "ACME_SERVER", "ACME_STAGING", "ISSUER_DOMAIN_NAME", "CERTBOT_CONFIG_DIR", "CERTHOOK_*",
}

// GuideKeys are the settings that dnsguide takes.
var GuideKeys = []string{
	"ACME_CHALLENGE_*", "DNS_RESOLVERS", "DNS_SETUP_*", "DNS_WEBHOOK_*", "ALLOW_MISSING_CAA", "CHALLENGE_TYPE",
	"ACME_SERVER", "ACME_STAGING", "ISSUER_DOMAIN_NAME", "CERTBOT_CONFIG_DIR", "GATEWAY_DOMAIN", "TXT_PREFIX", "DSTACK_*",
}

// ApplyKeys are the settings that haproxy-apply takes.
var ApplyKeys = []string{"HAPROXY_*", "CERTBOT_CONFIG_DIR", "CERTHOOK_*"}

// Package man renders the manual pages of the commands. Only tests import it: the pages are files in the
// repository, and a test of each command compares its own.
package man

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
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
	body, err := pages(app)
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

// template is the page in place of the library's, whose SYNOPSIS is a list of flags.
const template = `# NAME

{{ .App.Name }} - {{ .App.Usage }}

# SYNOPSIS

` + "```\n{{ .App.UsageText }}\n```" + `

# DESCRIPTION

{{ .App.Description }}

# OPTIONS

{{ range .GlobalArgs }}{{ . }}
{{ end }}{{ if .Commands }}
# COMMANDS

Each takes **--config**, **--check-config** and **-v** as well.

{{ range .Commands }}{{ . }}
{{ end }}{{ end }}`

// pages renders app in Markdown, with the descriptions of its commands, which the library leaves out.
func pages(app *cli.App) (string, error) {
	cli.MarkdownDocTemplate = template
	var common []string
	for _, f := range hookcli.CommonFlags() {
		common = append(common, f.Names()...)
	}
	for _, c := range app.Commands {
		if c.Description != "" {
			c.Usage += "\n\n" + c.Description
		}
		c.Flags = slices.DeleteFunc(c.Flags, func(f cli.Flag) bool { return slices.Contains(common, f.Names()[0]) })
	}
	body, err := app.ToMarkdown()
	body = strings.ReplaceAll(body, "\n## ", "\n### ") // a command is part of COMMANDS
	return valued.ReplaceAllString(body, "$1 *$3*$2"), err
}

// valued is a flag that takes a value, whose name stands between backquotes further on.
var valued = regexp.MustCompile("(?m)^(\\*\\*.*\\*\\*)=\"\"(: [^`\n]*`([A-Z]+)`)")

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
	"PERSIST_ACCOUNT", "PERSIST_DRAFT", "PERSIST_UNTIL", "CERTHOOK_STATE_DIR",
}

// ApplyKeys are the settings that haproxy-apply takes.
var ApplyKeys = []string{"HAPROXY_*", "CERTBOT_CONFIG_DIR", "CERTHOOK_*"}

// PersistKeys are the settings that persist-issue takes.
var PersistKeys = []string{
	"PERSIST_*", "ACME_PROFILE", "ACME_EAB_*", "ACME_EMAIL", "ACME_SERVER", "ACME_STAGING", "ISSUER_DOMAIN_NAME", "CERTBOT_CONFIG_DIR",
	"DNS_RESOLVERS", "PROPAGATION*", "CERTHOOK_*",
}

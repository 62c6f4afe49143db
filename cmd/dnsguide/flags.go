package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/certhook/certhook/cmd/internal/setup"
	hookcli "github.com/certhook/certhook/pkg/cli"
	"github.com/certhook/certhook/pkg/config"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/guide"
)

// planFlags are those of records and verify: for which names, and what they are to have.
func planFlags(own ...cli.Flag) []cli.Flag {
	return hookcli.CommonFlags(append([]cli.Flag{
		&cli.StringSliceFlag{Name: "d", Aliases: []string{"domain"}, Usage: "a `NAME` of the certificate, wildcards too; may be repeated"},
		&cli.BoolFlag{Name: "from-certbot", DisableDefaultText: true, Usage: "all names that certbot renews by manual hooks at ACME_SERVER"},
		&cli.StringFlag{Name: "challenge", Usage: "`METHOD`: dns-01, dns-persist-01, both, tls-alpn-01 (default: CHALLENGE_TYPE)"},
		&cli.StringSliceFlag{Name: "include", Usage: "`KINDS`: cname, txt, caa, challenge-cname, validation-txt (default: all)"},
		&cli.StringFlag{Name: "delegation-zone", Usage: "alias `ZONE` for challenges (default: ACME_CHALLENGE_ALIAS)"},
		&cli.StringFlag{Name: "account-uri", Usage: "`URI` of the ACME account (default: certbot's)"},
		&cli.StringFlag{Name: "caa-tag", Usage: "`TAG` of the CAA: issue, or issuewild for both (default: as needed)"},
		&cli.StringFlag{Name: "caa-name", Usage: "`NAME` that the CAA stands at, or is to (default: the domain)"},
		&cli.StringFlag{Name: "caa-value", Usage: "whole `VALUE` of the CAA (default: of issuer, method and account)"},
		&cli.StringFlag{Name: "alias-target", Usage: "`HOST` that names lead clients to (default: GATEWAY_DOMAIN)"},
		&cli.StringFlag{Name: "txt-value", Usage: "`VALUE` of the routing TXT"},
		&cli.StringFlag{Name: "txt-name", Usage: "`NAME` of the routing TXT (default: TXT_PREFIX.NAME)"},
		&cli.StringSliceFlag{Name: "resolver", Usage: "`RESOLVER` to ask besides, two at least (default: DNS_RESOLVERS)"},
		&cli.BoolFlag{Name: "json", DisableDefaultText: true, Usage: "print JSON"},
	}, append(persistFlags(), own...)...)...)
}

// settingsOf names the setting that each flag stands for.
var settingsOf = map[string]string{
	"challenge":       "CHALLENGE_TYPE",
	"delegation-zone": "ACME_CHALLENGE_ALIAS",
	"draft":           "PERSIST_DRAFT",
	"alias-target":    "GATEWAY_DOMAIN",
	"resolver":        "DNS_RESOLVERS",
	"mode":            "DNS_SETUP_MODE",
	"timeout":         "DNS_SETUP_TIMEOUT",
	"interval":        "DNS_SETUP_INTERVAL",
}

// load reads the settings that the command line, environ and the file give.
func load(c *cli.Context, environ []string) (*config.Settings, error) {
	given, names := map[string]string{}, map[string]string{}
	for flag, key := range settingsOf {
		names[key] = "--" + flag
		switch {
		case !c.IsSet(flag):
		case flag == "resolver":
			given[key] = strings.Join(c.StringSlice(flag), ";")
		default:
			given[key] = c.String(flag)
		}
	}
	return setup.LoadGuide(c, environ, given, names, c.Command.Name == "verify")
}

// included reads --include; nil stands for everything.
func included(c *cli.Context) (map[guide.Kind]bool, error) {
	kinds := map[guide.Kind]bool{}
	for _, item := range c.StringSlice("include") {
		kind := guide.Kind(strings.ToLower(strings.TrimSpace(item)))
		if !slices.Contains(guide.Kinds(), kind) {
			return nil, fault.Errorf(fault.Usage, "--include: %q is no kind of record; write cname, txt, caa, challenge-cname or validation-txt", item)
		}
		kinds[kind] = true
	}
	if len(kinds) == 0 {
		return nil, nil
	}
	if kinds[guide.TXT] && !c.IsSet("txt-value") {
		return nil, fault.Errorf(fault.Usage, "--include txt needs --txt-value")
	}
	return kinds, nil
}

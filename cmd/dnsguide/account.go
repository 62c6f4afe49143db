package main

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/certhook/certhook/cmd/internal/setup"
	"github.com/certhook/certhook/pkg/certbot"
	hookcli "github.com/certhook/certhook/pkg/cli"
	"github.com/certhook/certhook/pkg/fault"
)

func accountCommand(environ []string) *cli.Command {
	return &cli.Command{
		Name:      "account",
		Usage:     "print the URI of certbot's ACME account",
		UsageText: "dnsguide account\ndnsguide account --json",
		Description: "Prints the accounts that certbot (CERTBOT_CONFIG_DIR) has at the configured server (ACME_SERVER,\n" +
			"ACME_STAGING), one URI a line. The CAA record names one: of several, the one of the name's own lineage,\n" +
			"or what --account-uri says. Exit status 3: there is none yet, and what to run is said.",
		Flags: hookcli.CommonFlags(
			&cli.BoolFlag{Name: "json", DisableDefaultText: true, Usage: "print JSON"},
		),
		Action: func(c *cli.Context) error {
			if hookcli.Switch(c, "check-config") {
				return setup.CheckGuide(c, environ)
			}
			if err := hookcli.NoArguments(c); err != nil {
				return err
			}
			s, err := setup.LoadGuide(c, environ, nil, nil, false)
			if err != nil {
				return err
			}
			return account(c, s.CertbotConfigDir, s.ACMEServer)
		},
	}
}

func account(c *cli.Context, dir, server string) error {
	found, unreadable := certbot.Accounts(dir, server)
	if len(found) == 0 {
		_, err := certbot.AccountFor(dir, server, nil)
		kind := fault.Verdict
		if !errors.Is(err, certbot.ErrNoAccount) {
			kind = fault.Usage
		}
		return fault.Errorf(kind, "%w", err)
	}
	for _, err := range unreadable {
		fmt.Fprintf(c.App.ErrWriter, "%s: warning: %v\n", c.App.Name, err)
	}
	if c.Bool("json") {
		type entry struct {
			ID     string `json:"id"`
			URI    string `json:"uri"`
			Server string `json:"server"`
		}
		var list []entry
		for _, a := range found {
			list = append(list, entry{a.ID, a.URI, server})
		}
		return printJSON(c.App.Writer, map[string]any{"accounts": list})
	}
	for _, a := range found {
		fmt.Fprintln(c.App.Writer, a.URI)
	}
	return nil
}

// accountsOf returns the accounts of which one counts, or says why none is known.
func accountsOf(err error) (uris []string, problem string) {
	if several, ok := errors.AsType[certbot.SeveralAccounts](err); ok {
		return several.URIs(), ""
	}
	return nil, problemOf(err)
}

// problemOf is an error and what to do about it.
func problemOf(err error) string {
	if hint := fault.HintOf(err); hint != "" {
		return err.Error() + "; " + hint
	}
	return err.Error()
}

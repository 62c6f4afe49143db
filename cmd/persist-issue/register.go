package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	hookcli "github.com/certhook/certhook/pkg/cli"
	"github.com/certhook/certhook/pkg/issuance"
)

func registerCommand(environ []string) *cli.Command {
	return &cli.Command{
		Name:      "register",
		Usage:     "make an ACME account, or find the one that there is, and print its URI",
		UsageText: "persist-issue register --email you@example.com",
		Description: "No domain is needed. Where certbot has an account at the CA (ACME_SERVER) and persist-issue none, that one is\n" +
			"used and nothing is registered, unless PERSIST_ACCOUNT is own. To register agrees to the CA's terms of service.\n" +
			"The key is on disk before the CA hears of it: whatever goes wrong, run the same command again, and it finds\n" +
			"the account by its key.",
		Flags: flags(
			&cli.StringFlag{Name: "email", Usage: "contact `ADDRESS` of a new account (default: ACME_EMAIL)"},
			&cli.StringFlag{Name: "eab-kid", Usage: "key `ID` of an external account binding (default: ACME_EAB_KID)"},
			&cli.StringFlag{Name: "eab-hmac-file", Usage: "`FILE` with its key (default: ACME_EAB_HMAC_FILE, ACME_EAB_HMAC)"},
			timeoutFlag, jsonFlag,
		),
		Action: command(environ, register),
	}
}

func register(c *cli.Context, i *issuance.Issuer) error {
	if err := hookcli.NoArguments(c); err != nil {
		return err
	}
	r, err := i.Register(c.Context)
	if err != nil {
		return err
	}
	say := func(format string, args ...any) {
		fmt.Fprintf(c.App.ErrWriter, c.App.Name+": "+format+"\n", args...)
	}
	switch {
	case r.New && r.Terms != "":
		say("a new account, which has agreed to %s; its key is in %s", r.Terms, r.File)
	case r.New:
		say("a new account; its key is in %s", r.File)
	case r.Owner == issuance.Certbot:
		say("certbot's account is used, and none is registered (PERSIST_ACCOUNT=own makes one of persist-issue's own)")
	default:
		say("the account exists; its key is in %s", r.File)
	}
	say("next, create what this prints: persist-issue records -d NAME (%s is experimental)", issuance.Method)
	if c.Bool("json") {
		return printJSON(c.App.Writer, map[string]any{"uri": r.URI, "owner": r.Owner, "new": r.New, "server": i.Server})
	}
	fmt.Fprintln(c.App.Writer, r.URI)
	return nil
}

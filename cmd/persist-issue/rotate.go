package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/certhook/certhook/cmd/internal/setup"
	hookcli "github.com/certhook/certhook/pkg/cli"
	"github.com/certhook/certhook/pkg/guide"
	"github.com/certhook/certhook/pkg/issuance"
)

func rotateCommand(environ []string) *cli.Command {
	return &cli.Command{
		Name:      "rotate",
		Usage:     "change to another ACME account without an order that fails",
		UsageText: "persist-issue rotate",
		Description: "Registers a new account, prints the records to create for it beside the old ones, and exits with 3 as long as they\n" +
			"are not seen everywhere: the old account stays in use meanwhile, and renewals go on. Run again, it changes to the\n" +
			"new account when they are, and prints what may be removed then. One rotation registers one account, however\n" +
			"often it is run or cut short. The names are those of all lineages; -d adds others.",
		Flags: flags(nameFlag, draftFlag,
			&cli.StringFlag{Name: "email", Usage: "contact `ADDRESS` of the new account (default: ACME_EMAIL)"},
			&cli.StringFlag{Name: "eab-kid", Usage: "key `ID` of an external account binding (default: ACME_EAB_KID)"},
			&cli.StringFlag{Name: "eab-hmac-file", Usage: "`FILE` with its key (default: ACME_EAB_HMAC_FILE, ACME_EAB_HMAC)"},
			timeoutFlag, jsonFlag),
		Action: command(environ, rotate),
	}
}

func rotate(c *cli.Context, i *issuance.Issuer) error {
	if err := hookcli.NoArguments(c); err != nil {
		return err
	}
	names, err := setup.Names(c.StringSlice("d"))
	if err != nil {
		return err
	}
	return i.Rotate(c.Context, names, func(r issuance.Rotation) error { return tell(c, r) })
}

// tell prints how far a rotation has come.
func tell(c *cli.Context, r issuance.Rotation) error {
	if c.Bool("json") {
		return printJSON(c.App.Writer, map[string]any{
			"from": r.From, "to": r.To, "done": r.Done, "method": r.Method, "missing": append([]string{}, r.Missing...),
			"create": prescriptions(r.Create), "remove": prescriptions(r.Remove),
		})
	}
	w := c.App.Writer
	if r.Done {
		fmt.Fprintf(w, "# %s is in use now (%s). What follows may be removed; nothing else has to be done\n\n", r.To, r.Method)
		guide.WriteText(w, prescriptions(r.Remove))
		return nil
	}
	fmt.Fprintf(w, "# %s is to take the place of %s, which stays in use until all of this is seen (%s). Remove nothing yet\n\n", r.To, r.From, r.Method)
	guide.WriteText(w, prescriptions(r.Create))
	return nil
}

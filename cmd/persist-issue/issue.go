package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/issuance"
)

func issueCommand(environ []string) *cli.Command {
	return &cli.Command{
		Name:      "issue",
		Usage:     "get a certificate",
		UsageText: "persist-issue issue -d svc.example.com -d '*.svc.example.com'",
		Description: "Looks whether the records stand, waits for half of the time at most, says what it misses, and lets the CA\n" +
			"decide. Where the lineage has a certificate for the same names that is not due for renewal, nothing is done.",
		Flags: flags(nameFlag,
			&cli.StringFlag{Name: "name", Usage: "`LINEAGE` to put it into (default: the first name, without \"*.\")"},
			&cli.BoolFlag{Name: "force", DisableDefaultText: true, Usage: "get a new certificate although the lineage has one that will do"},
			profileFlag, draftFlag, timeoutFlag, jsonFlag),
		Action: command(environ, issue),
	}
}

func issue(c *cli.Context, i *issuance.Issuer) error {
	names, err := givenNames(c)
	if err != nil {
		return err
	}
	lineage := c.String("name")
	if lineage == "" {
		lineage = strings.TrimPrefix(names[0], "*.")
	}
	o, err := i.Issue(c.Context, lineage, names, c.Bool("force"))
	if err != nil {
		return err
	}
	return printOutcomes(c, i, []issuance.Outcome{o})
}

func renewCommand(environ []string) *cli.Command {
	return &cli.Command{
		Name:      "renew",
		Usage:     "renew the certificates that are due",
		UsageText: "persist-issue renew\npersist-issue renew --force svc.example.com",
		ArgsUsage: "[LINEAGE ...]",
		Description: "Due is when the CA says so (ARI, RFC 9773), or with a third of the lifetime left; a half, where it is below\n" +
			"ten days. Let a timer run it once a day, or every few hours. One lineage that fails keeps no other from its turn.",
		Flags: flags(
			&cli.BoolFlag{Name: "force", DisableDefaultText: true, Usage: "renew whether due or not"},
			profileFlag, draftFlag, timeoutFlag, jsonFlag),
		Action: command(environ, renew),
	}
}

func renew(c *cli.Context, i *issuance.Issuer) error {
	outcomes, err := i.Renew(c.Context, c.Args().Slice(), c.Bool("force"))
	if len(outcomes) == 0 && err == nil {
		fmt.Fprintf(c.App.ErrWriter, "%s: there is no lineage in %s yet; persist-issue issue -d NAME makes one\n", c.App.Name, i.Root)
	}
	if printErr := printOutcomes(c, i, outcomes); printErr != nil {
		return fault.Errorf(fault.Other, "%w", printErr)
	}
	return err
}

func printOutcomes(c *cli.Context, i *issuance.Issuer, outcomes []issuance.Outcome) error {
	if c.Bool("json") {
		return printJSON(c.App.Writer, map[string]any{"lineages": outcomes})
	}
	for _, o := range outcomes {
		fmt.Fprintln(c.App.Writer, say(o, i.Root))
	}
	return nil
}

// say tells in one line what became of a lineage.
func say(o issuance.Outcome, root string) string {
	const day = "2006-01-02"
	switch {
	case o.Error != "":
		return o.Lineage + ": not issued"
	case !o.Issued:
		return fmt.Sprintf("%s: not due before %s; serial %s is valid until %s (%s)", o.Lineage, o.Due.Format(day), o.Serial, o.NotAfter.Format(day), o.Method)
	}
	return fmt.Sprintf("%s: issued, serial %s, valid until %s, in %s (%s)", o.Lineage, o.Serial, o.NotAfter.Format(day),
		filepath.Join(root, "live", o.Lineage), o.Method)
}

package main

import (
	"io"

	"github.com/urfave/cli/v2"

	"github.com/certhook/certhook/cmd/internal/setup"
	hookcli "github.com/certhook/certhook/pkg/cli"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/guide"
	"github.com/certhook/certhook/pkg/issuance"
)

func recordsCommand(environ []string) *cli.Command {
	return &cli.Command{
		Name:      "records",
		Usage:     "print the TXT and CAA records to create",
		UsageText: "persist-issue records -d svc.example.com -d '*.svc.example.com'",
		Description: "Nothing is changed anywhere, and nobody but an operator creates them: once, by hand. One TXT covers a\n" +
			"name and its wildcard, if both are asked for.",
		Flags: flags(nameFlag, draftFlag, jsonFlag,
			&cli.BoolFlag{Name: "zonefile", DisableDefaultText: true, Usage: "print a zone file to import"}),
		Action: command(environ, records),
	}
}

func records(c *cli.Context, i *issuance.Issuer) error {
	names, err := givenNames(c)
	if err != nil {
		return err
	}
	if c.Bool("json") && c.Bool("zonefile") {
		return fault.Errorf(fault.Usage, "--json and --zonefile exclude each other").WithHint("see: persist-issue records --help")
	}
	list, err := i.Prescribe(c.Context, names)
	if err != nil {
		return err
	}
	if c.Bool("zonefile") {
		guide.WriteZoneFile(c.App.Writer, prescriptions(list))
		return nil
	}
	return printRecords(c, c.App.Writer, list)
}

func printRecords(c *cli.Context, w io.Writer, list []issuance.Prescription) error {
	if c.Bool("json") {
		return printJSON(w, map[string]any{"names": prescriptions(list)})
	}
	guide.WriteText(w, prescriptions(list))
	return nil
}

// prescriptions puts the records into the form that dnsguide prints.
func prescriptions(list []issuance.Prescription) []guide.Prescription {
	all := []guide.Prescription{}
	for _, p := range list {
		g := guide.Prescription{Name: p.Domain, Notes: append([]string{}, p.Notes...)}
		for _, r := range p.Records {
			kind := guide.TXT
			if r.Type == "CAA" {
				kind = guide.CAA
			}
			g.Records = append(g.Records, guide.Record{Kind: kind, Name: r.Name, Type: r.Type, Value: r.Value, Exact: true, Note: r.Note})
		}
		all = append(all, g)
	}
	return all
}

// givenNames reads -d.
func givenNames(c *cli.Context) ([]string, error) {
	if err := hookcli.NoArguments(c); err != nil {
		return nil, err
	}
	names, err := setup.Names(c.StringSlice("d"))
	if err == nil && len(names) == 0 {
		err = fault.Errorf(fault.Usage, "no name is given").WithHint("use -d NAME, as certbot takes it")
	}
	return names, err
}

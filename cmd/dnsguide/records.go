package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/certhook/certhook/cmd/internal/setup"
	hookcli "github.com/certhook/certhook/pkg/cli"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/guide"
)

func recordsCommand(environ []string) *cli.Command {
	return &cli.Command{
		Name:  "records",
		Usage: "print the records to create for a certificate",
		UsageText: "dnsguide records -d svc.example.com -d '*.svc.example.com'\n" +
			"dnsguide records --from-certbot --zonefile >to-import.zone",
		Description: "Prints what to create, above each record what it is for, and changes nothing. What cannot stand where\n" +
			"it is to (beside a CNAME, say) is left out, and so is the CAA as long as certbot has no account: a\n" +
			"comment says why and names the ways out; of --zonefile, at the top. That alone is exit status 0.\n" +
			"4 says that a lineage of certbot's cannot be read, so that names may be missing.\n" +
			"Of dns-persist-01, which is experimental, each record says for which draft it is: 01 is made of the\n" +
			"account's URI, 02 takes its key's thumbprint and the CA's prefix besides.",
		Flags: planFlags(
			&cli.BoolFlag{Name: "zonefile", DisableDefaultText: true, Usage: "print a zone file to import"},
		),
		Action: func(c *cli.Context) error {
			if hookcli.Switch(c, "check-config") {
				return setup.CheckGuide(c, environ)
			}
			if c.Bool("json") && c.Bool("zonefile") {
				return fault.Errorf(fault.Usage, "--json and --zonefile exclude each other").WithHint("see: dnsguide records --help")
			}
			job, err := prepare(c, environ)
			if err != nil {
				return err
			}
			list := job.guide.Prescribe(c.Context, job.plans)
			if err := c.Context.Err(); err != nil {
				return err
			}
			if c.Bool("json") || c.Bool("zonefile") { // whoever has a program read it does not
				for _, text := range guide.LeftOut(list) {
					fmt.Fprintf(c.App.ErrWriter, "%s: warning: left out: %s\n", c.App.Name, text)
				}
			}
			switch {
			case c.Bool("json"):
				if err := printJSON(c.App.Writer, map[string]any{"names": list}); err != nil {
					return err
				}
			case c.Bool("zonefile"):
				guide.WriteZoneFile(c.App.Writer, list)
			default:
				guide.WriteText(c.App.Writer, list)
			}
			return job.unread
		},
	}
}

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

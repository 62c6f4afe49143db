package main

import (
	"strings"

	"github.com/miekg/dns"
	"github.com/urfave/cli/v2"

	"github.com/certhook/certhook/cmd/internal/setup"
	hookcli "github.com/certhook/certhook/pkg/cli"
	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/pkg/explain"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/resolver"
)

func explainCommand(environ []string) *cli.Command {
	return &cli.Command{
		Name:  "explain",
		Usage: "show what stands at a name, and who says so",
		UsageText: "dnsguide explain _acme-challenge.svc.example.com\n" +
			"dnsguide explain svc.example.com CAA",
		ArgsUsage: "NAME [TYPE]",
		Description: "Follows the CNAMEs from server to server and prints the zone cuts, what each authoritative server answers,\n" +
			"and where that does no harm what the resolvers see. A failure of DNSSEC is told apart from absence.\n" +
			"TYPE is TXT for a name that begins with an underscore, else A, unless given.",
		Flags: hookcli.CommonFlags(
			&cli.StringSliceFlag{Name: "resolver", Usage: "`RESOLVER` to ask besides the authoritative servers (default: DNS_RESOLVERS)"},
			&cli.BoolFlag{Name: "json", DisableDefaultText: true, Usage: "print JSON"},
		),
		Action: func(c *cli.Context) error {
			if hookcli.Switch(c, "check-config") {
				return setup.CheckGuide(c, environ)
			}
			name, qtype, err := explained(c.Args().Slice())
			if err != nil {
				return err
			}
			s, err := load(c, environ)
			if err != nil {
				return err
			}
			client, panel, err := setup.Resolution(s)
			if err != nil {
				return err
			}
			e := explain.Explain(resolver.Remember(c.Context), client, panel, name, qtype)
			if c.Bool("json") {
				if err := printJSON(c.App.Writer, e); err != nil {
					return err
				}
			} else {
				e.Text(c.App.Writer)
			}
			return e.Err()
		},
	}
}

// explained reads NAME [TYPE].
func explained(args []string) (name string, qtype uint16, err error) {
	if len(args) < 1 || len(args) > 2 {
		return "", 0, fault.Errorf(fault.Usage, "explain takes a name and at most a type").WithHint("see: dnsguide explain --help")
	}
	wild := strings.HasPrefix(args[0], "*.")
	if name, err = dnsname.Parse(strings.TrimPrefix(args[0], "*.")); err != nil {
		return "", 0, fault.Errorf(fault.Usage, "%w", err)
	}
	if wild {
		name = "*." + name
	}
	qtype = dns.TypeA
	if strings.HasPrefix(name, "_") {
		qtype = dns.TypeTXT
	}
	if len(args) == 2 {
		known := false
		if qtype, known = dns.StringToType[strings.ToUpper(args[1])]; !known {
			return "", 0, fault.Errorf(fault.Usage, "%q is no type of record", args[1]).WithHint("such as TXT, CNAME, CAA, NS, A or AAAA")
		}
	}
	return name, qtype, nil
}

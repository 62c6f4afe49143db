// Dnsguide tells an operator which DNS records a certificate needs, looks whether they stand, and waits
// until they do.
package main

import (
	"context"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/certhook/certhook/cmd/internal/setup"
	hookcli "github.com/certhook/certhook/pkg/cli"
	"github.com/certhook/certhook/pkg/fault"
)

func main() {
	os.Exit(hookcli.Main(run))
}

func run(ctx context.Context, args, environ []string, _ io.Reader, stdout, stderr io.Writer) int {
	return hookcli.Run(ctx, newApp(environ), args, stdout, stderr)
}

func newApp(environ []string) *cli.App {
	app := hookcli.NewApp("dnsguide", "the DNS records that a certificate needs: print them, verify them, wait for them",
		hookcli.ExitDone, hookcli.ExitFailure, hookcli.ExitVerdict, hookcli.ExitUnknown, hookcli.ExitUsage, hookcli.ExitProvider, hookcli.ExitInterrupted)
	app.UsageText = "dnsguide records -d svc.example.com           what to create\n" +
		"dnsguide verify -d svc.example.com            whether it stands\n" +
		"dnsguide verify --from-certbot --mode wait    until it stands, for all that certbot renews"
	app.Description = "The challenge CNAME leads the CA to the alias zone, the CAA record keeps other ACME accounts\n" +
		"out. Both are made once, by whoever may change the zone: this machine cannot. So is the TXT\n" +
		"of dns-persist-01, with which the experimental persist-issue does without any CNAME."
	app.CustomAppHelpTemplate = appHelp
	app.Commands = []*cli.Command{recordsCommand(environ), verifyCommand(environ), accountCommand(environ), scopeCommand(environ), explainCommand(environ)}
	for _, c := range app.Commands {
		c.CustomHelpTemplate = commandHelp
	}
	app.EnableBashCompletion = true
	app.Action = func(c *cli.Context) error {
		if hookcli.Switch(c, "check-config") {
			return setup.CheckGuide(c, environ)
		}
		if c.Args().Present() {
			return fault.Errorf(fault.Usage, "there is no command %q", c.Args().First()).WithHint("see: dnsguide --help")
		}
		return fault.Errorf(fault.Usage, "a command is missing: records, verify, account, scope or explain").WithHint("see: dnsguide --help")
	}
	return app
}

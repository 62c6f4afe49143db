// Auth-hook is certbot's --manual-auth-hook: it writes the dns-01 TXT record into the alias zone and
// returns when the zone's servers show it.
package main

import (
	"context"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/certhook/certhook/cmd/internal/hooks"
	"github.com/certhook/certhook/pkg/challenge"
	hookcli "github.com/certhook/certhook/pkg/cli"
)

func main() {
	os.Exit(hookcli.Main(run))
}

func run(ctx context.Context, args, environ []string, _ io.Reader, stdout, stderr io.Writer) int {
	return hookcli.Run(ctx, newApp(environ), args, stdout, stderr)
}

func newApp(environ []string) *cli.App {
	app := hookcli.NewApp("auth-hook", "add the TXT record of a dns-01 challenge to the alias zone",
		hookcli.ExitDone, hookcli.ExitFailure, hookcli.ExitVerdict, hookcli.ExitUnknown, hookcli.ExitUsage,
		hookcli.ExitProvider, hookcli.ExitPropagation, hookcli.ExitInterrupted)
	app.UsageText = "certbot certonly --manual --preferred-challenges dns \\\n" +
		"    --manual-auth-hook /usr/local/bin/auth-hook \\\n" +
		"    --manual-cleanup-hook /usr/local/bin/cleanup-hook -d NAME\n" +
		"auth-hook rehearse -d NAME [-d NAME ...]\n" +
		"auth-hook --check-config [--config FILE]"
	app.Description = "Certbot runs it without arguments. It checks that _acme-challenge.NAME leads to the alias zone, adds\n" +
		"the value that certbot hands it beside whatever else is there, and returns when every authoritative\n" +
		"server shows it. With several names, the last call writes and waits for all of them.\n\n" +
		"Certbot ignores the exit status and goes on to the CA; the reason for a failure is on stderr and in\n" +
		"the log."
	app.Action = hooks.Action(environ, (*challenge.Hooks).Present, true)
	app.Commands = []*cli.Command{rehearseCommand(environ)}
	return app
}

// Cleanup-hook is certbot's --manual-cleanup-hook: it removes what auth-hook wrote, and nothing else.
package main

import (
	"context"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/certhook/certhook/cmd/internal/hooks"
	"github.com/certhook/certhook/pkg/challenge"
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
	app := hookcli.NewApp("cleanup-hook", "remove the TXT records that auth-hook added",
		hookcli.ExitDone, hookcli.ExitFailure, hookcli.ExitVerdict, hookcli.ExitUsage, hookcli.ExitProvider, hookcli.ExitInterrupted)
	app.UsageText = "certbot certonly --manual --preferred-challenges dns \\\n" +
		"    --manual-auth-hook /usr/local/bin/auth-hook \\\n" +
		"    --manual-cleanup-hook /usr/local/bin/cleanup-hook -d NAME\n" +
		"cleanup-hook --list [--json]\n" +
		"cleanup-hook --sweep\n" +
		"cleanup-hook --check-config [--config FILE]"
	app.Description = "Certbot runs it without arguments. The first call of an order removes exactly the values that the\n" +
		"order's auth-hook calls added; other values at the same names stay. What could not be removed is kept\n" +
		"in the journal and tried again by the next run of either hook.\n\n" +
		"Certbot ignores the exit status; the reason for a failure is on stderr and in the log."
	app.Flags = hookcli.CommonFlags(
		&cli.BoolFlag{Name: "list", DisableDefaultText: true, Usage: "print the challenge records that the journal holds"},
		&cli.BoolFlag{Name: "json", DisableDefaultText: true, Usage: "with --list: as JSON"},
		&cli.BoolFlag{Name: "sweep", DisableDefaultText: true, Usage: "remove now what runs have left that are no longer at work"},
	)
	app.Action = func(c *cli.Context) error {
		switch list, sweep := c.Bool("list"), c.Bool("sweep"); {
		case c.Bool("json") && !list:
			return fault.Errorf(fault.Usage, "--json goes with --list").WithHint("see: cleanup-hook --help")
		case list && sweep:
			return fault.Errorf(fault.Usage, "--list and --sweep exclude each other").WithHint("see: cleanup-hook --help")
		case list || sweep:
			return byHand(c, environ)
		}
		return hooks.Action(environ, (*challenge.Hooks).CleanUp, false)(c)
	}
	return app
}

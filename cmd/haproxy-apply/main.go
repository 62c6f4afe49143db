// Haproxy-apply gets renewed certificates into a running HAProxy, and says that they are there only when HAProxy
// serves them.
package main

import (
	"context"
	"io"
	"log/slog"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/certhook/certhook/cmd/internal/setup"
	hookcli "github.com/certhook/certhook/pkg/cli"
	"github.com/certhook/certhook/pkg/haproxy"
)

func main() {
	os.Exit(hookcli.Main(run))
}

func run(ctx context.Context, args, environ []string, _ io.Reader, stdout, stderr io.Writer) int {
	return hookcli.Run(ctx, newApp(environ), args, stdout, stderr)
}

// exits are the exit codes of both commands.
var exits = []int{
	hookcli.ExitDone, hookcli.ExitFailure, hookcli.ExitVerdict, hookcli.ExitUnknown, hookcli.ExitUsage,
	hookcli.ExitRefused, hookcli.ExitPending, hookcli.ExitLineage, hookcli.ExitInterrupted,
}

func newApp(environ []string) *cli.App {
	app := hookcli.NewApp("haproxy-apply", "get renewed certificates into a running HAProxy", exits...)
	app.UsageText = "certbot renew --deploy-hook /usr/local/bin/haproxy-apply\n" +
		"haproxy-apply [LINEAGE ...]          apply what differs: all lineages, or those named\n" +
		"haproxy-apply status [LINEAGE ...]   show lineage, disk, memory and wire side by side"
	app.Description = "Compares each lineage with what HAProxy has on disk, in memory and on the wire, and removes the\n" +
		"difference: by the stats socket where it can, by a reload where it must. Done is what a TLS handshake\n" +
		"shows. What failed is tried again by the next run, so let a timer run it besides certbot: certbot\n" +
		"ignores that a deploy hook has failed, and calls none where there is nothing to renew."
	app.Flags = applyFlags()
	app.Commands = []*cli.Command{applyCommand(environ), statusCommand(environ)}
	app.EnableBashCompletion = true
	app.Action = func(c *cli.Context) error { return apply(c, environ) }
	return app
}

// prepare reads settings and flags for both commands. close ends the log.
func prepare(c *cli.Context, environ []string) (a *haproxy.Applier, log *slog.Logger, closeLog func(), err error) {
	s, err := setup.LoadApply(c, environ)
	if err != nil {
		return nil, nil, nil, err
	}
	timeout, err := setup.Duration("--timeout", c.String("timeout"))
	if err != nil {
		return nil, nil, nil, err
	}
	log, closeLog = setup.Log(c, s, c.App.ErrWriter)
	a = setup.Applier(s, log, environ)
	a.Timeout = timeout
	return a, log, closeLog, nil
}

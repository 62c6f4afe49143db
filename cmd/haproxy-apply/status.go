package main

import (
	"time"

	"github.com/urfave/cli/v2"

	"github.com/certhook/certhook/cmd/internal/setup"
	hookcli "github.com/certhook/certhook/pkg/cli"
	"github.com/certhook/certhook/pkg/haproxy"
)

func statusCommand(environ []string) *cli.Command {
	return &cli.Command{
		Name:      "status",
		Usage:     "show lineage, disk, memory and wire side by side",
		UsageText: "haproxy-apply status\nhaproxy-apply status --warn-days 14 --metrics /var/lib/prometheus/node-exporter/certhook.prom",
		ArgsUsage: "[LINEAGE ...]",
		Description: "Changes nothing. DISK is the PEM file, MEMORY what HAProxy says it holds, WIRE what a handshake shows: the\n" +
			"same as the lineage, other, absent or unknown. The exit status is 0 if HAProxy serves what every lineage\n" +
			"has. --metrics replaces a file for node_exporter's textfile collector, also where HAProxy does not answer.",
		Flags: hookcli.CommonFlags(
			&cli.BoolFlag{Name: "json", DisableDefaultText: true, Usage: "print JSON"},
			&cli.StringFlag{Name: "metrics", Usage: "also write `FILE`"},
			&cli.IntFlag{Name: "warn-days", Usage: "exit with 3 where a certificate ends within this `NUMBER` of days"},
			&cli.StringFlag{Name: "timeout", Value: "60s", Usage: "`TIME` that all of it may take"},
		),
		Action: func(c *cli.Context) error { return status(c, environ) },
	}
}

func status(c *cli.Context, environ []string) error {
	if hookcli.Switch(c, "check-config") {
		return setup.CheckApply(c, environ)
	}
	a, _, closeLog, err := prepare(c, environ)
	if err != nil {
		return err
	}
	defer closeLog()
	a.VerifyAll = true
	states, err := a.Status(c.Context, c.Args().Slice()...)
	var unwritten error
	if path := c.String("metrics"); path != "" {
		unwritten = haproxy.WriteMetrics(path, states, err == nil, time.Now())
	}
	if c.Bool("json") {
		if err := haproxy.WriteJSON(c.App.Writer, states, err); err != nil {
			return err
		}
	} else if len(states) > 0 {
		haproxy.WriteTable(c.App.Writer, states)
	}
	return haproxy.Err(states, append(haproxy.Expiring(states, c.Int("warn-days"), time.Now()), err, unwritten)...)
}

package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/certhook/certhook/cmd/internal/setup"
	hookcli "github.com/certhook/certhook/pkg/cli"
	"github.com/certhook/certhook/pkg/haproxy"
)

func applyFlags() []cli.Flag {
	return hookcli.CommonFlags(
		&cli.BoolFlag{Name: "dry-run", DisableDefaultText: true, Usage: "say what would be done, change nothing"},
		&cli.StringFlag{Name: "then", Usage: "shell `COMMAND` that has to succeed after a change, too, and is tried again until it does"},
		&cli.BoolFlag{Name: "force", DisableDefaultText: true, Usage: "put a certificate in the place of a younger one"},
		&cli.BoolFlag{Name: "verify-all", DisableDefaultText: true, Usage: "make handshakes for all certificates, not for the changed ones and a sample"},
		&cli.StringFlag{Name: "timeout", Value: "120s", Usage: "`TIME` that all of it may take"},
	)
}

func applyCommand(environ []string) *cli.Command {
	return &cli.Command{
		Name:      "apply",
		Usage:     "apply what differs; the same as no command",
		ArgsUsage: "[LINEAGE ...]",
		Flags:     applyFlags(),
		Action:    func(c *cli.Context) error { return apply(c, environ) },
	}
}

func apply(c *cli.Context, environ []string) error {
	if hookcli.Switch(c, "check-config") {
		return setup.CheckApply(c, environ)
	}
	a, log, closeLog, err := prepare(c, environ)
	if err != nil {
		return err
	}
	defer closeLog()
	a.DryRun, a.Force, a.VerifyAll, a.Then = c.Bool("dry-run"), c.Bool("force"), c.Bool("verify-all"), c.String("then")
	states, err := a.Apply(c.Context, c.Args().Slice()...)
	for _, state := range states {
		line := say(state, a.DryRun)
		if state.Err == nil {
			log.Info("applied", "lineage", state.Name, "action", state.Action, "serial", state.Serial)
		} else {
			log.Error("not applied", "lineage", state.Name, "action", state.Action, "error", state.Err)
		}
		if line != "" {
			fmt.Fprintln(c.App.Writer, line)
		}
	}
	return haproxy.Err(states, err)
}

// say tells in one line what became of a lineage, "" where nothing had to be done.
func say(s haproxy.State, dry bool) string {
	switch {
	case s.Err != nil && dry:
		return fmt.Sprintf("%s: cannot be applied", s.Name)
	case s.Err != nil:
		return fmt.Sprintf("%s: not applied", s.Name)
	case s.Action == haproxy.None:
		return ""
	case dry:
		return fmt.Sprintf("%s: would be applied by %s, serial %s", s.Name, s.Action, s.Serial)
	}
	return fmt.Sprintf("%s: applied by %s; HAProxy serves serial %s until %s", s.Name, s.Action, s.Serial, s.NotAfter.Format("2006-01-02"))
}

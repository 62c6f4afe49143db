package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/certhook/certhook/cmd/internal/hooks"
	"github.com/certhook/certhook/cmd/internal/setup"
	"github.com/certhook/certhook/pkg/challenge"
	hookcli "github.com/certhook/certhook/pkg/cli"
)

// byHand is what an operator asks for, not certbot: --list and --sweep.
func byHand(c *cli.Context, environ []string) error {
	if hookcli.Switch(c, "check-config") {
		return hooks.CheckConfig(c, environ)
	}
	if err := hookcli.NoArguments(c); err != nil {
		return err
	}
	s, err := hooks.Load(c, environ)
	if err != nil {
		return err
	}
	log, closeLog := setup.Log(c, s, c.App.ErrWriter)
	defer closeLog()
	h, err := hooks.New(s, log)
	if err != nil {
		return err
	}
	if c.Bool("list") {
		return list(c, h)
	}
	text, err := h.SweepNow(c.Context)
	if text != "" {
		fmt.Fprintln(c.App.Writer, text)
	}
	return err
}

// list prints the journal; what of it cannot be read is an error all the same.
func list(c *cli.Context, h *challenge.Hooks) error {
	items, err := h.List()
	if c.Bool("json") {
		enc := json.NewEncoder(c.App.Writer)
		enc.SetIndent("", "  ")
		return errors.Join(err, enc.Encode(items))
	}
	if len(items) == 0 {
		fmt.Fprintln(c.App.Writer, "the journal holds no record")
		return err
	}
	w := tabwriter.NewWriter(c.App.Writer, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "STATE\tRUN\tSINCE\tDOMAIN\tRECORD")
	for _, i := range items {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", i.State, i.Run, i.Since.Local().Format(time.DateTime), i.Domain, i.Record)
	}
	return errors.Join(err, w.Flush())
}

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/certhook/certhook/cmd/internal/hooks"
	"github.com/certhook/certhook/cmd/internal/setup"
	"github.com/certhook/certhook/pkg/challenge"
	hookcli "github.com/certhook/certhook/pkg/cli"
	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/pkg/fault"
)

func rehearseCommand(environ []string) *cli.Command {
	return &cli.Command{
		Name:      "rehearse",
		Usage:     "do everything but ask the CA: write a probe value, wait until it is visible, remove it",
		UsageText: "auth-hook rehearse -d NAME [-d NAME ...] [--json]",
		Description: "Proves the token, the zone, the CNAME and the propagation before a real attempt spends one of the\n" +
			"CA's failed validations. Takes the settings that the hooks take.",
		Flags: hookcli.CommonFlags(
			&cli.StringSliceFlag{Name: "d", Aliases: []string{"domain"}, Usage: "the `NAME` to rehearse, as certbot's -d takes it"},
			&cli.BoolFlag{Name: "json", DisableDefaultText: true, Usage: "print the steps as one JSON object"},
		),
		Action: func(c *cli.Context) error { return rehearse(c, environ) },
	}
}

func rehearse(c *cli.Context, environ []string) error {
	if hookcli.Switch(c, "check-config") {
		return hooks.CheckConfig(c, environ)
	}
	if err := hookcli.NoArguments(c); err != nil {
		return err
	}
	domains, err := rehearsed(c.StringSlice("d"))
	if err != nil {
		return err
	}
	s, err := hooks.Load(c, environ)
	if err != nil {
		return err
	}
	// The steps are told on stdout, warnings among them; stderr has them only with -v.
	people := io.Discard
	if hookcli.Switch(c, "v") {
		people = c.App.ErrWriter
	}
	log, closeLog := setup.Log(c, s, people)
	defer closeLog()
	h, err := hooks.New(s, log)
	if err != nil {
		return err
	}
	report := &report{asJSON: c.Bool("json"), w: c.App.Writer}
	h.Observe = report.add
	err = h.Rehearse(c.Context, domains)
	report.end(err == nil)
	return err
}

// rehearsed brings the names into the form in which certbot hands them to a hook: without the wildcard.
func rehearsed(names []string) ([]string, error) {
	var domains []string
	for _, name := range names {
		domain, err := dnsname.ParseHost(strings.TrimPrefix(name, "*."))
		if err != nil {
			return nil, fault.Errorf(fault.Usage, "-d: %w", err)
		}
		if !slices.Contains(domains, domain) {
			domains = append(domains, domain)
		}
	}
	if len(domains) == 0 {
		return nil, fault.Errorf(fault.Usage, "rehearse needs at least one -d NAME").WithHint("see: auth-hook rehearse --help")
	}
	return domains, nil
}

// report prints the steps of a rehearsal as they come, or all at the end as JSON.
type report struct {
	asJSON bool
	w      io.Writer
	mu     sync.Mutex
	steps  []step
}

type step struct {
	Step    challenge.StepName `json:"step"`
	Domain  string             `json:"domain,omitempty"`
	Record  string             `json:"record,omitempty"`
	Result  string             `json:"result"` // ok, failed, unknown, warning
	Detail  string             `json:"detail,omitempty"`
	Seconds float64            `json:"seconds"`
}

func (r *report) add(s challenge.Step) {
	out := step{Step: s.Name, Domain: s.Domain, Record: s.Record, Result: "ok", Detail: s.Detail, Seconds: s.Took.Round(time.Millisecond).Seconds()}
	switch {
	case s.Err != nil:
		out.Result, out.Detail = "failed", s.Err.Error()
	case s.Name == challenge.StepLock:
		out.Result = "warning"
	case s.Warn:
		out.Result = "unknown"
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steps = append(r.steps, out)
	if !r.asJSON {
		about := cmp.Or(s.Domain, s.Record)
		if about != "" {
			about += ": "
		}
		fmt.Fprintf(r.w, "%-7s %6.2f s  %-10s  %s%s\n", out.Result, out.Seconds, out.Step, about, out.Detail)
	}
}

func (r *report) end(ok bool) {
	if r.asJSON {
		enc := json.NewEncoder(r.w)
		enc.SetIndent("", "  ")
		enc.Encode(struct {
			OK    bool   `json:"ok"`
			Steps []step `json:"steps"`
		}{ok, r.steps})
		return
	}
	if ok {
		fmt.Fprintln(r.w, "rehearsed: certbot can be run")
	}
}

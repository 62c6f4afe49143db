package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/certhook/certhook/cmd/internal/setup"
	hookcli "github.com/certhook/certhook/pkg/cli"
	"github.com/certhook/certhook/pkg/config"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/guide"
	"github.com/certhook/certhook/pkg/notify"
)

func verifyCommand(environ []string) *cli.Command {
	return &cli.Command{
		Name:  "verify",
		Usage: "look whether the records stand",
		UsageText: "dnsguide verify -d svc.example.com\n" +
			"dnsguide verify --from-certbot --mode wait --timeout 30m",
		Description: "The authoritative servers decide; resolvers that do not show a record yet are named. Where those servers\n" +
			"cannot be reached, two independent resolvers have to answer. MODE is one of\n\n" +
			"- once: look, and say what is found;\n" +
			"- wait: look again every --interval until all stands or --timeout is up;\n" +
			"- print: as once, and exit status 0 whatever is found, for an entrypoint that goes on in any case;\n" +
			"- webhook: send what is to be created to DNS_WEBHOOK_URL, signed with DNS_WEBHOOK_TOKEN, then wait.\n\n" +
			"Exit status 3: something is missing or wrong. 4: nobody could tell, or a lineage of certbot's cannot be read.",
		Flags: planFlags(
			&cli.StringFlag{Name: "mode", Usage: "`MODE`: once, wait, print or webhook (default: DNS_SETUP_MODE)"},
			&cli.StringFlag{Name: "timeout", Usage: "wait at most this `TIME` (default: DNS_SETUP_TIMEOUT)"},
			&cli.StringFlag{Name: "interval", Usage: "`TIME` between two checks (default: DNS_SETUP_INTERVAL)"},
		),
		Action: func(c *cli.Context) error {
			if hookcli.Switch(c, "check-config") {
				return setup.CheckGuide(c, environ)
			}
			job, err := prepare(c, environ)
			if err != nil {
				return err
			}
			return verify(c, job)
		},
	}
}

func verify(c *cli.Context, j *job) error {
	ctx, s := c.Context, j.settings
	show := newView(c.App.Writer, c.Bool("json"), hookcli.Switch(c, "v"), s.SetupMode, j.unread == nil)
	var results []guide.Result
	switch s.SetupMode {
	case config.SetupWait:
		results = j.guide.Wait(ctx, j.plans, nil, s.SetupTimeout, show.pass)
	case config.SetupWebhook:
		var err error
		if results, err = j.callAndWait(c, show); err != nil {
			return err
		}
	default:
		results = j.guide.Check(ctx, j.plans)
	}
	if ctx.Err() != nil {
		show.end(results)
		return context.Cause(ctx)
	}
	if err := show.end(results); err != nil {
		return err
	}
	for _, line := range append(guide.Accepted(results), guide.Warnings(results)...) {
		fmt.Fprintf(c.App.ErrWriter, "%s: warning: %s\n", c.App.Name, line)
	}
	err := errors.Join(guide.Err(results), j.unread)
	if s.SetupMode == config.SetupPrint {
		hookcli.Report(c.App.ErrWriter, c.App.Name, err)
		return nil
	}
	return err
}

// callAndWait tells the webhook what is to be created for each name that is not fine yet, and waits for it meanwhile.
func (j *job) callAndWait(c *cli.Context, show *view) ([]guide.Result, error) {
	s := j.settings
	hook, err := notify.New(notify.Config{URL: s.WebhookURL, Token: s.WebhookToken.Reveal(), Timeout: s.WebhookTimeout})
	if err != nil {
		return nil, err
	}
	deadline := time.Now().Add(s.SetupTimeout)
	results := j.guide.Check(c.Context, j.plans)
	show.pass(results)
	if guide.Fine(results) {
		return results, nil
	}
	ctx, cancel := context.WithCancel(c.Context)
	told := j.call(ctx, c, hook, results)
	results = j.guide.Wait(c.Context, j.plans, results, time.Until(deadline), show.pass)
	cancel() // whoever has not heard by now need not hear any more
	told()
	return results, nil
}

// atOnce is how many names the webhook is told about at a time.
const atOnce = 4

// call begins to tell the webhook about each name that is not fine, and returns a function that waits for the end of
// that. That it cannot be told is a warning: somebody may see the records elsewhere and create them.
func (j *job) call(ctx context.Context, c *cli.Context, hook *notify.Webhook, results []guide.Result) (wait func()) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	warn := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(c.App.ErrWriter, "%s: warning: %v\n", c.App.Name, err)
		if hint := fault.HintOf(err); hint != "" {
			fmt.Fprintf(c.App.ErrWriter, "%s: hint: %s\n", c.App.Name, hint)
		}
	}
	turns := make(chan struct{}, atOnce)
	for i, r := range results {
		if r.Fine() {
			continue
		}
		wg.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			receipt, err := hook.Send(ctx, message(j.settings, j.plans[i], r))
			if receipt.Warning != nil {
				warn(receipt.Warning)
			}
			if err != nil && ctx.Err() == nil {
				warn(err)
			}
		})
	}
	return wg.Wait
}

// message is what the webhook is told about one name: all its records, those that stand included.
func message(s *config.Settings, p guide.Plan, r guide.Result) notify.Message {
	m := notify.Message{
		AppID: s.DstackAppID, InstanceID: s.DstackInstanceID,
		Challenge: string(p.Method), Domain: p.Name, Time: time.Now(),
	}
	for _, f := range r.Findings {
		for _, record := range f.Records {
			m.Records = append(m.Records, notify.Record{
				Exact: record.Exact, Name: record.Name, Note: record.Note, Type: record.Type, Value: record.Value,
			})
		}
	}
	return m
}

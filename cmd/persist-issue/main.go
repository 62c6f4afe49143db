// Persist-issue gets certificates by dns-persist-01: for names that have one TXT record, made once by hand, and with
// no DNS credential anywhere.
package main

import (
	"context"
	"encoding/json"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/certhook/certhook/cmd/internal/setup"
	hookcli "github.com/certhook/certhook/pkg/cli"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/issuance"
)

func main() {
	os.Exit(hookcli.Main(run))
}

func run(ctx context.Context, args, environ []string, _ io.Reader, stdout, stderr io.Writer) int {
	return hookcli.Run(ctx, newApp(environ), args, stdout, stderr)
}

func newApp(environ []string) *cli.App {
	app := hookcli.NewApp("persist-issue", "certificates by dns-persist-01, without any DNS credential (experimental)",
		hookcli.ExitDone, hookcli.ExitFailure, hookcli.ExitVerdict, hookcli.ExitUnknown, hookcli.ExitUsage, hookcli.ExitLineage, hookcli.ExitInterrupted)
	app.UsageText = "persist-issue register                     make the ACME account, print its URI\n" +
		"persist-issue records -d NAME...           what to create in DNS, once and by hand\n" +
		"persist-issue issue -d NAME...             get a certificate\n" +
		"persist-issue renew [--force] [LINEAGE...] renew what is due, from a timer\n" +
		"persist-issue rotate                       change to another ACME account"
	app.Description = "A TXT record lets one ACME account have certificates for a name until somebody removes it. Whoever may\n" +
		"change the zone creates it once; this machine only reads DNS, and is built without a way to do more.\n" +
		"The method (draft-ietf-acme-dns-persist) is experimental: its drafts differ in what the record says, and\n" +
		"few CAs have it. Every output says which draft a record is for."
	app.Commands = []*cli.Command{registerCommand(environ), recordsCommand(environ), issueCommand(environ), renewCommand(environ), rotateCommand(environ)}
	app.EnableBashCompletion = true
	app.Action = func(c *cli.Context) error {
		if hookcli.Switch(c, "check-config") {
			return setup.CheckPersist(c, environ)
		}
		if c.Args().Present() {
			return fault.Errorf(fault.Usage, "there is no command %q", c.Args().First()).WithHint("see: persist-issue --help")
		}
		return fault.Errorf(fault.Usage, "a command is missing: register, records, issue, renew or rotate").WithHint("see: persist-issue --help")
	}
	return app
}

// settingsOf names the setting that each flag stands for.
var settingsOf = map[string]string{
	"email":         "ACME_EMAIL",
	"eab-kid":       "ACME_EAB_KID",
	"eab-hmac-file": "ACME_EAB_HMAC_FILE",
	"profile":       "ACME_PROFILE",
	"draft":         "PERSIST_DRAFT",
	"timeout":       "PERSIST_BUDGET",
}

// Flags that several commands have.
var (
	nameFlag    = &cli.StringSliceFlag{Name: "d", Aliases: []string{"domain"}, Usage: "the `NAME`s, wildcards too, as certbot's -d takes them"}
	jsonFlag    = &cli.BoolFlag{Name: "json", DisableDefaultText: true, Usage: "print JSON"}
	draftFlag   = &cli.StringFlag{Name: "draft", Usage: "`NUMBER` of the draft that records are for, 01 or 02 (default: PERSIST_DRAFT)"}
	timeoutFlag = &cli.StringFlag{Name: "timeout", Usage: "`TIME` that one order may take (default: PERSIST_BUDGET)"}
	profileFlag = &cli.StringFlag{Name: "profile", Usage: "certificate `PROFILE` to ask the CA for (default: ACME_PROFILE, or the lineage's own)"}
)

// writeFlags are asked for by who knows other programs, and refused: see [refuseWriting].
func writeFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "set-caa", Hidden: true}, &cli.BoolFlag{Name: "set-txt", Hidden: true}, &cli.BoolFlag{Name: "write", Hidden: true},
	}
}

func flags(own ...cli.Flag) []cli.Flag {
	return append(hookcli.CommonFlags(own...), writeFlags()...)
}

// command makes the action of a command: it reads flags and settings, works, and writes failures down.
func command(environ []string, work func(*cli.Context, *issuance.Issuer) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		if hookcli.Switch(c, "check-config") {
			return setup.CheckPersist(c, environ)
		}
		for _, f := range writeFlags() {
			if name := f.Names()[0]; c.Bool(name) {
				return fault.Errorf(fault.Usage, "--%s: persist-issue writes no DNS record: it is built without a way to use a DNS credential, so that none has to be here", name).
					WithHint("persist-issue records prints the TXT and the CAA to create, once and by hand")
			}
		}
		given, names := map[string]string{}, map[string]string{}
		for flag, key := range settingsOf {
			names[key] = "--" + flag
			if c.IsSet(flag) {
				given[key] = c.String(flag)
			}
		}
		s, err := setup.LoadPersist(c, environ, given, names)
		if err != nil {
			return err
		}
		log, closeLog := setup.Log(c, s, c.App.ErrWriter)
		defer closeLog()
		i, err := setup.Issuer(s, log)
		if err != nil {
			return err
		}
		if err = work(c, i); err != nil {
			log.Error("failed", "command", c.Command.Name, "error", err, "hint", fault.HintOf(err), "exit", hookcli.ExitCode(c.Context, err))
		}
		return err
	}
}

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

package hooks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/urfave/cli/v2"

	"github.com/certhook/certhook/cmd/internal/setup"
	"github.com/certhook/certhook/pkg/certbot"
	"github.com/certhook/certhook/pkg/challenge"
	hookcli "github.com/certhook/certhook/pkg/cli"
	"github.com/certhook/certhook/pkg/config"
	"github.com/certhook/certhook/pkg/fault"
)

// Work is Present or CleanUp.
type Work func(*challenge.Hooks, context.Context, certbot.Challenge, challenge.Caller) (string, error)

// Action is what a manual hook does when certbot calls it without arguments: it reads the challenge
// and the settings, works, and prints one line. The outcome also goes to the log, since certbot -q shows
// nothing of a hook.
func Action(environ []string, work Work, aborts bool) cli.ActionFunc {
	return func(c *cli.Context) error {
		if hookcli.Switch(c, "check-config") {
			return CheckConfig(c, environ)
		}
		if err := hookcli.NoArguments(c); err != nil {
			return err
		}
		ch, err := certbot.HookChallenge(environ)
		if !certbot.Called(environ) {
			return err
		}
		// Settings that are refused still say where the log is and whether to abort.
		s, loadErr := Load(c, environ)
		log, closeLog := setup.Log(c, s, c.App.ErrWriter)
		defer closeLog()
		last := err == nil && ch.Last()
		if err == nil {
			err = loadErr
		}
		var text string
		if err == nil {
			text, err = run(c.Context, s, log, ch, work)
		}
		if err == nil {
			log.Info("done", "domain", ch.Domain, "outcome", text)
			fmt.Fprintf(c.App.Writer, "%s: %s\n", c.App.Name, text)
			return nil
		}
		if aborts && aborted(err, last && s.AbortOnFailure) {
			fmt.Fprintf(c.App.Writer, "%s: giving the order up on purpose (CERTBOT_ABORT_ON_FAILURE); certbot will call this a decoding error: ", c.App.Name)
			c.App.Writer.Write([]byte{challenge.AbortByte})
		}
		// An error is for the log alone: people read it from cli.Report.
		log.Error("failed", "domain", ch.Domain, "error", err, "hint", fault.HintOf(err), "exit", hookcli.ExitCode(c.Context, err))
		return err
	}
}

func run(ctx context.Context, s *config.Settings, log *slog.Logger, ch certbot.Challenge, work Work) (string, error) {
	h, err := New(s, log)
	if err != nil {
		return "", err
	}
	return work(h, ctx, ch, h.FindCaller())
}

// aborted reports whether certbot is to be stopped: because the order was aborted, or because its last call
// failed before the hooks could be set up at all (kind Usage, as every failure of that sort).
func aborted(err error, asked bool) bool {
	_, aborted := errors.AsType[*challenge.Aborted](err)
	return aborted || asked && fault.KindOf(err) == fault.Usage
}

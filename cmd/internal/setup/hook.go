package setup

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/certhook/certhook/pkg/certbot"
	"github.com/certhook/certhook/pkg/challenge"
	hookcli "github.com/certhook/certhook/pkg/cli"
	"github.com/certhook/certhook/pkg/fault"
)

// Work is Present or CleanUp.
type Work func(*challenge.Hooks, context.Context, certbot.Challenge, challenge.Caller) (string, error)

// HookAction is what a manual hook does when certbot calls it without arguments: it reads the challenge
// and the settings, works, and prints one line. The outcome also goes to the log, since certbot -q shows
// nothing of a hook.
func HookAction(environ []string, work Work) cli.ActionFunc {
	return func(c *cli.Context) error {
		if hookcli.Switch(c, "check-config") {
			return CheckConfig(c, environ)
		}
		if err := hookcli.NoArguments(c); err != nil {
			return err
		}
		ch, err := certbot.HookChallenge(environ)
		if err != nil {
			return err
		}
		s, err := Load(c, environ)
		if err != nil {
			return err
		}
		log, closeLog := Log(c, s, c.App.ErrWriter)
		defer closeLog()
		hooks, err := Hooks(s, log)
		if err == nil {
			var text string
			if text, err = work(hooks, c.Context, ch, hooks.FindCaller()); err == nil {
				log.Debug("done", "domain", ch.Domain, "outcome", text)
				fmt.Fprintf(c.App.Writer, "%s: %s\n", c.App.Name, text)
				return nil
			}
		}
		if _, aborted := errors.AsType[*challenge.Aborted](err); aborted {
			fmt.Fprintf(c.App.Writer, "%s: giving the order up on purpose (CERTBOT_ABORT_ON_FAILURE); certbot will call this a decoding error: ", c.App.Name)
			c.App.Writer.Write([]byte{challenge.AbortByte})
		}
		// Debug: people read it from Report.
		log.Debug("failed", "domain", ch.Domain, "error", err, "hint", fault.HintOf(err), "exit", hookcli.ExitCode(c.Context, err))
		return err
	}
}

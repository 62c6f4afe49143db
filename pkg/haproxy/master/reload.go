package master

import (
	"context"
	"errors"
	"time"
)

// How is how HAProxy can be reloaded. The first of CLI, Process and Command that there is is taken.
type How struct {
	CLI     *CLI          // nil for no master socket
	Process *Process      // nil where it is unknown; it has to be a master to be signalled
	Command string        // shell line; "" for none
	Timeout time.Duration // 0 = 60 s; ctx may end sooner
}

// Outcome is what is known after a reload.
type Outcome struct {
	Way    string // "master socket", "signal" or "command"
	Worker int    // process id of the new worker; 0 where it is unknown
	Doubt  string // why the reload may have failed although there is no error; "" where it is known to have worked
	Output string // of the command, its beginning and end
}

// Reload has HAProxy load its configuration and waits until it serves it. Errors are of kind Refused where
// HAProxy keeps the old one, of kind Usage where it cannot be asked, and of kind Pending, with
// context.DeadlineExceeded, where the time was over before it was known. Where it cannot be known, Outcome.Doubt
// says so, and only what is served can tell.
func Reload(ctx context.Context, how How) (Outcome, error) { return Outcome{}, errors.ErrUnsupported }

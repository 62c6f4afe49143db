package master

import (
	"context"
	"errors"
	"time"
)

// CLI is a master's own command line, at the socket that -S names.
type CLI struct {
	Path    string        // as -S takes it; what follows a comma, and unix@ before it, is left out
	Timeout time.Duration // for one command; 0 = 10 s
}

// Proc asks for the processes. The error is ErrDown where nobody listens.
func (c *CLI) Proc(ctx context.Context) (Proc, error) { return Proc{}, errors.ErrUnsupported }

// Reload asks for a reload, and waits for the reply as long as ctx lives. HAProxy before 2.7 replies nothing: nil
// then only means that it has been asked. The error is of kind Refused where a newer one says that it failed.
func (c *CLI) Reload(ctx context.Context) error { return errors.ErrUnsupported }

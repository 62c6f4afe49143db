package master

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/certhook/certhook/pkg/fault"
)

const (
	commandTime = 10 * time.Second
	maxReply    = 1 << 20 // octets; a reload replies with all that HAProxy has logged meanwhile
)

// CLI is a master's own command line, at the socket that -S names.
type CLI struct {
	Path    string        // as -S takes it: unix@ before it, or options after a comma, may be there
	Timeout time.Duration // for Proc; 0 = 10 s
}

// Proc asks for the processes. The error is ErrDown where nobody listens or the master goes away with the question.
func (c *CLI) Proc(ctx context.Context) (Proc, error) {
	timeout := c.Timeout
	if timeout == 0 {
		timeout = commandTime
	}
	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	reply, err := c.command(within, "show proc")
	switch {
	case err != nil && ctx.Err() == nil && within.Err() != nil:
		return Proc{}, fault.Errorf(fault.Pending, "HAProxy's master does not answer at %q: %w", c.Path, err)
	case err != nil:
		return Proc{}, err
	case strings.TrimSpace(reply) == "":
		return Proc{}, fmt.Errorf("%w: %q was closed without an answer", ErrDown, c.Path)
	}
	p, err := parseProc(reply)
	if err != nil {
		return Proc{}, c.noMaster(reply)
	}
	return p, nil
}

// Reload asks for a reload, and waits for the reply as long as ctx lives. HAProxy before 2.7 replies nothing: nil
// then only means that it has been asked. The error is ErrBusy where the master is at another reload, and of kind
// Refused where it says that the reload has failed.
func (c *CLI) Reload(ctx context.Context) error {
	r, err := c.reload(ctx)
	if err == nil && r.failed {
		err = refused(alerts(r.log))
	}
	return err
}

// reply is what a master says of a reload: nothing before HAProxy 2.7.
type reply struct {
	done, failed bool
	log          string // what HAProxy has logged meanwhile, where it was built to tell
}

func (c *CLI) reload(ctx context.Context) (reply, error) {
	text, err := c.command(ctx, "reload")
	if err != nil {
		return reply{}, err
	}
	status, log, _ := strings.Cut(strings.TrimSpace(text), "\n")
	switch {
	case status == "":
		return reply{}, nil
	case status == "Success=1":
		return reply{done: true, log: log}, nil
	case status == "Success=0" && strings.Contains(log, "Another reload is still in progress"):
		return reply{}, ErrBusy
	case status == "Success=0":
		return reply{failed: true, log: log}, nil
	}
	return reply{}, c.noMaster(text)
}

// noMaster is the error for a reply that no master gives to us.
func (c *CLI) noMaster(reply string) error {
	line, _, _ := strings.Cut(strings.TrimSpace(reply), "\n")
	if line == "Permission denied" {
		return fault.Errorf(fault.Usage, "HAProxy's master socket %q does not allow it: %q", c.Path, line).
			WithHint("its level has to be operator or admin: haproxy -S %s,level,admin", c.Path)
	}
	return fault.Errorf(fault.Usage, "%q is no master socket of HAProxy: it answers %.80q", c.Path, line).
		WithHint("HAPROXY_MASTER_SOCKET is what haproxy -S names, not the stats socket")
}

// command sends one command and returns the reply. The master keeps a connection open for more commands until our
// side of it is closed. A connection that breaks is the end of the reply, since a master that reloads drops them all.
func (c *CLI) command(ctx context.Context, command string) (string, error) {
	network, address, err := endpoint(c.Path)
	if err != nil {
		return "", err
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, network, address)
	switch {
	case err != nil && ctx.Err() != nil:
		return "", fmt.Errorf("connect to HAProxy's master: %w", ctx.Err())
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.EAGAIN):
		return "", fmt.Errorf("%w: %w", ErrDown, err)
	case errors.Is(err, fs.ErrPermission):
		return "", fault.Errorf(fault.Usage, "ask HAProxy's master: %w", err).WithHint("run it as root, or as a user that may write to the socket")
	case err != nil:
		return "", fmt.Errorf("ask HAProxy's master: %w", err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	_, err = io.WriteString(conn, command+"\n")
	if half, ok := conn.(interface{ CloseWrite() error }); ok && err == nil {
		err = half.CloseWrite()
	}
	var reply []byte
	if err == nil {
		reply, err = io.ReadAll(io.LimitReader(conn, maxReply))
	}
	if ctx.Err() != nil {
		return "", fmt.Errorf("ask HAProxy's master %q: %w", command, ctx.Err())
	}
	if err != nil && !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
		return "", fmt.Errorf("ask HAProxy's master %q: %w", command, err)
	}
	return string(reply), nil
}

// endpoint reads an address as -S takes it (HAProxy's configuration manual, "bind"), for net.Dial.
func endpoint(s string) (network, address string, err error) {
	s, _, _ = strings.Cut(s, ",")
	family, rest, ok := strings.Cut(s, "@")
	switch {
	case !ok && strings.HasPrefix(s, "/"):
		return "unix", s, nil
	case !ok && strings.Contains(s, ":"):
		return "tcp", s, nil
	case family == "unix" && rest != "":
		return "unix", rest, nil
	case family == "abns":
		return "unix", "@" + rest, nil
	case family == "ipv4" || family == "ipv6":
		return "tcp", rest, nil
	}
	return "", "", fault.Errorf(fault.Usage, "%q is no address of a master socket that can be connected to", s)
}

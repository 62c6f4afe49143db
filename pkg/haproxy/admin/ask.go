package admin

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

// errPart is a reply that ends too early.
var errPart = fmt.Errorf("%w: only a part of one has come", ErrEmpty)

// ask sends one command, a line feed at its end included, and returns all of the reply as it came.
func (c *Client) ask(parent context.Context, command string) (string, error) {
	if len(command) >= bufferSize {
		return "", ErrTooLarge
	}
	timeout := c.timeout()
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	silence := time.AfterFunc(timeout, func() { cancel(context.DeadlineExceeded) })
	defer silence.Stop()

	conn, err := c.dial(ctx)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	// The connection stays open in both directions until the reply has come: half closed, HAProxy 2.6 has crashed.
	// What it said before it went away is read even where it has not taken the whole command.
	_, failure := io.WriteString(conn, command)
	raw, err := io.ReadAll(io.LimitReader(&pieces{conn, silence, timeout}, maxReply+1))
	if failure == nil {
		failure = err
	}
	reply := string(raw)
	switch {
	case len(reply) > maxReply:
		return "", fmt.Errorf("the reply is larger than %d octets", maxReply)
	case failure != nil && ctx.Err() != nil:
		return "", fmt.Errorf("%w in time: %w", ErrEmpty, context.Cause(ctx))
	case failure != nil && !complete(reply):
		return "", fmt.Errorf("%w: %w", ErrEmpty, failure)
	case reply == "":
		return "", ErrEmpty
	case !strings.HasSuffix(reply, "\n"):
		return "", errPart
	}
	return reply, nil
}

// complete reports whether nothing is missing: HAProxy ends each reply with an empty line.
func complete(reply string) bool { return reply == "\n" || strings.HasSuffix(reply, "\n\n") }

// question is ask for a command that asks. Where a part of the reply could pass for the whole, all of it has to be there.
func (c *Client) question(ctx context.Context, command string) (string, error) {
	reply, err := c.ask(ctx, command)
	if err == nil && !complete(reply) {
		return "", errPart
	}
	return reply, err
}

// dial connects to the socket.
func (c *Client) dial(ctx context.Context) (net.Conn, error) {
	network := "unix"
	if !strings.HasPrefix(c.Path, "/") && strings.Contains(c.Path, ":") {
		network = "tcp"
	}
	conn, err := new(net.Dialer).DialContext(ctx, network, c.Path)
	switch {
	case err == nil:
		return conn, nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return nil, fmt.Errorf("%w: %w", ErrDown, err)
	case errors.Is(err, fs.ErrPermission):
		return nil, fault.Errorf(fault.Usage, "%w: %w", ErrPermission, err).
			WithHint("run it as root, or as a user that may use the socket")
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%w in time: %w", ErrEmpty, context.Cause(ctx))
	case errors.Is(err, syscall.EAGAIN): // so many wait for HAProxy already that the kernel takes no more
		return nil, fmt.Errorf("%w: %w", ErrEmpty, err)
	}
	return nil, fmt.Errorf("use HAProxy's stats socket: %w", err)
}

// pieces reads a reply and gives HAProxy its time anew with each piece.
type pieces struct {
	conn    net.Conn
	silence *time.Timer
	timeout time.Duration
}

func (p *pieces) Read(b []byte) (int, error) {
	n, err := p.conn.Read(b)
	if n > 0 {
		p.silence.Reset(p.timeout)
	}
	return n, err
}

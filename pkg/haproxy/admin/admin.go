// Package admin speaks HAProxy's runtime API at its stats socket, as far as certificates go. Only the exact reply
// that HAProxy gives on success counts as success: its commands do not agree on how they fail.
//
// The commands are in HAProxy's management.txt, section 9.3, and src/ssl_ckch.c.
package admin

import (
	"bytes"
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

var (
	// ErrDown means that nobody listens at the socket.
	ErrDown = errors.New("HAProxy does not answer at its stats socket")
	// ErrLocked means that somebody else changes certificates at this moment.
	ErrLocked = errors.New("certificates are locked by another operation")
	// ErrEmpty means that the connection ended without a reply, as it does where a command is too big for HAProxy or
	// where HAProxy reloads.
	ErrEmpty = errors.New("HAProxy has given no reply")
	// ErrUnknownName means that the configuration loads no such file.
	ErrUnknownName = errors.New("HAProxy has not loaded such a file")
	// ErrPermission means that the socket's level is too low.
	ErrPermission = errors.New("the stats socket does not allow it")
	// ErrTooLarge means that the command would exceed HAProxy's buffer. It has not been sent: of such a size HAProxy 2.6
	// can crash.
	ErrTooLarge = errors.New("the certificate is too large for the runtime API")
)

// Foreign is the error where HAProxy has put what was sent into an open transaction of another file.
type Foreign struct{ Transaction string }

func (f *Foreign) Error() string {
	return fmt.Sprintf("HAProxy has taken it into the open transaction for %q", f.Transaction)
}

// Refused is an error: HAProxy's reply is not the one of success.
type Refused struct {
	Command string // without what was sent with it
	Reply   string
}

func (r *Refused) Error() string {
	return fmt.Sprintf("HAProxy replies to %q: %q", r.Command, strings.TrimSpace(r.Reply))
}

// DefaultTimeout is how long one command may take where [Client] says nothing else.
const DefaultTimeout = 10 * time.Second

const (
	maxReply   = 64 << 20 // a list of some hundred thousand files
	bufferSize = 16384    // HAProxy's tune.bufsize by default
)

// Client asks one HAProxy. It makes a connection for each command and is safe for concurrent use.
type Client struct {
	Path    string // of the unix socket, or host:port
	Timeout time.Duration
}

// ask sends one command and returns all of the reply.
func (c *Client) ask(ctx context.Context, command string) (string, error) {
	timeout := c.Timeout
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	network := "unix"
	if !strings.HasPrefix(c.Path, "/") && strings.Contains(c.Path, ":") {
		network = "tcp"
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, c.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return "", fmt.Errorf("%w: %w", ErrDown, err)
	case errors.Is(err, fs.ErrPermission):
		return "", fault.Errorf(fault.Usage, "use HAProxy's stats socket: %w", err).WithHint("run it as root, or as a user that may use the socket")
	case err != nil:
		return "", fmt.Errorf("use HAProxy's stats socket: %w", err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	// The connection stays open in both directions until the reply has come: half closed, HAProxy 2.6 has crashed.
	if _, err := io.WriteString(conn, command); err != nil {
		return "", ended(ctx, err)
	}
	reply, err := io.ReadAll(io.LimitReader(conn, maxReply+1))
	switch {
	case err != nil:
		return "", ended(ctx, err)
	case len(reply) > maxReply:
		return "", fmt.Errorf("the reply is larger than %d octets", maxReply)
	case len(bytes.TrimSpace(reply)) == 0:
		return "", ErrEmpty
	}
	text := string(reply)
	if strings.HasPrefix(text, "Permission denied") || strings.HasPrefix(text, "Can't allocate memory!") {
		return "", fault.Errorf(fault.Usage, "%w (%s)", ErrPermission, c.Path).
			WithHint("put \"level admin\" on the line of that stats socket in HAProxy's configuration")
	}
	if strings.Contains(text, "currently locked!") {
		return "", ErrLocked
	}
	return text, nil
}

// ended says why a connection ended.
func ended(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("HAProxy has not replied in time: %w", ErrEmpty)
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return fmt.Errorf("%w: %w", ErrEmpty, err)
	}
	return err
}

// plain refuses a name that HAProxy would take apart.
func plain(name string) error {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(`;<\`, r) }) {
		return fault.Errorf(fault.Lineage, "the file name %q cannot be told to HAProxy", name)
	}
	return nil
}

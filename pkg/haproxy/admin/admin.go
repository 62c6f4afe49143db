// Package admin speaks HAProxy's runtime API at its stats socket, as far as certificates go. Only the exact reply
// that HAProxy gives on success counts as success: its commands do not agree on how they fail.
//
// The commands are in HAProxy's management.txt, section 9.3, and src/ssl_ckch.c.
package admin

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/certhook/certhook/pkg/fault"
)

var (
	// ErrDown means that nobody listens at the socket.
	ErrDown = errors.New("HAProxy does not answer at its stats socket")
	// ErrLocked means that somebody else changes certificates at this moment.
	ErrLocked = errors.New("certificates are locked by another operation")
	// ErrEmpty means that no reply has come, or not all of one: the connection ended or nothing more came in time. It is
	// so where HAProxy is busy, reloads, or finds a command too big. Whether the command had an effect is unknown.
	ErrEmpty = errors.New("HAProxy has given no reply")
	// ErrUnknownName means that HAProxy holds nothing of that name.
	ErrUnknownName = errors.New("HAProxy has not loaded such a file")
	// ErrNoTransaction means that there is nothing to commit: somebody has ended the transaction, or HAProxy has
	// reloaded and forgotten it.
	ErrNoTransaction = errors.New("HAProxy has no such transaction")
	// ErrUnfinished means that a commit has been given up before HAProxy said how it ended. If the transaction is still
	// open, nothing may be said about it any more, neither commit nor abort, show or set: in HAProxy 2.6 it holds memory
	// that was freed, and HAProxy crashes, where more than twenty places use the certificate. A reload ends it.
	ErrUnfinished = errors.New("the commit has no known outcome")
	// ErrPermission means that the socket may not be used, or that its level is too low.
	ErrPermission = errors.New("the stats socket does not allow it")
	// ErrTooLarge means that the command would exceed HAProxy's buffer. It has not been sent: of one that fills the
	// buffer to the last octet HAProxy 2.6 can crash.
	ErrTooLarge = errors.New("the command is too large for the runtime API")
)

// Foreign is the error where HAProxy has put what was sent into an open transaction of another file.
type Foreign struct{ Transaction string }

func (f *Foreign) Error() string {
	return fmt.Sprintf("HAProxy has taken it into the open transaction for %q", f.Transaction)
}

// Refused is an error: HAProxy's reply is not the one of success.
type Refused struct {
	Command string // without what was sent with it
	Reply   string // whole, without a private key that was sent
}

// maxTold is how many octets of a reply are told; all that matters is far shorter.
const maxTold = 500

func (r *Refused) Error() string {
	reply := strings.TrimSpace(r.Reply)
	if len(reply) > maxTold {
		reply = reply[:maxTold] + "…"
	}
	return fmt.Sprintf("HAProxy replies to %q: %q", r.Command, reply)
}

// DefaultTimeout is how long HAProxy may be silent where [Client] says nothing else.
const DefaultTimeout = 5 * time.Second

const (
	maxReply   = 16 << 20 // octets; a list of some hundred thousand files
	bufferSize = 16384    // octets; HAProxy's tune.bufsize by default
)

// Client asks one HAProxy. It makes a connection for each command and is safe for concurrent use.
type Client struct {
	Path string // of the unix socket, or host:port
	// Timeout bounds the wait for a reply, and for each further piece of one; 0 for [DefaultTimeout]. A commit sends
	// dots while it is at work, which takes seconds where thousands of names lead to one file.
	Timeout time.Duration
}

func (c *Client) timeout() time.Duration {
	if c.Timeout <= 0 {
		return DefaultTimeout
	}
	return c.Timeout
}

// Plain reports whether a name can be told to HAProxy. Others it would take apart, and their commands are refused here.
func Plain(name string) bool {
	bad := func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || strings.ContainsRune(`;<\`, r) }
	return name != "" && !strings.ContainsFunc(name, bad)
}

func plain(name string) error {
	if !Plain(name) {
		return fault.Errorf(fault.Lineage, "the file name %q cannot be told to HAProxy", name).
			WithHint("white space, control characters, \";\", \"<\" and \"\\\" mean something to HAProxy: rename the file")
	}
	return nil
}

// failures are lines that tell why a command has failed, whatever is around them.
var failures = map[string]error{
	"Permission denied": ErrPermission,
	// For a socket of level user, "show ssl cert" has this in place of "Permission denied".
	"Can't allocate memory!":                                                    ErrPermission,
	"Operations on certificates are currently locked!":                          ErrLocked,
	"Can't replace a certificate which is not referenced by the configuration!": ErrUnknownName,
	"Can't display the certificate: Not found or the certificate is a bundle!":  ErrUnknownName,
	"No ongoing transaction!":                                                   ErrNoTransaction,
	"No ongoing transaction! !":                                                 ErrNoTransaction,
}

// refusal is the error for a reply that is not the one of success.
func refusal(command, reply string) error {
	refused := &Refused{command, reply}
	for line := range strings.Lines(reply) {
		line = strings.TrimSuffix(line, "\n")
		switch err := failures[line]; {
		case err == ErrPermission:
			return fault.Errorf(fault.Usage, "%w: %w", err, refused).
				WithHint("put \"level admin\" on the line of that stats socket in HAProxy's configuration")
		case err != nil:
			return fmt.Errorf("%w: %w", err, refused)
		case strings.HasPrefix(line, "The command ") && strings.Contains(line, " is too big for the buffer size."): // 3.0
			return fmt.Errorf("%w: %w", ErrTooLarge, refused)
		}
	}
	return refused
}

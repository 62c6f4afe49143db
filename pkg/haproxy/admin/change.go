package admin

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Size is how many octets the command has that sets a certificate.
func Size(name string, pem []byte) int {
	return len(setCommand(name)) + len(" <<\n") + len(pem) + len("\n")
}

func setCommand(name string) string { return "set ssl cert " + name }

// Set opens a transaction in which the file holds a certificate, its chain and its key: PEM without blank lines, with
// one line feed at its end. Besides the errors of every command there are [ErrUnknownName], [ErrLocked], [*Foreign], and
// [ErrTooLarge] for a command ([Size]) of 16384 octets or more, of which nothing is sent.
//
// HAProxy does not look at much here: a certificate that does not fit the key is refused by [Client.Commit].
func (c *Client) Set(ctx context.Context, name string, pem []byte) error {
	if err := plain(name); err != nil {
		return err
	}
	if err := whole(string(pem)); err != nil {
		return fmt.Errorf("set %q in HAProxy: %w", name, err)
	}
	reply, err := c.ask(ctx, setCommand(name)+" <<\n"+string(pem)+"\n")
	if err == nil {
		err = created(name, conceal(reply, string(pem)))
	}
	if err != nil {
		return fmt.Errorf("set %q in HAProxy: %w", name, err)
	}
	return nil
}

// whole refuses what HAProxy would not take to its end: a blank line ends it, and what comes after are commands.
func whole(pem string) error {
	text, ended := strings.CutSuffix(pem, "\n")
	if !ended {
		return errors.New("the PEM does not end with a line feed")
	}
	for line := range strings.SplitSeq(text, "\n") {
		if strings.TrimSpace(line) == "" {
			return errors.New("the PEM has a blank line, which would end it early")
		}
	}
	if strings.ContainsFunc(pem, func(r rune) bool { return r < ' ' && r != '\n' || r == 0x7f }) {
		return errors.New("the PEM has a control character")
	}
	return nil
}

// conceal takes out of a reply what was sent along: no private key gets into an error. HAProxy does not repeat what it
// is sent, but it may not be HAProxy that replies.
func conceal(reply, pem string) string {
	for line := range strings.Lines(pem) {
		if line = strings.TrimSuffix(line, "\n"); len(line) >= 8 {
			reply = strings.ReplaceAll(reply, line, "…")
		}
	}
	return reply
}

// created judges the reply to "set ssl cert".
func created(name, reply string) error {
	text := strings.TrimRight(reply, "\n")
	if text == "Transaction created for certificate "+name+"!" {
		return nil
	}
	other, updated := strings.CutPrefix(text, "Transaction updated for certificate ")
	if other, ok := strings.CutSuffix(other, "!"); ok && updated && !strings.Contains(other, "\n") {
		return &Foreign{other}
	}
	err := refusal(setCommand(name), reply)
	if strings.HasPrefix(text, "The ongoing transaction is about '") {
		return fmt.Errorf("%w: %w", ErrLocked, err) // later versions, which leave that transaction as it is
	}
	return err
}

// patience is how many times the usual silence a commit may last.
const patience = 12

// Commit ends a transaction: from now on HAProxy serves what it holds. Errors besides those of every command are
// [ErrNoTransaction], [ErrLocked], and [ErrUnfinished] beside [ErrEmpty]. A transaction that HAProxy refuses to commit
// stays until [Client.Abort].
//
// A commit that has begun is not given up when ctx is done: it would leave the transaction as [ErrUnfinished] tells.
// While HAProxy is at work it is never silent for long.
func (c *Client) Commit(ctx context.Context, name string) error {
	if ctx.Err() != nil {
		return fmt.Errorf("commit %q in HAProxy: %w", name, context.Cause(ctx))
	}
	patient := &Client{Path: c.Path, Timeout: patience * c.timeout()}
	err := patient.end(context.WithoutCancel(ctx), "commit", name, committed)
	if errors.Is(err, ErrEmpty) {
		return fmt.Errorf("%w: %w", ErrUnfinished, err)
	}
	return err
}

// committed judges the reply to "commit ssl cert": a dot for every few places where the certificate is replaced, then
// warnings, if any.
func committed(name, reply string) error {
	first, rest, _ := strings.Cut(strings.TrimRight(reply, "\n"), "\n")
	dots, begun := strings.CutPrefix(first, "Committing "+name)
	if begun && strings.Trim(dots, ".") == "" && strings.HasSuffix("\n"+rest, "\nSuccess!") {
		return nil
	}
	return refusal("commit ssl cert "+name, reply)
}

// Abort ends a transaction without effect. That there is none is no error.
func (c *Client) Abort(ctx context.Context, name string) error {
	return c.end(ctx, "abort", name, aborted)
}

// aborted judges the reply to "abort ssl cert".
func aborted(name, reply string) error {
	switch strings.TrimRight(reply, "\n") {
	case "Transaction aborted for certificate '" + name + "'!", "No ongoing transaction!":
		return nil
	}
	return refusal("abort ssl cert "+name, reply)
}

// end ends a transaction one way or the other.
func (c *Client) end(ctx context.Context, verb, name string, judge func(name, reply string) error) error {
	if err := plain(name); err != nil {
		return err
	}
	reply, err := c.ask(ctx, verb+" ssl cert "+name+"\n")
	if err == nil {
		err = judge(name, reply)
	}
	if err != nil {
		return fmt.Errorf("%s %q in HAProxy: %w", verb, name, err)
	}
	return nil
}

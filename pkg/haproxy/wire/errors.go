package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
)

var (
	// ErrDown means that nobody listens.
	ErrDown = errors.New("nobody listens")
	// ErrTimeout means that the handshake did not end in time.
	ErrTimeout = errors.New("no handshake in time")
	// ErrNoCertificate means that the server has none to show for the name: it does not know it (strict-sni), or has
	// no certificate that the client could use.
	ErrNoCertificate = errors.New("the server shows no certificate")
	// ErrUnasked means that the server shows the certificate of the other algorithm, and could not be asked for
	// this one, since it speaks TLS 1.3 alone.
	ErrUnasked = errors.New("the server speaks TLS 1.3 alone, which cannot ask")
)

// The alerts by which a server ends a handshake before it shows a certificate (RFC 8446, section 6).
const (
	alertHandshake tls.AlertError = 40  // no cipher that fits a certificate of its
	alertVersion   tls.AlertError = 70  // none of the versions of TLS that it was offered
	alertName      tls.AlertError = 112 // it does not know the name
)

// refusal is an alert of the server's.
type refusal struct{ alert tls.AlertError }

func (r *refusal) Error() string { return "the server refuses: " + r.alert.Error() }

// Is makes it an ErrNoCertificate where a better offer would not have brought one.
func (r *refusal) Is(target error) bool {
	return target == ErrNoCertificate && (r.alert == alertHandshake || r.alert == alertName)
}

// refused returns the alert that ended a handshake. Its type is not exported, only its words are.
func refused(err error) (*refusal, bool) {
	op, ok := errors.AsType[*net.OpError](err)
	if !ok || op.Op != "remote error" || op.Err == nil {
		return nil, false
	}
	for n := range 256 {
		if a := tls.AlertError(n); op.Err.Error() == a.Error() {
			return &refusal{a}, true
		}
	}
	return nil, false
}

// failed says what went wrong at a target.
func failed(ctx context.Context, t Target, err error) error {
	refusal, isRefusal := refused(err)
	timeout, isTimeout := errors.AsType[net.Error](err)
	_, noTLS := errors.AsType[tls.RecordHeaderError](err)
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		err = ctx.Err()
	case ctx.Err() != nil, isTimeout && timeout.Timeout():
		err = ErrTimeout
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOENT):
		err = fmt.Errorf("%w: %w", ErrDown, err)
	case isRefusal:
		err = refusal
	case noTLS:
		err = errors.New("this is not TLS")
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		err = fmt.Errorf("the server ends the connection before it shows a certificate: %w", err)
	}
	return fmt.Errorf("look at %s: %w", t.Address, err)
}

// Package fault sorts failures by what the caller of a program has to know about them. Packages below
// the commands return a *[Error] where the kind is known; pkg/cli maps the kind to an exit code and
// prints the hint.
package fault

import (
	"errors"
	"fmt"
)

// Kind is what a failure means to the person or program that started us.
type Kind int

const (
	// Other is a failure of no particular kind; it is what [KindOf] reports for any other error.
	Other Kind = iota
	// Verdict means that the answer is no: a record is missing or wrong.
	Verdict
	// Unknown means that nobody answered, so that neither yes nor no can be said.
	Unknown
	// Usage is a wrong call, a wrong setting or a missing permission of this machine.
	Usage
	// Provider means that the DNS provider refused or failed.
	Provider
	// Propagation means that what was written was not visible in time.
	Propagation
	// Lineage is a certificate on disk that nobody could use.
	Lineage
	// Pending means that the other side is down or busy: nothing is lost, and the next run tries again.
	Pending
	// Refused means that HAProxy refused.
	Refused
)

// Error is a failure of a known kind. Err says what is wrong, Hint what to do next.
type Error struct {
	Kind Kind
	Err  error
	Hint string // one line without the "hint:" prefix; empty when the reader cannot act
}

// Errorf makes an Error of the given kind from a format as fmt.Errorf takes it, %w included.
func Errorf(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Err: fmt.Errorf(format, args...)}
}

// WithHint sets the hint from a format and returns the same Error.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// KindOf reports the kind of the outermost [Error] in err's chain, or Other.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Other
}

// HintOf returns the first hint in err's chain, or "".
func HintOf(err error) string {
	for err != nil {
		e, ok := errors.AsType[*Error](err)
		if !ok {
			return ""
		}
		if e.Hint != "" {
			return e.Hint
		}
		err = e.Err
	}
	return ""
}

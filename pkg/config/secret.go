package config

import (
	"fmt"
	"io"
	"log/slog"
)

// redacted is all that a set Secret shows of itself.
const redacted = "[redacted]"

// Secret is a value that must not show up anywhere by accident: every way of printing or encoding it
// yields "[redacted]", or "" when it is empty. The zero value is an empty secret.
type Secret struct{ value string }

// NewSecret wraps value.
func NewSecret(value string) Secret { return Secret{value} }

// Reveal returns the secret itself; it is the only way to it.
func (s Secret) Reveal() string { return s.value }

// IsZero reports whether the secret is empty.
func (s Secret) IsZero() bool { return s.value == "" }

func (s Secret) String() string {
	if s.IsZero() {
		return ""
	}
	return redacted
}

// GoString keeps the value out of %#v.
func (s Secret) GoString() string { return s.String() }

// Format keeps the value out of every other verb, %x among them.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText keeps the value out of text encodings.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON keeps the value out of JSON.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + s.String() + `"`), nil }

// LogValue keeps the value out of logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

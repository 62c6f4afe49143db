package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestSecretHidesItself(t *testing.T) {
	const value = "s3cr3t-token"
	s := NewSecret(value)
	settings := Settings{CloudflareToken: s, RFC2136TSIGSecret: s}
	nested := struct {
		S Secret
		P *Secret
		M map[string]Secret
	}{s, &s, map[string]Secret{"k": s}}

	var shown []string
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T %v"} {
		args := []any{s}
		if verb == "%T %v" {
			args = []any{s, s}
		}
		shown = append(shown, fmt.Sprintf(verb, args...))
	}
	shown = append(shown,
		fmt.Sprint(s), fmt.Sprintln(&s), s.String(), s.GoString(),
		fmt.Sprintf("%v %+v %#v", nested, nested, nested.M),
		fmt.Sprintf("%v %+v %#v", settings, settings, settings),
		fmt.Errorf("wrapped: %v, %w", s, errors.New("x")).Error(),
	)
	for _, v := range []any{s, &s, nested, settings} {
		out, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		shown = append(shown, string(out))
	}
	text, err := s.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	shown = append(shown, string(text))
	for _, handler := range []func(*bytes.Buffer) slog.Handler{
		func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
		func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
	} {
		var b bytes.Buffer
		slog.New(handler(&b)).Info("x", "secret", s, "pointer", &s, "group", slog.GroupValue(slog.Any("s", s)), "settings", settings)
		shown = append(shown, b.String())
	}
	for i, out := range shown {
		if strings.Contains(out, value) || strings.Contains(strings.ToLower(out), fmt.Sprintf("%x", value)) {
			t.Errorf("%d shows the secret: %s", i, out)
		}
		if !strings.Contains(out, redacted) {
			t.Errorf("%d does not show that something was redacted: %s", i, out)
		}
	}
	if s.Reveal() != value {
		t.Errorf("Reveal() = %q", s.Reveal())
	}
}

func TestEmptySecretShowsNothing(t *testing.T) {
	var s Secret
	if got := fmt.Sprintf("%s%v%#v%x", s, s, s, s); got != "" || !s.IsZero() {
		t.Errorf("an empty secret shows %q, IsZero() = %t", got, s.IsZero())
	}
	if out, err := json.Marshal(s); err != nil || string(out) != `""` {
		t.Errorf("as JSON: %s, %v", out, err)
	}
	if NewSecret("x").IsZero() {
		t.Error("a secret that is set calls itself empty")
	}
}

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/certhook/certhook/pkg/fault"
)

func TestExitCode(t *testing.T) {
	interrupted, cancel := context.WithCancelCause(t.Context())
	cancel(ErrInterrupted)
	provider := fault.Errorf(fault.Provider, "p")
	tests := []struct {
		name string
		ctx  context.Context
		err  error
		want int
	}{
		{"none", t.Context(), nil, 0},
		{"any", t.Context(), errors.New("x"), 1},
		{"verdict", t.Context(), fault.Errorf(fault.Verdict, "x"), 3},
		{"unknown", t.Context(), fault.Errorf(fault.Unknown, "x"), 4},
		{"usage", t.Context(), fault.Errorf(fault.Usage, "x"), 10},
		{"provider, wrapped", t.Context(), fmt.Errorf("outer: %w", provider), 11},
		{"propagation", t.Context(), fault.Errorf(fault.Propagation, "x"), 12},
		{"first of several", t.Context(), errors.Join(provider, fault.Errorf(fault.Propagation, "x")), 11},
		{"interrupted", interrupted, provider, 130},
		{"done although interrupted", interrupted, nil, 0},
	}
	for _, tt := range tests {
		if got := ExitCode(tt.ctx, tt.err); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

func TestReport(t *testing.T) {
	err := errors.Join(
		fault.Errorf(fault.Usage, "one").WithHint("mend it"),
		errors.Join(fmt.Errorf("two: %w", fault.Errorf(fault.Provider, "inner").WithHint("ask them"))),
		errors.New("three\nlines"),
	)
	var b bytes.Buffer
	Report(&b, "prog", err)
	want := "prog: one\nprog: hint: mend it\nprog: two: inner\nprog: hint: ask them\nprog: three\nprog:   lines\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

func TestLoggerKeepsStderrForWarnings(t *testing.T) {
	for _, verbose := range []bool{false, true} {
		var file, stderr bytes.Buffer
		log := NewLogger("prog", &file, &stderr, verbose).With("for", "a.example")
		log.Debug("end")
		log.Info("step")
		log.Warn("odd", "why", "two words")
		for _, msg := range []string{"end", "step", "odd"} {
			if !strings.Contains(file.String(), "msg="+msg) {
				t.Errorf("verbose %v: the file lacks %q", verbose, msg)
			}
		}
		if got := stderr.String(); strings.Contains(got, "step") != verbose || !strings.Contains(got, "prog: warning: odd for=a.example why=\"two words\"\n") {
			t.Errorf("verbose %v: stderr is %q", verbose, got)
		}
	}
}

func TestEveryLineBearsTheProgramsName(t *testing.T) {
	var stderr bytes.Buffer
	NewLogger("prog", nil, &stderr, false).Warn("one\ntwo\nthree")
	if got := stderr.String(); got != "prog: warning: one\nprog:   two\nprog:   three\n" {
		t.Errorf("stderr is %q", got)
	}
}

// As on a full disk, where the file could be opened.
func TestLogThatFailsIsWarnedOfOnce(t *testing.T) {
	file, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var stderr bytes.Buffer
	log := NewLogger("prog", file, &stderr, false)
	log.Info("one")
	log.Info("two")
	if got := stderr.String(); strings.Count(got, "\n") != 1 || !strings.HasPrefix(got, "prog: warning: ") || !strings.Contains(got, "no space left") {
		t.Errorf("stderr is %q", got)
	}
}

func TestOpenLog(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	path := filepath.Join(dir, "certhook.log")
	for _, line := range []string{"a", "b"} {
		f, err := OpenLog(path)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(f, line)
		f.Close()
	}
	raw, _ := os.ReadFile(path)
	info, _ := os.Stat(path)
	dirInfo, _ := os.Stat(dir)
	if string(raw) != "a\nb\n" || info.Mode().Perm() != 0o600 || dirInfo.Mode().Perm() != 0o700 {
		t.Errorf("content %q, modes %v and %v", raw, info.Mode(), dirInfo.Mode())
	}

	link := filepath.Join(dir, "link.log")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	linkedDir := filepath.Join(t.TempDir(), "linked")
	if err := os.Symlink(dir, linkedDir); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{link, filepath.Join(linkedDir, "x.log"), dir} {
		if f, err := OpenLog(bad); err == nil {
			f.Close()
			t.Errorf("%q was opened", bad)
		}
	}
}

func TestFlagsOnEitherSideOfTheSubcommand(t *testing.T) {
	for _, args := range [][]string{
		{"prog", "--config", "f", "-v", "sub"},
		{"prog", "sub", "--config", "f", "-v"},
	} {
		app := NewApp("prog", "")
		ran := false
		app.Commands = []*cli.Command{{Name: "sub", Flags: CommonFlags(), Action: func(c *cli.Context) error {
			ran = true
			if ConfigFile(c) != "f" || !Switch(c, "v") || Switch(c, "check-config") {
				t.Errorf("%q: config %q, v %v", args, ConfigFile(c), Switch(c, "v"))
			}
			return nil
		}}}
		var out bytes.Buffer
		if code := Run(t.Context(), app, args, &out, &out); code != 0 || !ran {
			t.Errorf("%q: exit %d, output %q", args, code, out.String())
		}
	}
}

func TestUsageErrorsGoToStderr(t *testing.T) {
	for _, args := range [][]string{{"prog", "--nope"}, {"prog", "sub", "--nope"}, {"prog", "--config"}} {
		app := NewApp("prog", "")
		app.Commands = []*cli.Command{{Name: "sub"}}
		var out, errs bytes.Buffer
		code := Run(t.Context(), app, args, &out, &errs)
		if code != ExitUsage || out.Len() != 0 || !strings.Contains(errs.String(), "prog: hint: see: prog --help") {
			t.Errorf("%q: exit %d, stdout %q, stderr %q", args, code, out.String(), errs.String())
		}
	}
}

var _ slog.Handler = (*peopleHandler)(nil)

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/certhook/certhook/pkg/fault"
)

// Exit codes of every certhook program. 2 is left to Go's panics.
const (
	ExitDone        = 0
	ExitFailure     = 1
	ExitVerdict     = 3
	ExitUnknown     = 4
	ExitUsage       = 10
	ExitProvider    = 11
	ExitPropagation = 12
	ExitRefused     = 13
	ExitPending     = 14
	ExitLineage     = 15
	ExitInterrupted = 130
)

// exits is the one table of exit codes, for help and man pages.
var exits = []struct {
	code    int
	meaning string
}{
	{ExitDone, "done"},
	{ExitFailure, "failure"},
	{ExitVerdict, "the verdict is no: what should be there is missing or wrong"},
	{ExitUnknown, "cannot tell: nobody answered"},
	{ExitUsage, "usage, configuration or permission"},
	{ExitProvider, "the DNS provider refused or failed"},
	{ExitPropagation, "not propagated in time"},
	{ExitRefused, "HAProxy refused"},
	{ExitPending, "apply pending: HAProxy is down or busy, the next run tries again"},
	{ExitLineage, "unusable lineage"},
	{ExitInterrupted, "interrupted"},
}

var kinds = map[fault.Kind]int{
	fault.Other:       ExitFailure,
	fault.Verdict:     ExitVerdict,
	fault.Unknown:     ExitUnknown,
	fault.Usage:       ExitUsage,
	fault.Provider:    ExitProvider,
	fault.Propagation: ExitPropagation,
	fault.Refused:     ExitRefused,
	fault.Pending:     ExitPending,
	fault.Lineage:     ExitLineage,
}

// ErrInterrupted is the cause with which Main's context ends on SIGINT or SIGTERM.
var ErrInterrupted = errors.New("interrupted")

// ExitCode is the exit code that err stands for. Of several joined errors the first decides.
func ExitCode(ctx context.Context, err error) int {
	switch {
	case err == nil:
		return ExitDone
	case context.Cause(ctx) == ErrInterrupted:
		return ExitInterrupted
	}
	return kinds[fault.KindOf(err)]
}

// exitsKey is where an application keeps the exit codes that it can return.
const exitsKey = "exits"

// ExitStatus describes the exit codes of app in Markdown, for its man page.
func ExitStatus(app *cli.App) string {
	codes, _ := app.Metadata[exitsKey].([]int)
	return exitStatus(codes, "**%d**\n: %s\n\n")
}

func exitStatus(codes []int, format string) string {
	var b strings.Builder
	for _, e := range exits {
		if slices.Contains(codes, e.code) {
			fmt.Fprintf(&b, format, e.code, e.meaning)
		}
	}
	return b.String()
}

// Report prints err for people: each of several joined errors on lines of its own, prefixed with the
// program's name and followed by its hint.
func Report(w io.Writer, program string, err error) {
	for _, err := range split(err) {
		text := strings.ReplaceAll(err.Error(), "\n", "\n"+program+":   ")
		fmt.Fprintf(w, "%s: %s\n", program, text)
		if hint := fault.HintOf(err); hint != "" {
			fmt.Fprintf(w, "%s: hint: %s\n", program, hint)
		}
	}
}

func split(err error) []error {
	if err == nil {
		return nil
	}
	// Only what errors.Join made is taken apart; a %w with text around it stays one message.
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range joined.Unwrap() {
			all = append(all, split(e)...)
		}
		return all
	}
	return []error{err}
}

// Package scripttest runs the txtar scripts of the commands against the real main functions.
package scripttest

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/certhook/certhook/pkg/cli"
)

// Main runs the tests with the programs on the scripts' PATH.
func Main(m *testing.M, programs map[string]cli.Program) {
	commands := make(map[string]func())
	for name, p := range programs {
		commands[name] = func() { os.Exit(cli.Main(p)) }
	}
	testscript.Main(m, commands)
}

// Run runs the scripts of a folder. Besides testscript's own commands they have "exits CODE PROGRAM
// [ARG...]", which fails on any other exit code.
func Run(t *testing.T, dir string) {
	testscript.Run(t, testscript.Params{
		Dir: dir,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits,
		},
	})
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM [ARG...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exitErr, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%s: %v", args[1], err)
		}
		got = exitErr.ExitCode()
	}
	if got != want {
		ts.Fatalf("%s exits with %d, want %d", args[1], got, want)
	}
}

// Package scripttest runs txtar scripts against the project's programs.
package scripttest

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/certhook/certhook/pkg/cli"
)

// Command is a command of a test's own scripts.
type Command = func(ts *testscript.TestScript, neg bool, args []string)

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
	testscript.Run(t, testscript.Params{Dir: dir, Cmds: map[string]Command{"exits": exits}})
}

// RunInTurn is Run for scripts that share something of which there is only one. setup prepares each
// script; commands are added to those that every script has.
func RunInTurn(t *testing.T, dir string, commands map[string]Command, setup func(*testing.T, *testscript.Env)) {
	all := map[string]Command{"exits": exits}
	maps.Copy(all, commands)
	testscript.RunT(serial{t}, testscript.Params{Dir: dir, Cmds: all, Setup: func(env *testscript.Env) error {
		setup(env.T().(serial).T, env)
		return nil
	}})
}

// serial is a test whose subtests do not run in parallel.
type serial struct{ *testing.T }

func (s serial) Parallel()     {}
func (s serial) Verbose() bool { return testing.Verbose() }
func (s serial) Run(name string, f func(testscript.T)) {
	s.T.Run(name, func(t *testing.T) { f(serial{t}) })
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

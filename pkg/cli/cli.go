// Package cli is what every certhook program shares towards its caller: streams, exit codes, messages
// with hints, the log and the version. With cmd it is the only place that knows urfave/cli.
package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/certhook/certhook/pkg/fault"
)

// version is set by the build (-ldflags -X); a plain "go install" leaves what the module knows.
var version string

// Version is the version of this build.
func Version() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}

// Program is what a main function runs: its surroundings are handed in, so that a test can hand in
// others.
type Program func(ctx context.Context, args, environ []string, stdin io.Reader, stdout, stderr io.Writer) int

// Main runs p in the process's own surroundings, with a context that SIGINT, SIGTERM and SIGHUP end, and
// returns its exit code.
func Main(p Program) int {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	signals := make(chan os.Signal, 1)
	ending := []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}
	ending = slices.DeleteFunc(ending, signal.Ignored) // as nohup asks for
	if len(ending) > 0 {
		signal.Notify(signals, ending...)
	}
	go func() {
		<-signals
		cancel(ErrInterrupted)
		signal.Reset(ending...) // a second signal ends the process at once
	}()
	// A hook that outlives its certbot has nobody left who reads its output. To write it must not end the
	// hook before it has cleaned up, as it would if this signal were not taken.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return p(ctx, os.Args, os.Environ(), os.Stdin, os.Stdout, os.Stderr)
}

// NewApp returns an application of that name with the flags that every program has and without the
// library's own ways to exit and to print. exits are the exit codes that it can return.
func NewApp(name, usage string, exits ...int) *cli.App {
	app := cli.NewApp()
	app.Name = name
	app.HelpName = name
	app.Usage = usage
	app.Version = Version()
	app.HideHelpCommand = true
	app.Flags = CommonFlags()
	app.Metadata = map[string]any{exitsKey: exits}
	app.CustomAppHelpTemplate = cli.AppHelpTemplate
	if len(exits) > 0 {
		app.CustomAppHelpTemplate += "\nEXIT STATUS:\n" + exitStatus(exits, "   %3d  %s\n")
	}
	return app
}

// CommonFlags are the flags of every program. A subcommand lists them too, so that they may stand on
// either side of its name.
func CommonFlags(own ...cli.Flag) []cli.Flag {
	return append(own,
		&cli.StringFlag{Name: "config", Usage: "read settings from `FILE` (default: /etc/certhook/certhook.env)"},
		&cli.BoolFlag{Name: "check-config", DisableDefaultText: true, Usage: "check the settings, say what is wrong with them, do nothing else"},
		&cli.BoolFlag{Name: "v", DisableDefaultText: true, Usage: "tell on stderr what is done"},
	)
}

// ConfigFile is what --config names, before or after the subcommand.
func ConfigFile(c *cli.Context) string {
	for _, at := range c.Lineage() {
		if at.Command != nil && at.IsSet("config") {
			return at.String("config")
		}
	}
	return ""
}

// Switch reports whether the flag is set before or after the subcommand.
func Switch(c *cli.Context, name string) bool {
	for _, at := range c.Lineage() {
		if at.Command != nil && at.Bool(name) {
			return true
		}
	}
	return false
}

// repeated is what the library adds to a flag that may be repeated: all of it once more.
var repeated = regexp.MustCompile(` \[ .* \]\t`)

// The library's own version flag would take -v.
func init() {
	flagText := cli.FlagStringer
	cli.FlagStringer = func(f cli.Flag) string { return repeated.ReplaceAllString(flagText(f), "\t") }
	cli.VersionFlag = &cli.BoolFlag{Name: "version", DisableDefaultText: true, Usage: "print the version"}
	cli.VersionPrinter = func(c *cli.Context) { fmt.Fprintf(c.App.Writer, "%s %s\n", c.App.Name, c.App.Version) }
	cli.HelpFlag = &cli.BoolFlag{Name: "help", DisableDefaultText: true, Aliases: []string{"h"}, Usage: "show help"}
}

// Run runs app with args, reports an error on stderr and returns the exit code.
func Run(ctx context.Context, app *cli.App, args []string, stdout, stderr io.Writer) int {
	app.Writer, app.ErrWriter = stdout, stderr
	app.ExitErrHandler = func(*cli.Context, error) {}
	app.OnUsageError = usageError
	for _, c := range app.Commands {
		c.OnUsageError = usageError
		c.HideHelpCommand = true
	}
	err := app.RunContext(ctx, flagsFirst(app, args))
	Report(stderr, app.Name, err)
	return ExitCode(ctx, err)
}

func usageError(c *cli.Context, err error, _ bool) error {
	name := strings.TrimSpace(c.App.Name)
	return fault.Errorf(fault.Usage, "%w", err).WithHint("see: %s --help", name)
}

// NoArguments refuses positional arguments.
func NoArguments(c *cli.Context) error {
	if c.Args().Present() {
		return fault.Errorf(fault.Usage, "unexpected argument %q", c.Args().First()).WithHint("see: %s --help", c.App.Name)
	}
	return nil
}

package cli

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// flagsFirst puts flags before other arguments, which is where the library looks for them: behind a name it would take
// --json for another name.
func flagsFirst(app *cli.App, args []string) []string {
	if len(args) == 0 || args[len(args)-1] == "--"+cli.BashCompletionFlag.Names()[0] {
		return args
	}
	var command, names []string // a command with its flags, and what is none
	before, known := args[:1:1], app.Flags
	found := &before
	for rest := args[1:]; len(rest) > 0; {
		arg := rest[0]
		rest = rest[1:]
		switch {
		case arg == "--":
			names, rest = append(names, rest...), nil
		case len(arg) > 1 && arg[0] == '-':
			name, _, joined := strings.Cut(strings.TrimLeft(arg, "-"), "=")
			*found = append(*found, arg)
			if takesValue(known, name) && !joined && len(rest) > 0 {
				*found, rest = append(*found, rest[0]), rest[1:]
			}
		default:
			if c := app.Command(arg); c != nil && command == nil && len(names) == 0 {
				command, known = []string{arg}, c.Flags
				found = &command
				continue
			}
			names = append(names, arg)
		}
	}
	if len(names) > 0 {
		names = append([]string{"--"}, names...)
	}
	return slices.Concat(before, command, names)
}

// takesValue reports whether there is a flag of this name to which a value belongs.
func takesValue(flags []cli.Flag, name string) bool {
	return slices.ContainsFunc(flags, func(f cli.Flag) bool {
		doc, ok := f.(cli.DocGenerationFlag)
		return ok && doc.TakesValue() && slices.Contains(f.Names(), name)
	})
}

package cli

import (
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

func TestFlagsFirst(t *testing.T) {
	app := NewApp("prog", "does")
	app.Commands = []*cli.Command{{Name: "status", Flags: CommonFlags(&cli.BoolFlag{Name: "json"}, &cli.StringFlag{Name: "metrics"}, &cli.StringSliceFlag{Name: "d"})}}
	for line, want := range map[string]string{
		"prog":                                     "prog",
		"prog a b":                                 "prog -- a b",
		"prog a -v b --config f":                   "prog -v --config f -- a b",
		"prog a --config=f":                        "prog --config=f -- a",
		"prog status a --json b --metrics f -v":    "prog status --json --metrics f -v -- a b",
		"prog -v status a -d x -d -y":              "prog -v status -d x -d -y -- a",
		"prog status --json -- -a --json":          "prog status --json -- -a --json",
		"prog a status -v":                         "prog -v -- a status",
		"prog status status":                       "prog status -- status",
		"prog status a --help":                     "prog status --help -- a",
		"prog status a --none":                     "prog status --none -- a",
		"prog status a --metrics":                  "prog status --metrics -- a",
		"prog a --json":                            "prog --json -- a",
		"prog status a -":                          "prog status -- a -",
		"prog --version":                           "prog --version",
		"prog status a --generate-bash-completion": "prog status a --generate-bash-completion",
	} {
		if got := strings.Join(flagsFirst(app, strings.Fields(line)), " "); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

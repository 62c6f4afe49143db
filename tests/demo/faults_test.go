package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/certhook/certhook/pkg/cli"
)

func TestFaultTable(t *testing.T) {
	exits := []int{cli.ExitDone, cli.ExitFailure, cli.ExitVerdict, cli.ExitUsage, cli.ExitProvider, cli.ExitPropagation, killed}
	seen := map[string]bool{"help": true}
	for _, f := range faults {
		if f.name == "" || seen[f.name] || strings.Trim(f.name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			t.Errorf("name %q", f.name)
		}
		seen[f.name] = true
		if f.inject == nil || f.says == "" {
			t.Errorf("%s: nothing is broken, or nothing is said", f.name)
		}
		for _, text := range []string{f.broken, f.does} {
			if !strings.HasSuffix(text, ".") {
				t.Errorf("%s: %q is no sentence", f.name, text)
			}
		}
		if n := utf8.RuneCountInString(f.broken); n > width-18 {
			t.Errorf("%s: its line in the list is %d characters too long", f.name, n-(width-18))
		}
		if !slices.Contains(exits, f.exit) {
			t.Errorf("%s: auth-hook has no exit code %d", f.name, f.exit)
		}
		if refused := f.exit == cli.ExitVerdict || f.exit == cli.ExitUsage; refused && (f.issued || f.left > 0) {
			t.Errorf("%s: where the hook refuses nothing is written", f.name)
		}
	}
}

func TestChoose(t *testing.T) {
	for _, f := range faults {
		if perform, _ := choose([]string{f.name}, nil, nil); perform == nil {
			t.Errorf("%s cannot be chosen", f.name)
		}
	}
	for _, tt := range []struct {
		args []string
		exit int
	}{{[]string{"help"}, 0}, {[]string{"nonsense"}, cli.ExitUsage}, {[]string{""}, cli.ExitUsage}, {[]string{"help", "me"}, cli.ExitUsage}} {
		var stdout, stderr bytes.Buffer
		perform, exit := choose(tt.args, &stdout, &stderr)
		list, other := &stdout, &stderr
		if tt.exit != 0 {
			list, other = other, list
		}
		if perform != nil || exit != tt.exit || strings.Count(list.String(), "\n  ") != len(faults) || other.Len() > 0 {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q", tt.args, exit, stdout.String(), stderr.String())
		}
	}
}

func TestExitOf(t *testing.T) {
	const cleanup = "time=x level=DEBUG msg=failed program=cleanup-hook pid=2 domain=d error=e hint=\"\" exit=11\n"
	for log, want := range map[string]int{
		"":      killed,
		cleanup: killed,
		cleanup + "time=x level=DEBUG msg=done program=auth-hook pid=1 domain=d outcome=\"1 value added\"\n":           0,
		"time=x level=DEBUG msg=failed program=auth-hook pid=1 domain=d error=\"a exit=3\" hint=h exit=12\n" + cleanup: 12,
	} {
		if got := exitOf([]byte(log)); got != want {
			t.Errorf("%d, want %d of\n%s", got, want, log)
		}
	}
}

func TestWrap(t *testing.T) {
	for text, want := range map[string][]string{
		"":                nil,
		"one":             {"one"},
		"ein zwei drei":   {"ein zwei", "drei"},
		"überlanges wort": {"überlanges", "wort"},
	} {
		if got := wrap(text, 8); !slices.Equal(got, want) {
			t.Errorf("%q: %q", text, got)
		}
	}
}

package conf

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestSplit(t *testing.T) {
	for line, want := range map[string][]string{
		`bind :443 ssl`:            {"bind", ":443", "ssl"},
		"a\tb \v c":                {"a", "b", "c"},
		`a b # c`:                  {"a", "b", ""},
		`a#b`:                      {"a"},
		`a\#b "#" '#'`:             {"a#b", "#", "#"},
		`a\ b "c d"'e f'g`:         {"a b", "c de fg"},
		`a\\b\tc`:                  {`a\b` + "\tc"},
		`"a\\b" 'a\\b'`:            {`a\b`, `a\\b`},
		`a\1\d\`:                   {`a\1\d\`},
		`\x41"\x42"'\x43'`:         {`AB\x43`},
		`a\x00b`:                   {"a"},
		`$X ${X} '$X'`:             {"$X", "${X}", "$X"},
		`"$X" "a${X}b" "\$X"`:      {"y", "ayb", "$X"},
		`"${NONE-a b}" "${X-z}"`:   {"a b", "y"},
		`"${EMPTY-z}" b`:           {"", "b"},
		`"${ONE}" "a${ONE[*]}b"`:   {"two  three\t", "atwo", "three", "b"},
		"a b\rc":                   {"a", "b"},
		`"${.FILE}:${.LINE}"`:      nil,
		`"a`:                       nil,
		`'a`:                       nil,
		`"${X"`:                    nil,
		`"${X[*}"`:                 nil,
		`"$1"`:                     nil,
		`\x4`:                      nil,
		`log-format "%{+Q}o\ %t"`:  {"log-format", "%{+Q}o %t"},
		`bind "fd@${FD}" ssl "" x`: {"bind", "fd@", "ssl", "", "x"},
	} {
		got, ok := split(line, lookup)
		if ok != (want != nil) || ok && !slices.Equal(got, want) {
			t.Errorf("%q: %q, %t, want %q", line, got, ok, want)
		}
	}
}

// pieces are what lines are made of, for the comparison with HAProxy.
var pieces = []string{
	"a", "b", "x", "41", "0", "n", "t", "r", " ", " ", "\t", `"`, `"`, `'`, `\`, `\`, "#", "$", "$", "{", "}", "-", "[*]", "[",
	"$X", "${X}", "${ONE[*]}", "${EMPTY}", "${X", "${X/}", "${X[*", "${NONE-", "${.LINE}", "${.SECTION}", "${ONE}", `\x4f`, `\ `, `\"`, `"${ONE[*]}"`, "\r", "\xe9",
}

// HAProxy says by its directive .notice what it makes of a word, or that there is a second one.
func TestSplitAsHAProxy(t *testing.T) {
	const seed, each = 1, 1500
	rnd := rand.New(rand.NewPCG(seed, 0))
	good, bad := []string{"global"}, []string{}
	for len(good) < each || len(bad) < 200 {
		line := ".notice "
		for range 1 + rnd.IntN(8) {
			line += pieces[rnd.IntN(len(pieces))]
		}
		p := parser{Reader: Reader{Lookup: lookup}, section: section{kind: "global"}}
		if _, ok := split(line, p.value); ok && len(good) < each {
			good = append(good, line)
		} else if !ok && len(bad) < 200 {
			bad = append(bad, line)
		}
	}
	dir := t.TempDir()
	compare(t, dir, good)
	for some := range slices.Chunk(bad, 40) { // HAProxy gives up at the fiftieth fault
		compare(t, dir, append([]string{"global"}, some...))
	}
}

var remark = regexp.MustCompile(`(?m)^\[(NOTICE|WARNING|ALERT)\] +\(\d+\) : (?:config : )?`)

func compare(t *testing.T, dir string, lines []string) {
	t.Helper()
	write(t, dir, map[string]string{"w.cfg": strings.Join(lines, "\n") + "\n"})
	out, _ := check(t, dir, "w.cfg")
	says := map[int]string{}
	begins := remark.FindAllStringIndex(out, -1)
	for i, at := range begins {
		end := len(out)
		if i+1 < len(begins) {
			end = begins[i+1][0]
		}
		var n int
		if _, err := fmt.Sscanf(out[at[1]:end], "parsing [w.cfg:%d]:", &n); err == nil {
			_, text, _ := strings.Cut(out[at[1]:end], "]: ")
			says[n] += text
		}
	}
	p := parser{Reader: Reader{Lookup: lookup}, file: "w.cfg", section: section{kind: "global"}, env: map[string]variable{}}
	for i, line := range lines[1:] {
		p.line = i + 2
		words, ok := split(line, p.value)
		if ok {
			p.statement(words)
		}
		if !strings.HasPrefix(line, ".notice") {
			continue
		}
		got := says[p.line]
		want := "'" + words.at(1) + "'.\n"
		switch {
		case !ok:
			if strings.Contains(got, " quote ") || strings.Contains(got, " brace ") || strings.Contains(got, "hexadecimal") || strings.Contains(got, "first char") || strings.Contains(got, "expansion") {
				continue
			}
			want = "a refusal"
		case words.at(2) != "":
			want = "Unexpected argument '" + words.at(2) + "' for '.notice'. Use quotes if the message should contain spaces.\n"
		}
		if got != want {
			t.Errorf("%q: HAProxy says %q, want %q", line, got, want)
		}
	}
	if len(says) == 0 {
		t.Errorf("HAProxy says nothing of its lines:\n%s", out)
	}
}

func TestEnvironmentAsHAProxy(t *testing.T) {
	const show = `.notice "${X-none} ${EMPTY-none} ${NEW-none} ${FILE-none} $HOME"`
	lines := []string{"global", show}
	for _, line := range []string{
		"presetenv X z", "setenv X 'a b'", "presetenv NEW 1", "presetenv NEW 2", "setenv FILE", `setenv EMPTY ""`, "presetenv EMPTY full", "unsetenv NEW NONE",
		`setenv NEW "<$X>"`, "unsetenv X", "resetenv NEW FILE X", "setenv X back", "presetenv EMPTY again", "resetenv",
	} {
		lines = append(lines, line, show)
	}
	compare(t, t.TempDir(), lines)
}

// The options with an argument are those that HAProxy lists; newer ones than its own may be among ours.
func TestOptionsAsHAProxy(t *testing.T) {
	out := keywords(t)
	found := 0
	for _, m := range regexp.MustCompile(`(?m)^\tbind <addr> (?:ssl )?(\S+)( \+1)?$`).FindAllStringSubmatch(out, -1) {
		found++
		if got := slices.Contains(withArgument, m[1]); got != (m[2] != "") {
			t.Errorf("%s: with an argument %t", m[1], got)
		}
	}
	if found < 40 {
		t.Errorf("HAProxy lists %d options", found)
	}
}

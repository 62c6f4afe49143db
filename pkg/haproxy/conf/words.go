package conf

import (
	"slices"
	"strings"
)

// words are those of a line. Beyond the last there are empty ones, as HAProxy's parsers find them.
type words []string

func (w words) at(i int) string {
	if i < len(w) {
		return w[i]
	}
	return ""
}

// from is the words from one on to the first that is empty, which is where HAProxy ends to look.
func (w words) from(i int) words {
	w = w[min(i, len(w)):]
	if end := slices.Index(w, ""); end >= 0 {
		w = w[:end]
	}
	return w
}

// after is the word behind a keyword.
func (w words) after(keyword string) string {
	if i := slices.Index(w, keyword); i > 0 {
		return w.at(i + 1)
	}
	return ""
}

// quoted is the line as it may stand in a configuration.
func (w words) quoted() string {
	list := make([]string, 0, len(w))
	for _, word := range w.from(0) {
		list = append(list, "'"+strings.ReplaceAll(word, "'", `'\''`)+"'")
	}
	return strings.Join(list, " ")
}

// blanks are what C's isspace takes for white space.
const blanks = " \t\n\v\f\r"

// split takes a line apart into words as HAProxy does (parse_line in src/tools.c). White space parts them, quotes and
// backslashes keep it, and within double quotes variables stand for what lookup says. ok is false for a line that
// HAProxy refuses.
func split(line string, lookup func(name string) (string, bool)) (w words, ok bool) {
	t := splitter{line: line, lookup: lookup}
	if !t.run() {
		return nil, false
	}
	return t.words, true
}

type splitter struct {
	line   string
	at     int
	lookup func(name string) (string, bool)
	words  words
	word   []byte
	single bool // within '
	double bool // within "
}

// next is the octet that is n further, 0 beyond the end.
func (t *splitter) next(n int) byte {
	if t.at+n >= len(t.line) {
		return 0
	}
	return t.line[t.at+n]
}

func (t *splitter) run() bool {
	ok := true
	for ok {
		c := t.next(0)
		switch {
		case c == 0, c == '\n', c == '\r', c == '#' && !t.single && !t.double:
			t.end()
			return !t.single && !t.double
		case c == '"' && !t.single:
			t.double = !t.double
			t.at++
		case c == '\'' && !t.double:
			t.single = !t.single
			t.at++
		case c == '\\' && !t.single:
			ok = t.escape()
		case blank(c) && !t.single && !t.double:
			for blank(t.next(0)) {
				t.at++
			}
			t.end()
		case c == '$' && t.double:
			ok = t.variable()
		default:
			t.word = append(t.word, c)
			t.at++
		}
	}
	return false
}

func blank(c byte) bool { return c != 0 && strings.IndexByte(blanks, c) >= 0 }

func (t *splitter) end() {
	word, _, _ := strings.Cut(string(t.word), "\x00") // \x00 ends C's strings
	t.words, t.word = append(t.words, word), t.word[:0]
}

// escape reads on after a backslash, which stands for itself before all that it has no meaning for.
func (t *splitter) escape() bool {
	c := t.next(1)
	length := 2
	switch c {
	case ' ', '\\', '#', '\'', '"':
	case 't':
		c = '\t'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 'x':
		high, ok := hex(t.next(2))
		low, ok2 := hex(t.next(3))
		if !ok || !ok2 {
			return false
		}
		c, length = high<<4|low, 4
	default:
		if c != '$' || !t.double {
			c, length = '\\', 1
		}
	}
	t.word = append(t.word, c)
	t.at += length
	return true
}

func hex(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

func letter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' }

func nameOctet(c byte) bool { return letter(c) || '0' <= c && c <= '9' }

// variable reads $NAME, ${NAME}, ${NAME-default} and ${NAME[*]}, the value of which is several words.
func (t *splitter) variable() bool {
	t.at++
	braces := t.next(0) == '{'
	if braces {
		t.at++
	}
	if c := t.next(0); !letter(c) && c != '.' {
		return false
	}
	begin := t.at
	for t.at++; nameOctet(t.next(0)); t.at++ {
	}
	name := t.line[begin:t.at]
	value, set := t.lookup(name)
	if !set && name[0] == '.' {
		return false
	}
	several := false
	if braces {
		var rest string
		rest, several = strings.CutPrefix(t.line[t.at:], "[*]")
		missing, after, closed := strings.Cut(rest, "}")
		if !closed || missing != "" && missing[0] != '-' {
			return false
		}
		if !set && missing != "" {
			value = missing[1:]
		}
		t.at = len(t.line) - len(after)
	}
	if !several {
		t.word = append(t.word, value...)
		return true
	}
	for value != "" {
		i := strings.IndexAny(value, blanks)
		if i < 0 {
			t.word = append(t.word, value...)
			break
		}
		t.word = append(t.word, value[:i]...)
		t.end()
		value = strings.TrimLeft(value[i:], blanks)
	}
	return true
}

package config

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// assignment is one KEY=value of a file.
type assignment struct {
	line       int // from 1
	key, value string
}

// syntaxError says why a line is refused; key is "" where the line's key is not fit to be printed.
type syntaxError struct {
	line   int
	key    string
	reason string
}

// maxLine is how long a line may be, in octets. Docker gives up at 64 KiB.
const maxLine = 32 << 10

// parseFile reads KEY=value lines. A value is literal to the end of its line. The same file is often
// handed to docker's --env-file and to systemd's EnvironmentFile= as well, so whatever those two read
// differently from each other or from us is refused rather than guessed at; what they do was read off
// docker/cli's kvfile and systemd's env-file.c. No reason quotes what a line says besides its key:
// it may be a secret.
func parseFile(data []byte) ([]assignment, []syntaxError) {
	text, errs := checkBytes(data)
	var out []assignment
	first := map[string]int{}
	for i, line := range strings.Split(text, "\n") {
		n := i + 1
		key, value, reason := parseLine(line)
		if reason == "" && first[key] != 0 {
			reason = fmt.Sprintf("it is set already in line %d; remove one of the two", first[key])
		}
		switch {
		case reason != "":
			errs = append(errs, syntaxError{n, key, reason})
		case key != "":
			out = append(out, assignment{n, key, value})
		}
		if key != "" && first[key] == 0 {
			first[key] = n
		}
	}
	return out, errs
}

// checkBytes reports, once each, what is wrong with the file as a whole, and returns it without that,
// so that its lines can be checked too.
func checkBytes(data []byte) (string, []syntaxError) {
	var errs []syntaxError
	complain := func(at int, reason string) {
		errs = append(errs, syntaxError{line: 1 + bytes.Count(data[:at], []byte("\n")), reason: reason})
	}
	bom := []byte("\ufeff")
	if bytes.HasPrefix(data, bom) {
		complain(0, "the file begins with a byte order mark, which systemd takes for a part of the first key; save it as UTF-8 without one")
	}
	if i := bytes.IndexByte(data, '\r'); i >= 0 {
		complain(i, `the line has a carriage return, as Windows editors write them; remove them all with: sed -i 's/\r$//' FILE`)
	}
	if !utf8.Valid(data) {
		i := 0
		for i < len(data) {
			r, size := utf8.DecodeRune(data[i:])
			if r == utf8.RuneError && size <= 1 {
				break
			}
			i += size
		}
		complain(i, "the line is not UTF-8, which docker and systemd refuse; save the file as UTF-8")
	}
	text := strings.ToValidUTF8(string(bytes.TrimPrefix(data, bom)), "?")
	return strings.ReplaceAll(text, "\r", ""), errs
}

// parseLine returns the key and the value of a line, both "" for a comment or a blank line, and why
// the line is refused, if it is. The key comes with a reason too where it is known.
func parseLine(line string) (key, value, reason string) {
	const blanks = " \t"
	switch {
	case len(line) > maxLine:
		return "", "", fmt.Sprintf("the line is longer than %d octets", maxLine)
	case strings.Trim(line, blanks) == "":
		return "", "", ""
	case line[0] == '#':
		if strings.Contains(line, "\x00") {
			return "", "", "the comment has a NUL, at which systemd stops to read; remove it"
		}
		if strings.HasSuffix(line, `\`) {
			return "", "", "the comment ends in a backslash, by which systemd takes the next line for a comment too; remove the backslash"
		}
		return "", "", ""
	case line[0] == ';':
		return "", "", "the line begins with a semicolon, which only systemd takes for a comment; begin it with #"
	case strings.Contains(blanks, line[:1]):
		return "", "", "the line begins with white space; begin it with the key"
	}
	name, value, found := strings.Cut(line, "=")
	switch {
	case !found:
		return "", "", `the line has no "=": docker would take the value from its own environment; write KEY=value`
	case strings.HasPrefix(name, "export ") || strings.HasPrefix(name, "export\t"):
		return "", "", `the line begins with "export", which only a shell understands; write KEY=value`
	case strings.Trim(name, blanks) != name && isName(strings.Trim(name, blanks)):
		return strings.Trim(name, blanks), "", `white space stands before the "="; write KEY=value`
	case !isName(name):
		return "", "", "the key is not made of letters, digits and underscores; write KEY=value"
	}
	return name, value, checkValue(value)
}

// isName reports whether s can name an environment variable.
func isName(s string) bool {
	for i, c := range []byte(s) {
		letter := c == '_' || 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// checkValue says why a value would not be the same to everybody, or "".
func checkValue(v string) string {
	switch {
	case v == "":
		return ""
	case v[0] == ' ' || v[0] == '\t':
		return `white space stands after the "=", which systemd drops and docker keeps; write KEY=value`
	case strings.HasSuffix(v, " ") || strings.HasSuffix(v, "\t"):
		return "the value ends in white space, which systemd drops and docker keeps; remove it"
	case v[0] == '"' || v[0] == '\'':
		return "the value begins with a quotation mark, which docker and systemd do not treat alike; write the value without quotes"
	case strings.Contains(v, `\`):
		return "the value has a backslash, which systemd drops and docker keeps; a value with one can only be set in the environment"
	case hasControl(v):
		return "the value has a control character; remove it"
	}
	return ""
}

// hasControl reports whether s has a control character other than a tab.
func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r != '\t' && (r < ' ' || r == 0x7f) })
}

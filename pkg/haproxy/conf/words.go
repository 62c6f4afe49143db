package conf

import (
	"os"
	"strings"
)

// split takes a line apart into words: they are parted by white space, quotes and a backslash keep it, "#" begins a
// comment, and "${NAME}" within double quotes stands for a variable of the environment.
func split(line string) []string {
	var words []string
	var word strings.Builder
	begun := false
	end := func() {
		if begun {
			words = append(words, word.String())
		}
		word.Reset()
		begun = false
	}
	for i := 0; i < len(line); i++ {
		switch c := line[i]; c {
		case ' ', '\t', '\r':
			end()
		case '#':
			end()
			return words
		case '\'':
			begun = true
			stop := strings.IndexByte(line[i+1:], '\'')
			if stop < 0 {
				stop = len(line) - i - 1
			}
			word.WriteString(line[i+1 : i+1+stop])
			i += stop + 1
		case '"':
			begun = true
			i = quoted(line, i+1, &word)
		case '\\':
			begun = true
			if i++; i < len(line) {
				word.WriteByte(line[i])
			}
		default:
			begun = true
			word.WriteByte(c)
		}
	}
	end()
	return words
}

// quoted reads on within double quotes and returns where they end.
func quoted(line string, i int, word *strings.Builder) int {
	for ; i < len(line) && line[i] != '"'; i++ {
		switch {
		case line[i] == '\\' && i+1 < len(line) && strings.IndexByte(`"\$ #'`, line[i+1]) >= 0:
			i++
			word.WriteByte(line[i])
		case line[i] == '$' && i+1 < len(line):
			name, length := variable(line[i+1:])
			if length == 0 {
				word.WriteByte('$')
				continue
			}
			word.WriteString(os.Getenv(name))
			i += length
		default:
			word.WriteByte(line[i])
		}
	}
	return i
}

// variable reads NAME, {NAME} or {NAME-default}, and says how long that is.
func variable(s string) (name string, length int) {
	if strings.HasPrefix(s, "{") {
		end := strings.IndexByte(s, '}')
		if end < 0 {
			return "", 0
		}
		name, _, _ = strings.Cut(s[1:end], "-")
		return name, end + 1
	}
	for length < len(s) && (s[length] == '_' || '0' <= s[length] && s[length] <= '9' || 'A' <= s[length] && s[length] <= 'Z' || 'a' <= s[length] && s[length] <= 'z') {
		length++
	}
	return s[:length], length
}

package certbot

import (
	"errors"
	"fmt"
	"strings"
)

// section holds the values of a section of a renewal configuration. A single value is a list of one.
type section map[string][]string

// text returns a single value. Certbot writes None for what is not set.
func (s section) text(key string) string {
	value := strings.Join(s[key], ", ")
	if value == "None" {
		return ""
	}
	return value
}

// parseConf reads a renewal configuration, which is in the format of Python's ConfigObj: "key = value" lines in [sections], values in quotes where they would be
// taken for something else, lists with commas, comments from "#" on. Sections in sections are left out, and
// so is interpolation, which certbot's values are not written for. Like certbot it refuses the whole file
// if one line is wrong; the error has the line's number.
func parseConf(text string) (map[string]section, error) {
	conf := map[string]section{}
	current := section{}
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		number, line := i+1, strings.TrimLeft(strings.TrimSuffix(lines[i], "\r"), " \t")
		if line == "" || line[0] == '#' {
			continue
		}
		if line[0] == '[' {
			name, depth, err := parseMarker(line)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", number, err)
			}
			current = section{}
			if depth == 1 {
				conf[name] = current
			}
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			return nil, fmt.Errorf("line %d is neither a section nor a setting", number)
		}
		value = strings.TrimLeft(value, " \t")
		if quote := opening(value, `'''`, `"""`); quote != "" {
			// The only values that may go on in the next line.
			parts := []string{value}
			for last := value[len(quote):]; closing(last, quote, ends) < 0 && i+1 < len(lines); i++ {
				last = strings.TrimSuffix(lines[i+1], "\r")
				parts = append(parts, last)
			}
			value = strings.Join(parts, "\n")
		}
		items, err := parseValue(value)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		current[strings.Trim(strings.TrimSpace(key), `"'`)] = items
	}
	return conf, nil
}

// parseMarker reads "[name]" or "[[name]]", whose depths are 1 and 2.
func parseMarker(line string) (name string, depth int, err error) {
	name = strings.TrimLeft(line, "[")
	depth = len(line) - len(name)
	name, rest, ok := strings.Cut(name, strings.Repeat("]", depth))
	if !ok || !ends(rest) {
		return "", 0, errors.New("the section's brackets do not close")
	}
	return strings.Trim(strings.TrimSpace(name), `"'`), depth, nil
}

// parseValue reads a value, or the items of a list.
func parseValue(v string) ([]string, error) {
	if quote := opening(v, `'''`, `"""`); quote != "" {
		value, _, ok := unquote(v, quote, ends)
		if !ok {
			return nil, errors.New("the quotes do not close")
		}
		return []string{value}, nil
	}
	if ends(v) {
		return []string{""}, nil
	}
	if rest, empty := strings.CutPrefix(v, ","); empty && ends(rest) {
		return nil, nil // a list of nothing
	}
	var items []string
	for !ends(v) {
		v = strings.TrimSpace(v)
		var item string
		if quote := opening(v, `'`, `"`); quote != "" {
			var ok bool
			item, v, ok = unquote(v, quote, func(rest string) bool { return ends(rest) || strings.HasPrefix(strings.TrimSpace(rest), ",") })
			if !ok {
				return nil, errors.New("the quotes do not close")
			}
		} else {
			end := strings.IndexAny(v, ",#")
			if end < 0 {
				end = len(v)
			}
			item, v = strings.TrimSpace(v[:end]), v[end:]
			if item == "" {
				return nil, errors.New("the list has an empty item")
			}
		}
		items = append(items, item)
		v = strings.TrimPrefix(strings.TrimSpace(v), ",")
	}
	return items, nil
}

// opening returns that of the quotes which v begins with, or "".
func opening(v string, quotes ...string) string {
	for _, q := range quotes {
		if strings.HasPrefix(v, q) {
			return q
		}
	}
	return ""
}

// unquote takes the quotes off v's beginning. They close where what comes after them fits: a quote in
// between is part of the value.
func unquote(v, quote string, fits func(rest string) bool) (value, rest string, ok bool) {
	v = v[len(quote):]
	end := closing(v, quote, fits)
	if end < 0 {
		return "", "", false
	}
	return v[:end], v[end+len(quote):], true
}

// closing finds the quotes that close, or returns -1.
func closing(v, quote string, fits func(rest string) bool) int {
	for end := 0; end+len(quote) <= len(v); end++ {
		if strings.HasPrefix(v[end:], quote) && fits(v[end+len(quote):]) {
			return end
		}
	}
	return -1
}

// ends reports whether nothing but a comment follows.
func ends(rest string) bool {
	rest = strings.TrimSpace(rest)
	return rest == "" || rest[0] == '#'
}

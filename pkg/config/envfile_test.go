package config

import (
	"maps"
	"strings"
	"testing"
	"unicode"
)

func TestParseFile(t *testing.T) {
	const file = "# comment with = and \"quotes\"\n\n \t\nA=\nB=1\n_c2=a b\tc\nD=x=y=#z # literal \"too\" 'it' $HOME `id` %n\nE=last"
	got, errs := parseFile([]byte(file))
	if len(errs) > 0 {
		t.Fatalf("errors: %v", errs)
	}
	want := []assignment{
		{4, "A", ""},
		{5, "B", "1"},
		{6, "_c2", "a b\tc"},
		{7, "D", "x=y=#z # literal \"too\" 'it' $HOME `id` %n"},
		{8, "E", "last"},
	}
	if len(got) != len(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %+v, want %+v", got[i], want[i])
		}
	}
}

func TestParseFileGoesOnAfterAnError(t *testing.T) {
	got, errs := parseFile([]byte("A='1'\nB=2\nnonsense\nC=3\n"))
	if len(errs) != 2 || errs[0].line != 1 || errs[0].key != "A" || errs[1].line != 3 || errs[1].key != "" {
		t.Errorf("errors %+v, want one for A in line 1 and one in line 3", errs)
	}
	if len(got) != 2 || got[0].key != "B" || got[1].key != "C" {
		t.Errorf("assignments %+v, want B and C", got)
	}
}

func TestParseFileRefusesLongLines(t *testing.T) {
	for _, line := range []string{"A=" + strings.Repeat("x", maxLine), "#" + strings.Repeat("x", maxLine), strings.Repeat(" ", maxLine+1)} {
		if _, errs := parseFile([]byte(line)); len(errs) != 1 {
			t.Errorf("%.5q… of %d octets: %d errors, want 1", line, len(line), len(errs))
		}
	}
}

// FuzzParseFile holds the parser to its promise: what it accepts is the same to docker and to systemd.
func FuzzParseFile(f *testing.F) {
	for _, seed := range []string{
		"A=1\n", "A=1\r\n", "\ufeffA=1", "A=\"1\"", "A='1", "A=1\\\nB=2", "# c\\\nA=1", ";A=1", " A=1", "A =1", "A= 1", "A=1 ",
		"export A=1", "A", "=1", "A=1\nA=2", "A=\x00", "#\x00\nA=1", "A=\xff", "A=a\"b\"", "\u00a0A=1", "A=1\u00a0", "\v", "A=1 # no comment", " # c",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		assignments, errs := parseFile(data)
		lines := strings.Count(string(data), "\n") + 1
		for _, e := range errs {
			if e.line < 1 || e.line > lines || e.reason == "" {
				t.Errorf("error %+v in a file of %d lines", e, lines)
			}
		}
		ours := map[string]string{}
		for _, a := range assignments {
			if _, twice := ours[a.key]; twice {
				t.Errorf("%s is assigned twice", a.key)
			}
			ours[a.key] = a.value
		}
		if len(errs) > 0 {
			return
		}
		if docker := asDocker(string(data)); !maps.Equal(ours, docker) {
			t.Errorf("%q: we read %q, docker %q", data, ours, docker)
		}
		if systemd := asSystemd(string(data)); !maps.Equal(ours, systemd) {
			t.Errorf("%q: we read %q, systemd %q", data, ours, systemd)
		}
	})
}

// asDocker reads a file as docker's --env-file does, errors aside.
func asDocker(data string) map[string]string {
	values := map[string]string{}
	for line := range strings.SplitSeq(strings.TrimPrefix(data, "\ufeff"), "\n") {
		line = strings.TrimLeftFunc(strings.TrimSuffix(line, "\r"), unicode.IsSpace)
		if line == "" || line[0] == '#' {
			continue
		}
		key, value, found := strings.Cut(line, "=")
		if !found {
			value = "from docker's own environment"
		}
		for _, quote := range []string{`"`, `'`} {
			if len(value) > 1 && strings.HasPrefix(value, quote) && strings.HasSuffix(value, quote) {
				value = value[1 : len(value)-1]
				break
			}
		}
		values[key] = value
	}
	return values
}

// asSystemd reads a file as EnvironmentFile= of systemd 252 does, for which a backslash at the end of a
// comment continues it; errors aside.
func asSystemd(data string) map[string]string {
	const blank, newline = " \t\n\r", "\n\r"
	values := map[string]string{}
	data, _, _ = strings.Cut(data, "\x00")
	next := func() (c byte) { c, data = data[0], data[1:]; return c }
	for {
		data = strings.TrimLeft(data, blank)
		if data == "" {
			return values
		}
		if strings.IndexByte("#;", data[0]) >= 0 {
			for data != "" && strings.IndexByte(newline, data[0]) < 0 {
				if next() == '\\' && data != "" {
					next()
				}
			}
			continue
		}
		end := strings.IndexAny(data, "="+newline)
		if end < 0 {
			return values
		}
		key := strings.TrimRight(data[:end], blank)
		assigned := data[end] == '='
		data = data[end+1:]
		if !assigned {
			continue
		}
		var value []byte
		kept := 0 // octets of value that are not white space at its end
		for data != "" && strings.IndexByte(newline, data[0]) < 0 {
			c := next()
			switch {
			case c == '\\' && data != "":
				if c = next(); c != '\n' && c != '\r' {
					value = append(value, c)
				}
				kept = len(value)
			case (c == '"' || c == '\'') && len(value) == 0:
				for data != "" && data[0] != c {
					value = append(value, next())
				}
				if data != "" {
					next()
				}
				kept = len(value)
			case strings.IndexByte(blank, c) >= 0:
				if len(value) > 0 {
					value = append(value, c)
				}
			default:
				value = append(value, c)
				kept = len(value)
			}
		}
		values[key] = string(value[:kept])
	}
}

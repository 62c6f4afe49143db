package conf

import (
	"os"
	"strings"
)

// list reads a crt-list (crtlist_parse_file in src/ssl_crtlist.c): on a line a certificate, options in brackets, and
// the names that it is for.
func (p *parser) list(name string) ([]Listed, error) {
	path := absolute(p.dir, name)
	if lines, ok := p.lists[path]; ok {
		return lines, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var lines []Listed
	for line := range strings.SplitSeq(string(text), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		line, rest, bracket := strings.Cut(line, "[")
		names := fields(line)
		if bracket && len(names) > 0 { // what stands before the bracket but the certificate is lost
			_, rest, _ = strings.Cut(rest, "]")
			names = append(names[:1], fields(rest)...)
		}
		if len(names) > 0 {
			lines = append(lines, Listed{List: name, Cert: p.below(names[0]), Filters: names[1:]})
		}
	}
	p.lists[path] = lines
	return lines, nil
}

func fields(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r < 128 && blank(byte(r)) })
}

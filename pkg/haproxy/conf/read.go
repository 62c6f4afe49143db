package conf

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/certhook/certhook/pkg/fault"
)

// Reader reads as a certain HAProxy does.
type Reader struct {
	Dir    string                           // HAProxy's working directory; "" for ours
	Lookup func(name string) (string, bool) // HAProxy's environment, never ours; nil for one in which nothing is set
}

// Read reads files, and of folders the files *.cfg in the order of their names, as HAProxy's -f does. The error, of
// kind Usage, means that one cannot be read.
func (r Reader) Read(paths []string) (Config, error) {
	p := parser{Reader: r, c: Config{Extra: extra}, env: map[string]variable{}, defaults: map[string]bool{}, lists: map[string][]Listed{}}
	if p.Lookup == nil {
		p.Lookup = func(string) (string, bool) { return "", false }
	}
	for _, path := range paths {
		files, err := r.expand(path)
		if err != nil {
			return Config{}, unreadable(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(absolute(r.Dir, file))
			if err != nil {
				return Config{}, unreadable(err)
			}
			p.read(file, string(text))
		}
	}
	return p.c, nil
}

func unreadable(err error) error {
	return fault.Errorf(fault.Usage, "read HAProxy's configuration: %w", err).
		WithHint("set HAPROXY_CONFIG to the file that HAProxy is started with, and run it as a user that may read it")
}

// expand lists what an argument of -f stands for (cfgfiles_expand_directories in src/haproxy.c).
func (r Reader) expand(path string) ([]string, error) {
	info, err := os.Stat(absolute(r.Dir, path))
	if err != nil || !info.IsDir() {
		return []string{path}, err
	}
	entries, err := os.ReadDir(absolute(r.Dir, path)) // by name
	var files []string
	for _, e := range entries {
		name := e.Name()
		if strings.HasPrefix(name, ".") || strings.Index(name, ".cfg") != len(name)-len(".cfg") {
			continue
		}
		info, err := os.Stat(filepath.Join(absolute(r.Dir, path), name))
		if err != nil {
			return nil, err
		}
		if info.Mode().IsRegular() {
			files = append(files, path+"/"+name)
		}
	}
	return files, err
}

// parser holds what a configuration has said so far.
type parser struct {
	Reader
	c          Config
	env        map[string]variable // what setenv and its kin have changed
	cleared    bool                // resetenv has taken away all that is not in env
	unixPrefix string
	mode       string // of default-path
	origin     string // folder that default-path names
	defaults   map[string]bool
	latest     string // name of the defaults section that was read last
	lists      map[string][]Listed

	file    string
	line    int
	dir     string // where relative paths lead from
	depth   int    // of .if
	section section
}

// section is where the parser stands. What a section says of all its binds may follow them, so that they are looked
// at when it ends.
type section struct {
	kind, name string
	binds      []bindLine
	common     []string // options for all its binds: default-bind's of peers, and the certificates of ssl-f-use
	proxied    bool     // tcp-request connection expect-proxy
	disabled   bool
}

// The sections of HAProxy 2.4 to 3.5.
var sections = []string{
	"acme", "backend", "cache", "crt-store", "defaults", "fcgi-app", "frontend", "global", "healthcheck", "http-errors",
	"listen", "log-forward", "log-profile", "mailers", "namespace_list", "peers", "program", "resolvers", "ring",
	"traces", "userlist",
}

func (p *parser) read(file, text string) {
	p.file, p.depth, p.section = file, 0, section{}
	p.chdir()
	for n, line := range strings.Split(text, "\n") {
		p.line = n + 1
		if words, ok := split(strings.TrimLeft(line, blanks), p.value); ok && words.at(0) != "" {
			p.statement(words)
		}
	}
	p.end()
}

func (p *parser) statement(line words) {
	word := line.at(0)
	switch {
	case word == ".if":
		p.depth++
	case word == ".endif":
		p.depth = max(0, p.depth-1)
	case strings.HasPrefix(word, "."): // .elif, .else and messages
	case slices.Contains(sections, word):
		p.end()
		p.begin(line)
	case p.section.kind == "":
	case p.section.kind == "global":
		p.global(line)
	case word == "bind":
		p.section.binds = append(p.section.binds, bindLine{p.file, p.line, line.at(1), line.from(2), p.depth > 0})
	case word == "default-bind":
		p.section.common = append(p.section.common, line.from(1)...)
	case word == "ssl-f-use": // since 3.2
		for option, argument := range options(line.from(1)) {
			if option == "crt" {
				p.section.common = append(p.section.common, option, argument)
			}
		}
	case word == "disabled" && p.depth == 0:
		p.section.disabled = true
	case word == "enabled":
		p.section.disabled = false
	case word == "tcp-request" && line.at(1) == "connection" && line.at(2) == "expect-proxy" && line.at(4) == "":
		p.section.proxied = true // under a condition it depends on who connects
	}
}

// begin enters a section. A proxy is disabled where the defaults it comes from are.
func (p *parser) begin(line words) {
	p.section = section{kind: line.at(0), name: line.at(1)}
	switch p.section.kind {
	case "frontend", "listen":
		p.section.disabled = p.defaults[cmp.Or(line.after("from"), p.latest)]
	case "defaults":
		if name := line.after("from"); name != "" {
			p.section.disabled = p.defaults[name]
		}
	}
}

// end leaves a section.
func (p *parser) end() {
	s := p.section
	p.section = section{}
	if s.kind == "defaults" {
		p.latest = s.name
		p.defaults[s.name] = s.disabled
		return
	}
	if s.kind == "peers" && len(s.binds) == 0 && len(s.common) > 0 {
		// Its listener is at the address of the peer that is this machine, by a name that is not in the configuration.
		s.binds = []bindLine{{file: p.file, line: p.line}}
	}
	for _, line := range s.binds {
		if b, ok := p.bind(s, line); ok {
			p.c.Binds = append(p.c.Binds, b)
		}
	}
}

// chdir goes where relative paths of the current file lead from (cfg_apply_default_path in src/cfgparse.c).
func (p *parser) chdir() {
	folder := p.file[:strings.LastIndexByte(p.file, '/')+1]
	switch p.mode {
	case "config":
		p.dir = absolute(p.Dir, folder)
	case "parent":
		p.dir = absolute(p.Dir, folder+"..")
	case "origin":
		p.dir = absolute(p.Dir, p.origin)
	default:
		p.dir = p.Dir
	}
}

// Package layers holds the import graph to one direction: commands import use cases, those the domain,
// the domain its leaves, and never the other way round.
package layers

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/certhook/certhook/"

// layer is where a package stands.
type layer string

const (
	base    layer = "base"     // names and kinds of failure; anybody may use them
	leaf    layer = "leaf"     // one question to somebody outside
	domain  layer = "domain"   // one matter each
	useCase layer = "use case" // what a command does, without its surroundings
	edge    layer = "edge"     // settings and the command line
	command layer = "command"
	test    layer = "test" // never part of a product binary
)

// standing says where each package stands: the first pattern (path.Match, below the module) that fits. A
// package that none fits fails the test: say here where it belongs.
var standing = []struct {
	pattern string
	layer   layer
}{
	{"pkg/fault", base},
	{"pkg/dnsname", base},

	{"pkg/resolver", leaf},
	{"pkg/authority", leaf},

	{"pkg/delegation", domain},
	{"pkg/propagation", domain},
	{"pkg/caa", domain},
	{"pkg/persist", domain},
	{"pkg/journal", domain},
	{"pkg/certbot", domain},
	{"pkg/notify", domain},
	{"pkg/bundle", domain},
	{"pkg/haproxy/*", domain},
	{"pkg/provider", domain},
	{"pkg/provider/providertest", test},
	{"pkg/provider/*", domain},

	{"pkg/challenge", useCase},
	{"pkg/explain", useCase},
	{"pkg/guide", useCase},
	{"pkg/haproxy", useCase},
	{"pkg/issuance", useCase},

	{"pkg/config", edge},
	{"pkg/cli", edge},

	{"cmd/internal/man", test},
	{"cmd/internal/*", command},
	{"cmd/*", command},

	{"tests/*", test},
}

// mayImport lists the layers that each layer may import. Use cases do not know each other; only commands
// know the edge. Tests may import anything.
var mayImport = map[layer][]layer{
	base:    {base},
	leaf:    {base, leaf},
	domain:  {base, leaf, domain},
	useCase: {base, leaf, domain},
	edge:    {base, leaf},
	command: {base, leaf, domain, useCase, edge, command},
	test:    {base, leaf, domain, useCase, edge, command, test},
}

// confined lists packages from outside, by prefix, and who of the product may import them.
var confined = []struct {
	prefix string
	by     []string // patterns as in standing
}{
	{"github.com/urfave/cli", []string{"pkg/cli", "cmd/*", "cmd/internal/*"}},
	{"testing", nil},
	{"net/http/httptest", nil},
	{"github.com/rogpeppe/go-internal", nil},
	{"github.com/letsencrypt/pebble", nil},
}

// unreachable lists what a package must not reach over any number of imports.
var unreachable = []struct{ from, to, why string }{
	{"cmd/persist-issue", "pkg/provider", "it must not be built with a way to use a DNS credential"},
}

// graph maps each package of the module to what its product code imports. Paths within the module are
// relative to it, with a leading "./".
type graph map[string][]string

func TestImports(t *testing.T) {
	g := readGraph(t)
	if len(g) == 0 {
		t.Fatal("go list names no package")
	}
	for _, complaint := range check(g) {
		t.Error(complaint)
	}
}

// TestPersistIssueHoldsNoCredential looks at all that persist-issue is built of, libraries included.
func TestPersistIssueHoldsNoCredential(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "./cmd/persist-issue")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for pkg := range strings.Lines(string(out)) {
		for _, forbidden := range []string{module + "pkg/provider", module + "pkg/challenge", "github.com/libdns/"} {
			if strings.HasPrefix(pkg, forbidden) {
				t.Errorf("persist-issue is built with %s: it must have no way to use a DNS credential", strings.TrimSpace(pkg))
			}
		}
	}
}

func readGraph(t *testing.T) graph {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-json=ImportPath,Imports", "./...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			t.Fatalf("go list: %v\n%s", err, exit.Stderr)
		}
		t.Fatalf("go list: %v", err)
	}
	g := graph{}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return g
		} else if err != nil {
			t.Fatal(err)
		}
		imports := []string{}
		for _, i := range p.Imports {
			imports = append(imports, relative(i))
		}
		g[relative(p.ImportPath)] = imports
	}
}

func relative(importPath string) string {
	if within, ok := strings.CutPrefix(importPath, module); ok {
		return "./" + within
	}
	return importPath
}

// check returns a complaint for every package without a place and every arrow that must not be.
func check(g graph) []string {
	var complaints []string
	complain := func(format string, args ...any) { complaints = append(complaints, fmt.Sprintf(format, args...)) }
	for _, pkg := range slices.Sorted(maps.Keys(g)) {
		from, ok := layerOf(pkg)
		if !ok {
			complain("%s is in no layer: say in tests/layers where it belongs", pkg)
			continue
		}
		for _, imported := range g[pkg] {
			if to, ok := layerOf(imported); ok && !slices.Contains(mayImport[from], to) {
				complain("%s (%s) imports %s (%s)", pkg, from, imported, to)
			}
			if from == test {
				continue
			}
			for _, c := range confined {
				if (imported == c.prefix || strings.HasPrefix(imported, c.prefix+"/")) && !matches(pkg, c.by) {
					complain("%s imports %s, which is for %s only", pkg, imported, allowed(c.by))
				}
			}
		}
	}
	for _, u := range unreachable {
		if way := find(g, "./"+u.from, "./"+u.to); way != nil {
			complain("%s reaches %s: %s", u.from, u.to, u.why+" ("+strings.Join(way, " → ")+")")
		}
	}
	return complaints
}

func layerOf(pkg string) (layer, bool) {
	for _, s := range standing {
		if matches(pkg, []string{s.pattern}) {
			return s.layer, true
		}
	}
	return "", false
}

func matches(pkg string, patterns []string) bool {
	within, ok := strings.CutPrefix(pkg, "./")
	return ok && slices.ContainsFunc(patterns, func(p string) bool {
		match, err := path.Match(p, within)
		return match && err == nil
	})
}

func allowed(by []string) string {
	if by == nil {
		return "tests"
	}
	return strings.Join(by, ", ")
}

// find returns a way from a package to another or to a package below that, or nil.
func find(g graph, from, to string) []string {
	seen := map[string]bool{from: true}
	for ways := [][]string{{from}}; len(ways) > 0; ways = ways[1:] {
		way := ways[0]
		for _, next := range g[way[len(way)-1]] {
			if seen[next] {
				continue
			}
			seen[next] = true
			longer := append(slices.Clone(way), next)
			if next == to || strings.HasPrefix(next, to+"/") {
				return longer
			}
			ways = append(ways, longer)
		}
	}
	return nil
}

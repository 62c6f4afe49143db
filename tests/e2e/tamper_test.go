package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/certhook/certhook/tests/cloudflaretest"
	"github.com/certhook/certhook/tests/lab"
)

// What the journal says is not enough to delete a record: a file that is not wholly ours, or that names what we
// would never have written, is left alone and complained about, by the cleanup of the run itself, by other runs
// and by an operator's sweep. The token could delete everything.
func TestTamperedJournalDeletesNothing(t *testing.T) {
	j := newTampered(t)
	entry := func(key string, v any) func(t *testing.T) {
		return func(t *testing.T) { j.setEntry(t, key, v) }
	}
	chown := func(path *string) func(t *testing.T) {
		return func(t *testing.T) { must(t, os.Chown(*path, 65534, 65534)) }
	}
	chmod := func(path *string, mode os.FileMode) func(t *testing.T) {
		return func(t *testing.T) { must(t, os.Chmod(*path, mode)) }
	}
	link := func(path *string) func(t *testing.T) {
		return func(t *testing.T) {
			elsewhere := lab.StateDir + "-elsewhere"
			must(t, os.Rename(*path, elsewhere))
			must(t, os.Symlink(elsewhere, *path))
		}
	}
	zone := func(name string) map[string]string {
		return map[string]string{"Name": name, "ID": cloudflaretest.ZoneID(name)}
	}
	for _, tt := range []struct {
		name   string
		tamper func(*testing.T)
		says   string
		whole  bool // the journal as a whole cannot be used, by other runs neither
	}{
		{"cut off", func(t *testing.T) { must(t, os.Truncate(j.file, 300)) }, "unexpected EOF", false},
		{"empty", func(t *testing.T) { must(t, os.Truncate(j.file, 0)) }, "EOF", false},
		{"file of another user", chown(&j.file), "belongs to user 65534", false},
		{"file that a group may write", chmod(&j.file, 0o660), "may be written by others", false},
		{"file behind a link", link(&j.file), "not a regular file", false},
		{"record in production", entry("name", precious[lab.ProductionZone]), "does not lie in the zone", false},
		{"record of the zone above", entry("name", precious[lab.ParentZone]), "does not lie in the zone", false},
		{"record in a zone that ends alike", entry("name", precious[lab.LookalikeZone]), "does not lie in the zone", false},
		{"record that is the alias zone", entry("name", lab.AliasZone), "no alias zone", false},
		{"record and zone in production", func(t *testing.T) {
			j.setEntry(t, "name", precious[lab.ProductionZone])
			j.setEntry(t, "zone", zone(lab.ProductionZone))
		}, "no alias zone", false},
		{"zone in production", entry("zone", zone(lab.ProductionZone)), "does not lie in the zone", false},
		{"value of another kind", entry("value", foreign), "not a dns-01 value", false},
		{"another provider", entry("provider", "rfc2136"), "rfc2136", false},
		{"unknown state", entry("state", "gone"), "no state that is known", false},
		{"state directory behind a link", link(&j.state), "symbolic links are not followed", true},
		{"state directory of another user", chown(&j.state), "belongs to user 65534", true},
		{"state directory that all may write", chmod(&j.state, 0o777), "may be written by others", true},
		{"journal behind a link", link(&j.journal), "symbolic links are not followed", true},
		{"journal of another user", chown(&j.journal), "belongs to user 65534", true},
	} {
		t.Run(tt.name, func(t *testing.T) { j.play(t, tt.tamper, tt.says, tt.whole) })
	}
	if calls := j.API.OutsideZone(lab.AliasZone); len(calls) > 0 {
		t.Errorf("outside the alias zone: %v", calls)
	}
}

// precious are records of others, one in each zone, with values that could be ours.
var precious = map[string]string{
	lab.ProductionZone: "_acme-challenge.precious." + lab.ProductionZone,
	lab.ParentZone:     "_acme-challenge.precious." + lab.ParentZone,
	lab.LookalikeZone:  "_acme-challenge.precious." + lab.LookalikeZone,
	lab.AliasZone:      lab.AliasZone,
}

// tampered is a lab with one challenge whose journal gets tampered with.
type tampered struct {
	*lab.Lab
	call                 hookCall
	state, journal, file string
}

func newTampered(t *testing.T) *tampered {
	t.Helper()
	j := &tampered{
		Lab: lab.New(t, lab.Options{}), call: single("svc.example.com", value("ours")),
		state: lab.StateDir, journal: lab.StateDir + "/journal",
	}
	j.API.AddToken(cloudflaretest.Token{Secret: lab.Token, AllZones: true, ZoneRead: true, DNSEdit: true})
	j.Delegate("svc.example.com", later)
	for zone, name := range precious {
		j.API.Seed(zone, "TXT", name, j.call.value)
	}
	j.API.Seed(lab.AliasZone, "TXT", lab.Target("svc.example.com", lab.AliasZone), foreign)
	return j
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// setEntry changes one field of the only entry.
func (j *tampered) setEntry(t *testing.T, key string, v any) {
	t.Helper()
	raw, err := os.ReadFile(j.file)
	must(t, err)
	var record map[string]any
	must(t, json.Unmarshal(raw, &record))
	entry := record["entries"].([]any)[0].(map[string]any)
	if _, ok := entry[key]; !ok {
		t.Fatalf("an entry has no %q: %s", key, raw)
	}
	entry[key] = v
	raw, err = json.Marshal(record)
	must(t, err)
	must(t, os.WriteFile(j.file, raw, 0o600))
}

// play has a value written, its journal tampered with, and everybody try to remove it; then, with the journal
// as it was, it is removed.
func (j *tampered) play(t *testing.T, tamper func(*testing.T), says string, whole bool) {
	before := j.everything()
	run := newCaller(t)
	run.mustHook("auth-hook", j.call)
	files, err := filepath.Glob(j.journal + "/*.json")
	if err != nil || len(files) != 1 {
		t.Fatalf("the journal has %q, %v", files, err)
	}
	j.file = files[0]
	raw, err := os.ReadFile(j.file)
	must(t, err)
	written := j.everything()
	tamper(t)

	refused := func(who string, code int, r lab.Result) {
		t.Helper()
		if r.Code != code || !strings.Contains(r.Stderr, says) || code != 0 && !strings.Contains(r.Stderr, "hint: ") {
			t.Errorf("%s: want exit code %d, the words %q and what to do: %v", who, code, says, r)
		}
		if got := j.everything(); !slices.Equal(got, written) {
			t.Errorf("%s: there is now %q, was %q", who, got, written)
		}
	}
	r, err := run.hook("cleanup-hook", j.call)
	must(t, err)
	refused("the run's own cleanup", 10, r)
	run.kill()
	next := newCaller(t)
	code := 0
	if whole {
		code = 10
	}
	r, err = next.hook("cleanup-hook", single(later, value("later")))
	must(t, err)
	refused("another run", code, r)
	next.end()
	refused("a sweep", 10, j.Run(lab.Hook("cleanup-hook"), "--sweep"))

	j.restore(t, raw)
	if r := j.Run(lab.Hook("cleanup-hook"), "--sweep"); r.Code != 0 || !strings.Contains(r.Stdout, "1 value removed") {
		t.Errorf("a sweep of the journal as it was: %v", r)
	}
	if got := j.everything(); !slices.Equal(got, before) {
		t.Errorf("in the end there is %q, was %q", got, before)
	}
}

// restore makes the journal what it was.
func (j *tampered) restore(t *testing.T, raw []byte) {
	t.Helper()
	for _, path := range []string{j.state, j.journal, j.file} {
		if target, err := os.Readlink(path); err == nil {
			must(t, os.Remove(path))
			must(t, os.Rename(target, path))
		}
	}
	for _, dir := range []string{j.state, j.journal} {
		must(t, os.Chown(dir, 0, 0))
		must(t, os.Chmod(dir, 0o700))
	}
	must(t, os.Remove(j.file))
	must(t, os.WriteFile(j.file, raw, 0o600))
}

// everything lists all TXT records, at the provider and in DNS.
func (j *tampered) everything() []string {
	var all []string
	for _, zone := range lab.Zones() {
		for _, r := range j.API.Records(zone) {
			all = append(all, fmt.Sprintln(r.Name, r.Type, strings.Trim(r.Content, `"`)))
		}
		for name, values := range j.World.AllTXT(zone) {
			slices.Sort(values)
			all = append(all, fmt.Sprintln(name, values))
		}
	}
	slices.Sort(all)
	return all
}

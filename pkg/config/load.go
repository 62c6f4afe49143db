package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/certhook/certhook/pkg/fault"
)

// Load reads and checks the settings. The error joins one [*fault.Error] of kind Usage for each thing
// that is wrong, each saying where, what, and what to write instead. The Settings are never nil: beside
// an error they hold what could be read, good enough to know where the log is.
func Load(opts Options) (*Settings, error) {
	l := &loader{
		opts:    opts,
		env:     environment(opts.Environ),
		s:       &Settings{},
		places:  map[string]string{},
		refused: map[string]bool{},
	}
	l.readSources()
	for _, key := range keys {
		if key.set != nil {
			l.assign(key)
		}
	}
	l.checkUnknown()
	l.checkDelegation()
	if l.opts.Persist {
		l.checkPersist()
	} else {
		l.checkProvider()
	}
	l.checkServer()
	l.checkSetup()
	return l.s, errors.Join(l.problems...)
}

// loader collects what Load finds.
type loader struct {
	opts     Options
	env      map[string]string
	levels   []level
	s        *Settings
	places   map[string]string // where the value of each key that is set comes from, even of a refused one
	refused  map[string]bool   // keys whose value is no good
	problems []error
	unread   bool // there is a file that could not be read: what is missing may stand in it
}

// level is one source of settings.
type level struct {
	name   string // what its entries' places begin with
	values map[string]entry
}

// entry is a value as it was given.
type entry struct {
	value string
	place string // "environment", "command line", "FILE:LINE"
}

// fail notes that something is wrong with a key. what must not quote a secret.
func (l *loader) fail(place, key, format string, args ...any) {
	l.problems = append(l.problems, fault.Errorf(fault.Usage, "%s: %w", l.where(place, key), fmt.Errorf(format, args...)))
}

// warn notes what stops nothing.
func (l *loader) warn(place, key, format string, args ...any) {
	l.s.Warnings = append(l.s.Warnings, fmt.Sprintf("%s: %s", l.where(place, key), fmt.Sprintf(format, args...)))
}

// reads reports whether the program that asks for the settings uses the key.
func (l *loader) reads(key Key) bool {
	switch o := l.opts; {
	case key.set == nil, key.ofProvider && o.Persist:
		return false
	case key.forGuide || key.forApply || key.forPersist:
		return o.Strict || key.forGuide && (o.Guide || o.NeedSetup) || key.forApply && o.Apply || key.forPersist && o.Persist
	}
	return true
}

// where tells the reader what to look at: the flag, or the place and the key.
func (l *loader) where(place, key string) string {
	flag := l.opts.FlagNames[key]
	switch {
	case key == "":
		return place
	case place == commandLine && flag != "":
		return flag
	}
	return place + ": " + key
}

// given reports whether a value for the key was set anywhere, be it a good one or not.
func (l *loader) given(key string) bool { return l.places[key] != "" }

// environment turns os.Environ's form into a map. As in getenv, the first of two wins.
func environment(environ []string) map[string]string {
	env := map[string]string{}
	for _, kv := range environ {
		if k, v, ok := strings.Cut(kv, "="); ok {
			if _, twice := env[k]; !twice {
				env[k] = v
			}
		}
	}
	return env
}

// readSources fills the levels, the strongest first.
func (l *loader) readSources() {
	plain := func(name string, values map[string]string) level {
		lv := level{name, map[string]entry{}}
		for k, v := range values {
			lv.values[k] = entry{v, name}
		}
		return lv
	}
	l.levels = []level{
		plain(commandLine, l.opts.Flags),
		plain("environment", l.env),
		l.readCredentials(),
		l.readFile(),
	}
}

// commandLine is the place of values given as flags.
const commandLine = "command line"

// readCredentials reads the secret keys that systemd (LoadCredential= and the like) handed to us.
func (l *loader) readCredentials() level {
	lv := level{"credentials", map[string]entry{}}
	dir := l.env["CREDENTIALS_DIRECTORY"]
	if !filepath.IsAbs(dir) {
		return lv
	}
	for _, key := range keys {
		if !key.Secret || !l.reads(key) {
			continue
		}
		path := filepath.Join(dir, strings.ToLower(key.Name))
		value, err := readSecret(path)
		switch {
		case errors.Is(err, os.ErrNotExist):
		case err != nil:
			l.places[key.Name] = path
			l.fail(path, key.Name, "%w", err)
		default:
			lv.values[key.Name] = entry{value, path}
		}
	}
	return lv
}

// readFile reads the configuration file.
func (l *loader) readFile() level {
	lv := level{"file", map[string]entry{}}
	path, named := l.opts.File, true
	if path == "" {
		path = l.env["CERTHOOK_CONFIG"]
		if path != "" && !filepath.IsAbs(path) {
			l.unread = true
			l.fail("environment", "CERTHOOK_CONFIG", "%q is not an absolute path", path)
			return lv
		}
	}
	if path == "" {
		path, named = defaultFile, false
	}
	data, info, err := readConfig(path)
	if err != nil {
		if named || !errors.Is(err, os.ErrNotExist) {
			l.unread = true
			l.fail(path, "", "%w", err)
		}
		return lv
	}
	l.s.File = path
	assignments, refused := parseFile(data)
	for _, r := range refused {
		l.places[base(r.key)] = at(path, r.line)
		l.fail(at(path, r.line), printable(r.key), "%s", r.reason)
	}
	holdsSecret := slices.ContainsFunc(refused, func(r syntaxError) bool { return isSecret(r.key) })
	for _, a := range assignments {
		lv.values[a.key] = entry{a.value, at(path, a.line)}
		holdsSecret = holdsSecret || a.value != "" && isSecret(a.key)
	}
	for _, reason := range checkPermissions(path, info, holdsSecret) {
		l.fail(path, "", "%s", reason)
	}
	return lv
}

// defaultFile is DefaultFile but for tests.
var defaultFile = DefaultFile

func at(path string, line int) string { return fmt.Sprintf("%s:%d", path, line) }

// assign finds the value of a key and sets it.
func (l *loader) assign(key Key) {
	if key.Default != "" {
		if err := key.set(l.s, key.Default); err != nil {
			l.fail("default", key.Name, "%w", err)
		}
	}
	if !l.reads(key) {
		return
	}
	for _, lv := range l.levels {
		name, e := l.pick(key, lv)
		if name == "" {
			continue
		}
		l.places[key.Name] = e.place
		if err := l.set(key, name, e); err != nil {
			l.refused[key.Name] = true
			l.fail(e.place, name, "%w", err)
		}
		return
	}
}

// set sets a key from an entry that goes by name.
func (l *loader) set(key Key, name string, e entry) error {
	value := e.value
	if name == key.Name+fileSuffix {
		var err error
		if value, err = l.readNamed(name, e); err != nil {
			return err
		}
	}
	err := errors.New("the value has a control character; remove it")
	if !hasControl(value) {
		err = key.set(l.s, value)
	}
	switch {
	case err != nil && value != e.value:
		return fmt.Errorf("in %q: %w", e.value, err)
	case err != nil && strings.Contains(value, " #"):
		return fmt.Errorf(`%w ("#" begins a comment only at the start of a line)`, err)
	}
	return err
}

// fileSuffix makes the key that names a file with the value of a secret one.
const fileSuffix = "_FILE"

// forms lists the names that a key goes by.
func forms(key Key) []string {
	names := []string{key.Name}
	for _, k := range keys {
		if k.sameAs == key.Name {
			names = append(names, k.Name)
		}
	}
	if key.Secret {
		names = append(names, key.Name+fileSuffix)
	}
	return names
}

// base undoes forms: it returns the key that name is a form of, or else name itself.
func base(name string) string {
	for _, key := range keys {
		if key.sameAs != "" && key.Name == name {
			return key.sameAs
		}
		if key.Secret && key.Name+fileSuffix == name {
			return key.Name
		}
	}
	return name
}

// pick returns the form of the key that the level has a value for. Two at one level are an error,
// since neither is meant more than the other.
func (l *loader) pick(key Key, lv level) (name string, e entry) {
	for _, form := range forms(key) {
		found := lv.values[form]
		switch {
		case found.value == "":
		case name != "":
			l.fail(found.place, form, "%s is set as well (%s); remove one of the two", name, e.place)
		default:
			name, e = form, found
		}
	}
	return name, e
}

// readNamed reads the file that a NAME_FILE entry names.
func (l *loader) readNamed(name string, e entry) (string, error) {
	if !filepath.IsAbs(e.value) && e.place != commandLine {
		return "", errors.New("the path of the file is not absolute")
	}
	value, err := readSecret(e.value)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(e.value); err == nil && info.Mode().Perm()&0o077 != 0 {
		l.warn(e.place, name, "%s can be read or changed by others than its owner (mode %04o); chmod 600 it", e.value, info.Mode().Perm())
	}
	return value, nil
}

package certbot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/certhook/certhook/pkg/fault"
)

// Material is what a lineage holds at one moment.
type Material struct {
	Name  string
	Dir   string // root/live/Name
	Chain []byte // fullchain.pem
	Key   []byte // privkey.pem
}

// liveFiles are the links of a lineage, in the order in which certbot switches them.
var liveFiles = []string{"cert.pem", "privkey.pem", "chain.pem", "fullchain.pem"}

// switchTime is how long certbot may take to switch the links of one lineage.
const switchTime = 5 * time.Second

// LiveNames lists the lineages below root: the folders in root/live. There are none where there is no such
// folder. Errors are of kind Usage.
func LiveNames(root string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(root, "live"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, unreadable(err, "look for lineages: %w", err)
	}
	var names []string
	for _, e := range entries {
		info, err := os.Stat(filepath.Join(root, "live", e.Name()))
		if err == nil && info.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// ReadLive reads a lineage as it is at one moment. Certbot switches its four links one after the other, so that
// what is read between is of two certificates: it is read again until all links lead to the same one before and
// after. Errors are of kind Usage where the files may not be read, and of kind Lineage otherwise.
func ReadLive(ctx context.Context, root, name string) (Material, error) {
	m := Material{Name: name, Dir: filepath.Join(root, "live", name)}
	if bad := strings.IndexFunc(name, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`;<\/"'`, r) }); bad >= 0 || name == "" {
		return m, fault.Errorf(fault.Lineage, "the lineage %q cannot be told to HAProxy by its name", name).
			WithHint("give it another --cert-name, of letters, digits, dots, hyphens and underscores")
	}
	deadline := time.Now().Add(switchTime)
	for {
		before, err := versions(m.Dir)
		if err == nil {
			if m.Chain, err = os.ReadFile(filepath.Join(m.Dir, "fullchain.pem")); err == nil {
				m.Key, err = os.ReadFile(filepath.Join(m.Dir, "privkey.pem"))
			}
		}
		after, err2 := versions(m.Dir)
		switch {
		case err == nil && err2 == nil && before == after:
			return m, nil
		case errors.Is(err, fs.ErrPermission):
			return m, unreadable(err, "read the lineage %q: %w", name, err)
		case time.Now().After(deadline):
			return m, fault.Errorf(fault.Lineage, "read the lineage %q: %w", name, errors.Join(err, err2))
		}
		select {
		case <-ctx.Done():
			return m, fault.Errorf(fault.Lineage, "read the lineage %q: %w", name, errors.Join(err, context.Cause(ctx)))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

var archived = regexp.MustCompile(`^([a-z]+)([0-9]+)\.pem$`)

var errSwitching = errors.New("its links lead to different versions")

// versions tells which version of the lineage is there: the number that all links lead to, or, of plain files, when
// each was written.
func versions(dir string) (string, error) {
	var links, times []string
	for _, file := range liveFiles {
		path := filepath.Join(dir, file)
		info, err := os.Stat(path)
		if err != nil {
			return "", err
		}
		target, err := os.Readlink(path)
		if err != nil { // no link
			times = append(times, info.ModTime().String())
			continue
		}
		m := archived.FindStringSubmatch(filepath.Base(target))
		if m == nil || m[1]+".pem" != file {
			return "", fmt.Errorf("%q leads to %q", path, target)
		}
		links = append(links, m[2])
	}
	if links = slices.Compact(links); len(links) > 1 || len(links) > 0 && len(times) > 0 {
		return "", errSwitching
	}
	return strings.Join(append(links, times...), " "), nil
}

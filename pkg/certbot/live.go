package certbot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/certhook/certhook/pkg/fault"
)

// Material is what a lineage holds at one moment.
type Material struct {
	Name  string
	Dir   string // root/live/Name
	Chain []byte // fullchain.pem
	Key   []byte // privkey.pem
}

// String is the lineage's name, so that no message shows the key.
func (m Material) String() string { return m.Name }

// liveFiles are the links of a lineage, in the order in which certbot switches them.
var liveFiles = []string{"cert.pem", "privkey.pem", "chain.pem", "fullchain.pem"}

const (
	// switchTime is how long certbot may take to switch the links of one lineage: it takes less than a
	// millisecond, unless it is stopped in between.
	switchTime = 2 * time.Second
	switchPoll = 20 * time.Millisecond
)

var (
	errSwitching = errors.New("its links do not lead to one version")
	errPartial   = errors.New("a file of it is not written yet")
)

// LiveNames lists the lineages below root: the folders in root/live that hold one of a lineage's files. There are
// none where there is no root/live. Errors are of kind Usage.
func LiveNames(root string) ([]string, error) {
	dir := filepath.Join(root, "live")
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, unreadable(err, "look for lineages: %w", err)
	}
	var names []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") && holdsLineage(filepath.Join(dir, e.Name())) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// holdsLineage reports whether one of a lineage's files is in a folder, or may be. While certbot switches a link it
// is gone for a moment. The last one goes last, and then the others are there.
func holdsLineage(dir string) bool {
	for _, file := range slices.Backward(liveFiles) {
		if _, err := os.Lstat(filepath.Join(dir, file)); err == nil || errors.Is(err, fs.ErrPermission) {
			return true
		}
	}
	return false
}

// ReadLive reads a lineage as it is at one moment. Certbot switches its four links one after the other, so that
// what is read meanwhile is of two certificates: it is read again until all links lead to one version before and
// after, for a short time and no longer than ctx lasts. Plain files in place of the links are a version too.
// Whether the files hold what they should is not looked at. Errors are of kind Usage where the files may not be
// read, and of kind Lineage otherwise.
func ReadLive(ctx context.Context, root, name string) (Material, error) {
	if err := checkLiveName(name); err != nil {
		return Material{}, err
	}
	m := Material{Name: name, Dir: filepath.Join(root, "live", name)}
	late := time.NewTimer(switchTime)
	defer late.Stop()
	poll := time.NewTicker(switchPoll)
	defer poll.Stop()
	for {
		err := m.read()
		if err == nil {
			return m, nil
		} else if errors.Is(err, fs.ErrPermission) {
			return Material{}, unreadable(err, "read the lineage %q: %w", name, err)
		}
		select {
		case <-poll.C:
			continue
		case <-late.C:
			if errors.Is(err, errPartial) {
				return m, nil // it stays like that, and who takes it apart can tell what is wrong
			}
		case <-ctx.Done():
			err = fmt.Errorf("%w (%w)", err, context.Cause(ctx))
		}
		return Material{}, fault.Errorf(fault.Lineage, "read the lineage %q: %w", name, err).
			WithHint("certbot renew finishes a renewal that was cut short; a lineage of no use any more goes with certbot delete --cert-name %s", name)
	}
}

// checkLiveName refuses what leads out of the folder, and what cannot stand in a command to HAProxy, which knows
// the file by this name: its runtime API has no way to quote.
func checkLiveName(name string) error {
	bad := func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r) || r == utf8.RuneError || strings.ContainsRune(`;<\`, r)
	}
	switch {
	case name == "" || name[0] == '.' || strings.Contains(name, "/"):
		return fault.Errorf(fault.Lineage, "%q is no name of a lineage", name).
			WithHint("certbot certificates lists them")
	case strings.ContainsFunc(name, bad):
		return fault.Errorf(fault.Lineage, "HAProxy cannot be told to load the lineage %q: no command to it can hold such a name", name).
			WithHint("white space, control characters, \";\", \"<\" and \"\\\" mean something to HAProxy: issue the certificate under another --cert-name")
	}
	return nil
}

// read fills in one version of the lineage.
func (m *Material) read() error {
	before, err := look(m.Dir)
	if err != nil {
		return err
	}
	if m.Chain, err = readFile(filepath.Join(m.Dir, "fullchain.pem")); err != nil {
		return err
	}
	if m.Key, err = readFile(filepath.Join(m.Dir, "privkey.pem")); err != nil {
		return err
	}
	after, err := look(m.Dir)
	switch {
	case err != nil:
		return err
	case !before.same(after):
		return errSwitching
	// Of a new lineage certbot makes the links first and then the files.
	case !endsBlock(m.Chain) || !endsBlock(m.Key):
		return errPartial
	}
	return nil
}

func endsBlock(text []byte) bool { return bytes.HasSuffix(bytes.TrimSpace(text), []byte("-----")) }

// version tells one version of a lineage from another.
type version struct {
	leadsTo string // by all links: the folder and the number in it; "" for plain files
	files   []fs.FileInfo
}

// look finds out which version of a lineage is there. It is errSwitching where the links do not agree.
func look(dir string) (version, error) {
	var v version
	for i, file := range liveFiles {
		path := filepath.Join(dir, file)
		to, err := linkTo(path)
		if err != nil {
			return version{}, err
		}
		info, err := os.Stat(path)
		if err != nil {
			return version{}, err
		}
		if i > 0 && to != v.leadsTo {
			return version{}, fmt.Errorf("%w: %s is of %q, %s of %q", errSwitching, liveFiles[i-1], v.leadsTo, file, to)
		}
		v.leadsTo, v.files = to, append(v.files, info)
	}
	return v, nil
}

// linkTo tells where one of the links leads, as "../../archive/NAME/3" for the third version of its file. It is ""
// for a plain file.
func linkTo(path string) (string, error) {
	target, err := os.Readlink(path)
	if errors.Is(err, syscall.EINVAL) {
		return "", nil
	} else if err != nil {
		return "", err
	}
	// cert.pem leads to cert3.pem.
	folder, file := filepath.Split(target)
	number := strings.TrimPrefix(file, strings.TrimSuffix(filepath.Base(path), ".pem"))
	number = strings.TrimSuffix(number, ".pem")
	if _, err := strconv.ParseUint(number, 10, 64); err != nil {
		return "", fmt.Errorf("%q leads to %q, which is no version of it", path, target)
	}
	return folder + number, nil
}

// same reports whether nothing has changed from one look to the next: no file is another one, or written anew.
func (v version) same(w version) bool {
	return slices.EqualFunc(v.files, w.files, func(a, b fs.FileInfo) bool {
		return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime())
	})
}

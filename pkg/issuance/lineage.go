package issuance

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/certhook/certhook/pkg/certbot"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/persist"
)

const (
	lineageVersion = 1
	lineageSuffix  = ".json"
)

// Lineage is a certificate that is renewed here, as renewal/NAME.json keeps it.
type Lineage struct {
	Version   int           `json:"version"`
	Name      string        `json:"name"`
	Names     []string      `json:"names"` // canonical, the first as it was asked for
	Server    string        `json:"server"`
	Account   string        `json:"account"`   // URI of the one that it was last issued to
	Challenge string        `json:"challenge"` // [Method]: no renewal falls back to another
	Draft     persist.Draft `json:"draft"`     // of the records that it was last issued by
	Profile   string        `json:"profile,omitempty"`
	Renewal   *renewalInfo  `json:"renewal_info,omitempty"` // what the CA last said of when to renew it
}

// Lineages lists the names of the lineages.
func (i *Issuer) Lineages() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(i.Root, "renewal"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fault.Errorf(fault.Usage, "look for lineages: %w", err)
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), lineageSuffix); ok && !strings.HasPrefix(name, ".") {
			names = append(names, name)
		}
	}
	return names, nil
}

// errNoLineage means that there is no lineage of that name yet.
var errNoLineage = errors.New("there is no lineage of that name")

// lineage reads what is kept of a lineage.
func (i *Issuer) lineage(name string) (*Lineage, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	path := i.renewalFile(name)
	l := &Lineage{}
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Errorf(fault.Usage, "%q: %w in %q", name, errNoLineage, i.Root).WithHint("persist-issue issue -d NAME makes one")
	}
	if err == nil {
		err = json.Unmarshal(raw, l)
	}
	switch {
	case err != nil:
	case l.Version != lineageVersion:
		err = fmt.Errorf("its format is version %d, this program reads %d", l.Version, lineageVersion)
	case l.Challenge != Method:
		err = fmt.Errorf("its challenge is %q, and persist-issue has no other than %s", l.Challenge, Method)
	case len(l.Names) == 0:
		err = errors.New("it names no domain")
	}
	if err != nil {
		return nil, fault.Errorf(fault.Lineage, "read the lineage %q in %q: %w", name, path, err).
			WithHint("persist-issue issue -d NAME… --name %s writes it anew", name)
	}
	l.Name = name
	return l, nil
}

func (i *Issuer) renewalFile(name string) string {
	return filepath.Join(i.Root, "renewal", name+lineageSuffix)
}

func checkName(name string) error {
	bad := func(r rune) bool {
		return r != '-' && r != '_' && r != '.' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}
	if name == "" || name[0] == '.' || len(name) > 240 || strings.ContainsFunc(name, bad) {
		return fault.Errorf(fault.Usage, "%q is no name of a lineage", name).WithHint("letters, digits, hyphens, underscores and dots make one, and no dot comes first")
	}
	return nil
}

// checkBeside refuses a name that a lineage of certbot's has, too: whoever reads both could not tell which one is meant.
// Nor is anything replaced that we have not made.
func (i *Issuer) checkBeside(name string) error {
	theirs, err := certbot.LiveNames(i.CertbotDir)
	if err != nil {
		return err
	}
	if slices.Contains(theirs, name) {
		return fault.Errorf(fault.Usage, "certbot has a lineage %q in %q, and no two may share a name", name, i.CertbotDir).
			WithHint("give this one another --name, or remove certbot's: certbot delete --cert-name %s", name)
	}
	live := filepath.Join(i.Root, "live", name)
	if info, err := os.Lstat(live); err == nil && info.Mode()&fs.ModeSymlink == 0 {
		return fault.Errorf(fault.Usage, "%q is not what persist-issue makes of a lineage, a link", live).
			WithHint("move it away, or give the lineage another --name")
	}
	return nil
}

func (i *Issuer) saveLineage(l *Lineage) error {
	if _, err := i.makeDir("renewal"); err != nil {
		return err
	}
	raw, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	return replace(i.renewalFile(l.Name), append(raw, '\n'))
}

// install makes a certificate the lineage's. Its files are written to a folder of their own, archive/NAME/N, and live/NAME
// is a link to that folder: replacing the link switches all of them at one instant, so that nobody ever sees half of it.
func (i *Issuer) install(l *Lineage, m material) error {
	if err := i.checkBeside(l.Name); err != nil {
		return err
	}
	if err := i.saveLineage(l); err != nil {
		return err
	}
	i.step("lineage noted")
	archive, err := i.makeDir("archive", l.Name)
	if err != nil {
		return err
	}
	version, err := i.archive(archive, m)
	if err != nil {
		return fault.Errorf(fault.Usage, "write the certificate of %q to %q: %w", l.Name, archive, err)
	}
	i.step("certificate written")
	live, err := i.makeDir("live")
	if err != nil {
		return err
	}
	if err := relink(filepath.Join(live, l.Name), filepath.Join("..", "archive", l.Name, version)); err != nil {
		return fault.Errorf(fault.Usage, "switch the lineage %q to its new certificate, which is in %q: %w", l.Name, filepath.Join(archive, version), err)
	}
	return nil
}

// checkDisk refuses to begin what could not be kept: the CA counts certificates, also those that are lost.
func (i *Issuer) checkDisk(name string) error {
	dir, err := i.makeDir("archive", name)
	if err != nil {
		return err
	}
	made, err := os.MkdirTemp(dir, unfinished)
	if err == nil {
		const room = 64 << 10 // octets: a certificate takes a tenth of it
		err = errors.Join(writeSynced(filepath.Join(made, "room"), make([]byte, room)), os.RemoveAll(made))
	}
	if err != nil {
		return fault.Errorf(fault.Usage, "a certificate could not be kept in %q, so that none is ordered: %w", dir, err)
	}
	return nil
}

// archive writes the files into the next numbered folder and returns its number.
func (i *Issuer) archive(dir string, m material) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	last := uint64(0)
	for _, e := range entries {
		if n, err := strconv.ParseUint(e.Name(), 10, 63); err == nil {
			last = max(last, n)
		} else if strings.HasPrefix(e.Name(), unfinished) {
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return "", err
			}
		}
	}
	number := strconv.FormatUint(last+1, 10)
	made, err := os.MkdirTemp(dir, unfinished) // mode 0700
	if err != nil {
		return "", err
	}
	for name, content := range map[string][]byte{
		"cert.pem": chainPEM(m.chain[0]), "chain.pem": chainPEM(m.chain[1:]...), "fullchain.pem": chainPEM(m.chain...), "privkey.pem": m.key,
	} {
		if err := writeSynced(filepath.Join(made, name), content); err != nil {
			return "", err
		}
	}
	if err := syncDir(made); err != nil {
		return "", err
	}
	i.step("files written")
	if err := os.Rename(made, filepath.Join(dir, number)); err != nil {
		return "", err
	}
	return number, syncDir(dir)
}

// unfinished begins the name of a folder that a killed run has left.
const unfinished = ".new-"

func writeSynced(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Sync(), f.Close())
}

// relink makes path a link to target, at one instant.
func relink(path, target string) error {
	temporary := filepath.Join(filepath.Dir(path), ".new-"+filepath.Base(path))
	if err := os.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(target, temporary); err != nil {
		return err
	}
	if err := os.Rename(temporary, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

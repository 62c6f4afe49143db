package haproxy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/haproxy/master"
)

// A file that HAProxy does not take must never stand in its folder, not even until HAProxy's check of the whole
// configuration has said so: whoever is killed in between leaves a HAProxy that does not start. So HAProxy is shown
// staged files first, in a folder of their own with a configuration that loads them and nothing else.

// trialDir lies in the folder of the certificates, where HAProxy's user can read, and is passed over like every
// dotfile.
func (a *Applier) trialDir() string { return filepath.Join(a.CertDir, ".haproxy-apply") }

// try has HAProxy check the staged files of some lineages, each with what it would load beside it. Of none it tells
// whether such a check is of use. The error is that of [master.Process.Check].
func (a *Applier) try(ctx context.Context, i *instance, states []*State) error {
	a.step("try")
	dir, err := filepath.Abs(a.trialDir())
	if err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return unwritable(dir, err)
	}
	defer os.RemoveAll(dir)
	config := filepath.Join(dir, ".haproxy.cfg")
	err = os.Mkdir(dir, 0o700)
	for _, s := range states {
		name := filepath.Join(dir, filepath.Base(s.File))
		err = errors.Join(err, os.Symlink(filepath.Join("..", filepath.Base(s.staged.temp)), name))
		for _, beside := range i.companions(s.File) {
			err = errors.Join(err, os.Symlink(filepath.Join("..", filepath.Base(beside)), name+filepath.Ext(beside)))
		}
	}
	err = errors.Join(err, os.WriteFile(config, []byte(trialConfig(i.conf.TLS, dir, len(states) > 0)), 0o600),
		os.Chmod(config, 0o644), os.Chmod(dir, 0o755)) // whatever the umask, for HAProxy's user
	if err != nil {
		return unwritable(dir, err)
	}
	p := i.process
	if p == nil {
		p = &master.Process{}
	}
	return p.Check(ctx, []string{config})
}

func trialConfig(global []string, dir string, certs bool) string {
	crt := ""
	if certs {
		crt = " ssl crt '" + strings.ReplaceAll(dir, "'", `'\''`) + "'"
	}
	return fmt.Sprintf("global\n\t%s\ndefaults\n\tmode http\n\ttimeout client 5s\n\ttimeout server 5s\n\ttimeout connect 5s\n"+
		"frontend trial\n\tbind 127.0.0.1:1%s\n\thttp-request return status 200\n", strings.Join(global, "\n\t"), crt)
}

// approve returns those of the lineages whose staged file HAProxy takes; the others get their error. Where HAProxy
// cannot be asked about files alone, all are returned, and its check of the whole configuration has to do.
func (a *Applier) approve(ctx context.Context, i *instance, states []*State) []*State {
	if len(states) == 0 {
		return nil
	}
	err := a.try(ctx, i, states)
	if err == nil {
		return states
	}
	if fault.KindOf(err) == fault.Usage {
		if useless := a.try(ctx, i, nil); useless != nil {
			a.Log.Info("HAProxy cannot check the files by themselves", "error", useless)
			return states
		}
	}
	return a.divide(ctx, i, states, err)
}

// divide is approve for files that HAProxy does not take together.
func (a *Applier) divide(ctx context.Context, i *instance, states []*State, err error) (good []*State) {
	if len(states) == 1 || fault.KindOf(err) != fault.Usage {
		for _, s := range states {
			s.staged.drop()
			s.Err = i.refusal(s, err)
		}
		return nil
	}
	middle := len(states) / 2
	for _, half := range [][]*State{states[:middle], states[middle:]} {
		if err := a.try(ctx, i, half); err != nil {
			half = a.divide(ctx, i, half, err)
		}
		good = append(good, half...)
	}
	return good
}

// refusal is the error for a lineage whose file did not pass a check of HAProxy's. A check that came to no end refuses
// nothing.
func (i *instance) refusal(s *State, err error) error {
	if fault.KindOf(err) != fault.Usage {
		return err
	}
	refused := fault.Errorf(fault.Refused, "HAProxy does not take the certificate of %q, and its file is as it was: %w", s.Name, err)
	if beside := i.companions(s.File); len(beside) > 0 {
		return refused.WithHint("it is loaded together with %s; remove what belongs to another certificate", strings.Join(beside, ", "))
	}
	return refused
}

package haproxy

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/haproxy/admin"
	"github.com/certhook/certhook/pkg/haproxy/conf"
	"github.com/certhook/certhook/pkg/haproxy/master"
)

// instance is the HAProxy that is to be brought up to date, as far as it can be known.
type instance struct {
	process *master.Process // nil where none was found
	conf    conf.Config
	files   []string      // of the configuration
	admin   *admin.Client // nil where there is no stats socket that takes certificates
	master  *master.CLI   // nil where there is no master socket
	stores  admin.List    // what is in memory; empty while HAProxy is down
	up      bool
	// hidden are the environment variables that the configuration refers to and that only a running HAProxy could tell.
	hidden []string

	binds  []bind
	byFile map[identity][]string // stores by the file that they come from
	byPath map[string][]string
	certs  map[string]admin.Certificate // what some of the stores hold
}

// look finds out about the instance.
func (a *Applier) look(ctx context.Context) (*instance, error) {
	i := &instance{files: a.Config}
	p, err := master.Find(ctx, master.Hints{PIDFile: a.PIDFile, MasterSocket: a.MasterSocket, ConfigFiles: a.Config})
	if err == nil {
		i.process = &p
		if len(p.Config) > 0 {
			i.files = p.Config
		}
	} else if !errors.Is(err, master.ErrNone) {
		return nil, err
	}
	if err := a.configuration(i); err != nil {
		return nil, err
	}
	i.indexBinds()
	if path := first(a.StatsSocket, i.adminSocket()); path != "" {
		i.admin = &admin.Client{Path: path}
	}
	if path := first(a.MasterSocket, i.masterSocket()); path != "" {
		i.master = &master.CLI{Path: path}
	}
	if i.admin == nil {
		i.up = i.process != nil
		return i, nil
	}
	switch i.stores, err = i.admin.List(ctx); {
	case err == nil:
		i.up = true
		i.index()
	case errors.Is(err, admin.ErrDown):
		i.up = i.process != nil
	default:
		return nil, pending(err)
	}
	return i, nil
}

// configuration reads HAProxy's configuration with HAProxy's own directory and environment. Ours, which certbot or a
// shell has made, would lead to other files.
func (a *Applier) configuration(i *instance) error {
	var reader conf.Reader
	var unseen error
	if i.process != nil {
		reader.Dir = i.process.Dir
		reader.Lookup, unseen = i.process.Environment()
	}
	var err error
	if i.conf, err = reader.Read(i.files); err != nil {
		return err
	}
	switch {
	case i.process == nil:
		i.hidden = i.conf.Unset
	case unseen != nil && len(i.conf.Unset) > 0:
		return fault.Errorf(fault.Usage, "HAProxy's configuration refers to its environment (%s): %w", strings.Join(i.conf.Unset, ", "), unseen).
			WithHint("run it as root, or as the user that HAProxy runs as")
	}
	return nil
}

// ours reports whether a store comes from a lineage's file, which nobody else changes.
func (a *Applier) ours(i *instance, store string) bool {
	for name := range a.found {
		for _, file := range a.places(name) {
			if slices.Contains(i.storesOf(file), store) {
				return true
			}
		}
	}
	return false
}

func first(candidates ...string) string {
	for _, c := range candidates {
		if c != "" {
			return c
		}
	}
	return ""
}

// adminSocket is a stats socket of the configuration that takes certificates, preferably one that is there for sure.
func (i *instance) adminSocket() string {
	path := ""
	for _, s := range i.conf.StatsSockets {
		if s.Level == "admin" && (path == "" || !s.Conditional) {
			path = s.Path
		}
	}
	return path
}

func (i *instance) masterSocket() string {
	if i.process != nil {
		return i.process.MasterSocket
	}
	return ""
}

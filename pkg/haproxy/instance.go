package haproxy

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/haproxy/admin"
	"github.com/certhook/certhook/pkg/haproxy/conf"
	"github.com/certhook/certhook/pkg/haproxy/master"
	"github.com/certhook/certhook/pkg/haproxy/wire"
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
	if i.conf, err = conf.Read(i.files); err != nil {
		return nil, err
	}
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
		return nil, err
	}
	return i, nil
}

func first(candidates ...string) string {
	for _, c := range candidates {
		if c != "" {
			return c
		}
	}
	return ""
}

// adminSocket is a stats socket of the configuration that takes certificates.
func (i *instance) adminSocket() string {
	for _, s := range i.conf.StatsSockets {
		if s.Level == "admin" {
			return s.Path
		}
	}
	return ""
}

func (i *instance) masterSocket() string {
	if i.process != nil {
		return i.process.MasterSocket
	}
	return ""
}

// loads reports whether a bind gets its certificates from a file, itself or with its folder or a list.
func loads(b conf.Bind, file string) bool {
	for _, cert := range b.Certs {
		if samePath(cert, file) || samePath(cert, filepath.Dir(file)) {
			return true
		}
	}
	return len(b.CrtLists) > 0
}

func samePath(a, b string) bool { return filepath.Clean(a) == filepath.Clean(b) || sameDir(a, b) }

// targets are the places where a file's certificate has to show.
func (a *Applier) targets(i *instance, file string) []wire.Target {
	if a.Probes != nil {
		return a.Probes
	}
	var list []wire.Target
	for _, b := range i.conf.Binds {
		if !loads(b, file) {
			continue
		}
		for _, address := range b.Addresses {
			t := wire.Target{Address: address, AcceptProxy: b.AcceptProxy}
			if !slices.Contains(list, t) {
				list = append(list, t)
			}
		}
	}
	return list
}

// unused is an error where no bind would ever show a file.
func (a *Applier) unused(i *instance, file string) error {
	if a.Probes != nil || a.ProbesOff || len(a.targets(i, file)) > 0 {
		return nil
	}
	return fault.Errorf(fault.Usage, "no TLS bind in %s loads %q", strings.Join(i.files, ", "), file).
		WithHint("add \"crt %s/\" to the bind line, or set HAPROXY_CERT_DIR, or HAPROXY_VERIFY to where it is served", a.CertDir)
}

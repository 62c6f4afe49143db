package haproxy

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/haproxy/conf"
	"github.com/certhook/certhook/pkg/haproxy/wire"
)

// bind is a TLS bind with what it loads, by path and by file: a list may have thousands of lines, and thousands of
// lineages be looked for in it.
type bind struct {
	conf.Bind
	paths map[string]bool // clean
	files map[identity]bool
}

// indexBinds finds out what the binds load.
func (i *instance) indexBinds() {
	halved := slices.Contains(i.conf.Extra, "bundle")
	for _, c := range i.conf.Binds {
		b := bind{c, map[string]bool{}, map[identity]bool{}}
		names := slices.Clone(c.Certs)
		for _, l := range c.Listed {
			names = append(names, l.Cert)
		}
		for _, name := range names {
			path := c.Path(name)
			b.paths[filepath.Clean(path)] = true
			if id, ok := identify(path); ok {
				b.files[id] = true
			} else if halved && isBundle(path) {
				for _, h := range halves {
					b.paths[filepath.Clean(path+"."+h)] = true
					if id, ok := identify(path + "." + h); ok {
						b.files[id] = true
					}
				}
			}
		}
		i.binds = append(i.binds, b)
	}
}

// loading are the binds that get a file: by itself, in a bundle, with its folder or by a list. A list that cannot be read
// may have it.
func (i *instance) loading(file string) []bind {
	var list []bind
	id, there := identify(file)
	dir, inDir := identify(filepath.Dir(file))
	for _, b := range i.binds {
		if b.paths[filepath.Clean(file)] || b.paths[filepath.Dir(file)] || there && b.files[id] || inDir && b.files[dir] || len(b.Unread) > 0 {
			list = append(list, b)
		}
	}
	return list
}

// target is a place where a certificate has to show.
type target struct {
	wire.Target
	doubtful bool // HAProxy may not listen there
	maybe    bool // it may not load the certificate there
}

// targets are the places where a file's certificate has to show. An address that another machine has at the moment, as
// on a pair with one address, tells of that one's HAProxy and is left out.
func (a *Applier) targets(i *instance, file string) []target {
	var list []target
	if a.Probes != nil {
		for _, t := range a.Probes {
			list = append(list, target{Target: t})
		}
		return list
	}
	for _, b := range i.loading(file) {
		for _, address := range b.Addresses {
			t := target{wire.Target{Address: address, AcceptProxy: b.AcceptProxy}, b.Conditional, len(b.Unread) > 0}
			if wire.Local(address) && !slices.Contains(list, t) {
				list = append(list, t)
			}
		}
	}
	return list
}

// unused is an error where no bind would ever show a file.
func (a *Applier) unused(i *instance, file string) error {
	if a.Probes != nil || a.ProbesOff || len(i.loading(file)) > 0 {
		return nil
	}
	return fault.Errorf(fault.Usage, "no TLS bind in %s loads %q", strings.Join(i.files, ", "), file).
		WithHint("add \"crt %s/\" to the bind line, or set HAPROXY_CERT_DIR, or HAPROXY_VERIFY to where it is served", a.CertDir)
}

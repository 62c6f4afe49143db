package haproxy

import (
	"context"
	"errors"
	"strings"

	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/haproxy/master"
)

// reload puts files on disk and has HAProxy load them all at once. A file that its own check refuses is taken
// back, so that the folder always passes. Whether it was of use the next look tells.
func (a *Applier) reload(ctx context.Context, i *instance, states []*State) {
	fail := func(err error) {
		for _, s := range states {
			if s.Err == nil {
				s.Err = err
			}
		}
	}
	if i.up {
		if err := i.reloadable(a); err != nil {
			fail(err)
			return
		}
	}
	var installed, fresh []*State
	for _, s := range states {
		if s.Disk == Same {
			installed = append(installed, s)
		} else if s.Err = a.prepare(s); s.Err == nil {
			fresh = append(fresh, s)
		}
	}
	for _, s := range a.approve(ctx, i, fresh) {
		if s.Err = a.replace(s); s.Err == nil {
			installed = append(installed, s)
			a.stale(i, s)
		}
	}
	// Only now, since a configuration may name a file that is not there yet.
	if err := a.check(ctx, i); err != nil {
		a.step("restore")
		if err := a.restore(); err != nil {
			fail(err)
			return
		}
		if fault.KindOf(err) == fault.Pending {
			fail(err)
			return
		}
		if broken := a.check(ctx, i); broken != nil {
			if fault.KindOf(broken) == fault.Pending {
				fail(broken)
				return
			}
			fail(fault.Errorf(fault.Usage, "HAProxy's configuration is broken, and its certificates are as they were: %w", broken).
				WithHint("haproxy -c -f %s says the same", strings.Join(i.files, " -f ")))
			return
		}
		installed = a.sort(ctx, i, installed, err)
	}
	a.forget()
	states = installed
	if len(states) == 0 {
		return
	}
	if !i.up {
		fail(fault.Errorf(fault.Pending, "staged, not served: HAProxy is not running").
			WithHint("it will load the certificate when it starts"))
		return
	}
	a.step("reload")
	outcome, err := master.Reload(ctx, i.how(a))
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		fail(fault.Errorf(fault.Pending, "HAProxy has not finished its reload in time: %w", err))
	case err != nil:
		fail(err)
	case outcome.Doubt != "":
		a.Log.Info(outcome.Doubt) // the handshake decides
	}
}

// check asks HAProxy whether it would start. While it does not run, nobody knows the environment with which it would,
// and where the configuration refers to that, a refusal proves nothing: HAProxy may be waiting for this very file.
func (a *Applier) check(ctx context.Context, i *instance) error {
	a.step("check")
	p := i.process
	if p == nil {
		p = &master.Process{}
	}
	err := p.Check(ctx, i.files)
	if fault.KindOf(err) == fault.Usage && len(i.hidden) > 0 {
		a.Log.Warn("whether HAProxy takes the certificates cannot be checked before it runs: its configuration refers to environment variables",
			"names", strings.Join(i.hidden, " "), "check", err)
		return nil
	}
	return err
}

// prepare writes a lineage's PEM beside its place.
func (a *Applier) prepare(s *State) error {
	a.step("stage " + s.Name)
	var err error
	s.staged, err = a.stage(s.File, s.desired.pem)
	return err
}

// replace puts what is prepared in its place, and keeps what stood there until it is known to be good.
func (a *Applier) replace(s *State) error {
	if err := a.keep(s.File); err != nil {
		s.staged.drop()
		return err
	}
	a.step("install " + s.Name)
	return s.staged.install()
}

// sort finds out which of several files the check of the whole configuration refuses, puts the others in place one by
// one, and returns those. Before, all of them have been taken back.
func (a *Applier) sort(ctx context.Context, i *instance, states []*State, refused error) []*State {
	var good []*State
	for _, s := range states {
		if s.Disk == Same {
			good = append(good, s)
			continue
		}
		if len(states) > 1 {
			refused = nil
			if s.Err = a.prepare(s); s.Err != nil {
				continue
			}
			if s.Err = a.replace(s); s.Err != nil {
				continue
			}
			if refused = a.check(ctx, i); refused == nil {
				good = append(good, s)
				a.forget()
				continue
			}
			if s.Err = a.restore(); s.Err != nil {
				continue
			}
		}
		s.Err = i.refusal(s, refused)
	}
	return good
}

// reloadable is an error where there is no way to have HAProxy reload.
func (i *instance) reloadable(a *Applier) error {
	switch {
	case i.master != nil, a.ReloadCommand != "", i.process != nil && i.process.MasterWorker:
		return nil
	}
	return fault.Errorf(fault.Usage, "a new or a large certificate needs a reload of HAProxy, and there is no way to one: it has no master socket, and no master process to signal").
		WithHint("start it with -W -S /run/haproxy-master.sock, or set HAPROXY_RELOAD_COMMAND")
}

// how says how to reload.
func (i *instance) how(a *Applier) master.How {
	return master.How{CLI: i.master, Process: i.process, Command: a.ReloadCommand}
}

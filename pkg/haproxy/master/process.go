package master

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/certhook/certhook/pkg/fault"
)

// Process is a HAProxy that runs: its master, or, without master-worker mode, its only process. The zero Process
// stands for none: its Check runs the haproxy that is in PATH, as ourselves.
type Process struct {
	PID          int
	Start        uint64   // clock ticks after boot: field 22 of /proc/PID/stat
	Executable   string   // path, also of a file that an upgrade has replaced; "" where we may not see it
	Args         []string // with the program's name
	Config       []string // what -f names, files and directories in their order; absolute where Dir is known
	MasterWorker bool     // it is a master: it can be told to reload
	MasterSocket string   // what -S names, without options; "" for none
	PIDFile      string   // what -p names; "" for none
	UID, GID     int
	Groups       []int
	Dir          string // working directory; "" where we may not see it

	proc procfs
}

// process completes what is known of a HAProxy.
func (root procfs) process(e entry, master bool) (Process, error) {
	p := Process{PID: e.pid, Start: e.start, Executable: e.executable, Args: e.args, MasterWorker: master, proc: root}
	var err error
	if p.UID, p.GID, p.Groups, err = root.credentials(e.pid); err != nil {
		return Process{}, err
	}
	if dir, err := os.Readlink(root.path(e.pid, "cwd")); err == nil {
		p.Dir = dir
	}
	a := parseArguments(e.args)
	for _, file := range a.config {
		p.Config = append(p.Config, absolute(p.Dir, file))
	}
	p.MasterSocket = absoluteSocket(p.Dir, a.socket)
	p.PIDFile = absolute(p.Dir, a.pidFile)
	return p, nil
}

// alive reports whether the process is there and still the same. It may be starting its program anew.
func (p Process) alive() bool {
	s, err := p.proc.stat(p.PID)
	return err == nil && s.start == p.Start
}

// ready reports whether a master can be told to reload.
func (p Process) ready() bool { return p.proc.catches(p.PID, syscall.SIGUSR2) }

// Reload has a master load its configuration, by SIGUSR2, and does not wait for it. Nobody else gets the signal: it
// has to be the process that was found, and it has to be HAProxy's master still. The error is ErrBusy where it loads
// already, ErrNone where it has ended, and of kind Usage where it is no master or we may not.
func (p Process) Reload(ctx context.Context) error {
	fail := func(err error) error { return fmt.Errorf("signal HAProxy's master, process %d: %w", p.PID, err) }
	if p.PID <= 0 {
		return fault.Errorf(fault.Usage, "there is no process of HAProxy to signal")
	}
	// What is proven below holds for the process that the descriptor stands for, whoever gets its number later.
	fd, err := unix.PidfdOpen(p.PID, 0)
	switch {
	case errors.Is(err, unix.ESRCH):
		return fail(ErrNone)
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM):
		return fault.Errorf(fault.Usage, "signal HAProxy's master, process %d, and surely no other: this system has no pidfd_open: %w", p.PID, err).
			WithHint("start HAProxy with a master socket (-S), or set HAPROXY_RELOAD_COMMAND")
	case err != nil:
		return fail(err)
	}
	defer unix.Close(fd)
	if err := p.prove(ctx); err != nil {
		return err
	}
	// Until it has loaded its configuration a new master dies of the signal, and one that loads it anew loses it.
	if !p.ready() {
		return fmt.Errorf("signal HAProxy's master, process %d: %w", p.PID, ErrBusy)
	}
	switch err := unix.PidfdSendSignal(fd, unix.SIGUSR2, nil, 0); {
	case errors.Is(err, unix.ESRCH):
		return fail(ErrNone)
	case errors.Is(err, unix.EPERM):
		return fault.Errorf(fault.Usage, "signal HAProxy's master, process %d: %w", p.PID, err).WithHint("run it as root")
	case err != nil:
		return fail(err)
	}
	return nil
}

// prove looks whether the process is HAProxy's master.
func (p Process) prove(ctx context.Context) error {
	all, err := p.proc.haproxies(ctx)
	if err != nil {
		return err
	}
	e, ok := all[p.PID]
	switch {
	case !ok || e.start != p.Start:
		return fmt.Errorf("signal HAProxy's master: process %d is another one by now: %w", p.PID, ErrNone)
	case e.executable == "":
		return fault.Errorf(fault.Usage, "what process %d runs cannot be seen, and it is not signalled", p.PID).WithHint("run it as root")
	case !isMaster(e, all):
		return fault.Errorf(fault.Usage, "process %d is a HAProxy, but no master, and would not reload", p.PID).
			WithHint("start HAProxy with -W, or -Ws under systemd")
	}
	return nil
}

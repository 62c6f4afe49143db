package master

import (
	"context"
	"errors"
	"syscall"
)

// Process is a HAProxy that runs: its master, or, without master-worker mode, its only process. The zero Process
// stands for none: its Check runs the haproxy that is in PATH, as ourselves.
type Process struct {
	PID          int
	Start        uint64 // clock ticks after boot: field 22 of /proc/PID/stat
	Executable   string // path, also of a file that an upgrade has replaced; "" where we may not see it
	Args         []string
	Config       []string // what -f names, files and directories in their order, absolute
	MasterWorker bool     // it is a master: it can be told to reload
	MasterSocket string   // what -S names; "" for none
	PIDFile      string   // what -p names; "" for none
	UID, GID     int
	Groups       []int
	Dir          string // working directory; "" where we may not see it

	procRoot string
}

// Hints say which HAProxy is meant. Those that name nothing that is there are left out.
type Hints struct {
	PIDFile      string
	MasterSocket string
	ConfigFiles  []string
	ProcRoot     string // where procfs is mounted; "" = /proc
}

// Find finds the HAProxy that is meant. The error is ErrNone, with what speaks against those that are there, where
// none runs, and of kind Usage where several fit.
func Find(ctx context.Context, h Hints) (Process, error) { return Process{}, ErrNone }

// Signal sends a signal to a master, and to nobody else: the process has to be the one that was found, and still
// HAProxy's master.
func (p Process) Signal(sig syscall.Signal) error { return errors.ErrUnsupported }

// Check has HAProxy check the configuration as it would load it: with the master's options, as its user, in its
// directory and with its environment. files are for -f; none = those of the process. The error is of kind Usage and
// has HAProxy's alerts.
func (p Process) Check(ctx context.Context, files []string) error { return errors.ErrUnsupported }

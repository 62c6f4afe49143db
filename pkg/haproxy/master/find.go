package master

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/certhook/certhook/pkg/fault"
)

// Hints say which HAProxy is meant. The first that leads to one decides: master socket, pidfile, configuration. What
// a hint names need not be there any more.
type Hints struct {
	PIDFile      string
	MasterSocket string
	ConfigFiles  []string
	ProcRoot     string // where procfs is mounted; "" = /proc
}

// Find finds the HAProxy that is meant: a master, or one that runs without. Those of which a hint says that
// they are others are never returned; without any hint, or where no file is there that a hint names, it is the only one
// that runs. HAProxies in containers, which have another root directory, are passed over.
//
// The error is ErrNone, with what speaks against those that are there, where none is found, and of kind Usage where
// several fit.
func Find(ctx context.Context, h Hints) (Process, error) {
	root := procfs(h.ProcRoot)
	all, err := root.haproxies(ctx)
	if err != nil {
		return Process{}, err
	}
	var candidates []Process
	var against []string
	for _, e := range all {
		switch {
		case ctx.Err() != nil:
			return Process{}, ctx.Err()
		case !isTop(e, all):
			continue
		case root.elsewhere(e.pid):
			against = append(against, fmt.Sprintf("process %d is in a container of its own", e.pid))
			continue
		}
		if p, err := root.process(e, isMaster(e, all)); err == nil {
			candidates = append(candidates, p)
		}
	}
	slices.SortFunc(candidates, func(a, b Process) int { return a.PID - b.PID })

	tests := []struct {
		given bool
		fits  func(Process) bool
	}{
		{h.MasterSocket != "", func(p Process) bool { return samePath(p.MasterSocket, absoluteSocket("", h.MasterSocket)) }},
		{h.PIDFile != "", h.pidfile(&against)},
		{len(h.ConfigFiles) > 0, h.config},
	}
	for _, t := range tests {
		if !t.given {
			continue
		}
		if fit := filter(candidates, t.fits); len(fit) > 0 {
			return only(fit)
		}
	}
	if len(candidates) == 0 || h.binding() {
		for _, p := range candidates {
			against = append(against, fmt.Sprintf("process %d runs with %s", p.PID, quoted(p.Config)))
		}
		return Process{}, none(against)
	}
	return only(candidates)
}

func none(against []string) error {
	if len(against) == 0 {
		return ErrNone
	}
	return fmt.Errorf("%w that is meant here: %s", ErrNone, strings.Join(against, "; "))
}

// only returns the one process that fits. A master is preferred to a HAProxy without, and of several
// of those the youngest: the others finish their connections.
func only(fit []Process) (Process, error) {
	if masters := filter(fit, func(p Process) bool { return p.MasterWorker }); len(masters) > 0 {
		fit = masters
	} else {
		fit = []Process{slices.MaxFunc(fit, func(a, b Process) int {
			if a.Start == b.Start {
				return a.PID - b.PID
			}
			if a.Start < b.Start {
				return -1
			}
			return 1
		})}
	}
	if len(fit) == 1 {
		return fit[0], nil
	}
	var list []string
	for _, p := range fit {
		list = append(list, fmt.Sprintf("process %d with %s", p.PID, quoted(p.Config)))
	}
	return Process{}, fault.Errorf(fault.Usage, "several HAProxies are running, and which is meant cannot be told: %s", strings.Join(list, ", ")).
		WithHint("name one by HAPROXY_CONFIG, HAPROXY_PIDFILE or HAPROXY_MASTER_SOCKET")
}

// pidfile returns whether a process is the one that the pidfile names. What the file names may long be another program.
func (h Hints) pidfile(against *[]string) func(Process) bool {
	var pids []int
	raw, err := os.ReadFile(h.PIDFile)
	switch {
	case h.PIDFile == "", errors.Is(err, os.ErrNotExist):
	case err != nil:
		*against = append(*against, fmt.Sprintf("the pidfile cannot be read: %v", err))
	default:
		for _, field := range strings.Fields(string(raw)) {
			if pid, err := strconv.Atoi(field); err == nil {
				pids = append(pids, pid)
				if e, err := procfs(h.ProcRoot).entry(pid); err == nil && !e.isHAProxy() {
					*against = append(*against, fmt.Sprintf("process %d, which the pidfile %q names, runs %q", pid, h.PIDFile, filepath.Base(e.args[0])))
				}
			}
		}
	}
	return func(p Process) bool { return slices.Contains(pids, p.PID) }
}

// config reports whether a process reads one of the files, by itself or with its folder.
func (h Hints) config(p Process) bool {
	return slices.ContainsFunc(h.ConfigFiles, func(file string) bool {
		return slices.ContainsFunc(p.Config, func(c string) bool { return samePath(c, file) || samePath(c, filepath.Dir(file)) })
	})
}

// binding reports whether the hints are about one HAProxy and no other. A path of a configuration that is not there is not:
// it is a default that this machine does not have.
func (h Hints) binding() bool {
	return h.MasterSocket != "" || h.PIDFile != "" || slices.ContainsFunc(h.ConfigFiles, func(path string) bool {
		_, err := os.Stat(path)
		return err == nil
	})
}

func samePath(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	if filepath.Clean(a) == filepath.Clean(b) {
		return true
	}
	one, err := os.Stat(a)
	other, err2 := os.Stat(b)
	return errors.Join(err, err2) == nil && os.SameFile(one, other)
}

func filter(list []Process, keep func(Process) bool) []Process {
	var kept []Process
	for _, p := range list {
		if keep(p) {
			kept = append(kept, p)
		}
	}
	return kept
}

func quoted(files []string) string {
	list := make([]string, 0, len(files))
	for _, f := range files {
		list = append(list, strconv.Quote(f))
	}
	return strings.Join(list, " ")
}

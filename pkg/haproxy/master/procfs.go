package master

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// binary is what HAProxy's executable is called, by itself, by packages that have several versions side by side,
// and by its vendor. It is not what other programs about HAProxy are called.
var binary = regexp.MustCompile(`^(haproxy|hapee-lb)([-.]?[0-9]+)*$`)

// procfs is /proc, or a folder made like it.
type procfs string

func (root procfs) path(pid int, name string) string {
	if root == "" {
		root = "/proc"
	}
	return filepath.Join(string(root), strconv.Itoa(pid), name)
}

// entry is what can be told of a process by looking at it.
type entry struct {
	pid, parent int
	start       uint64
	args        []string
	executable  string // "" where we may not see it
}

// haproxies are the processes whose program is HAProxy, by process id.
func (root procfs) haproxies(ctx context.Context) (map[int]entry, error) {
	list, err := os.ReadDir(filepath.Dir(root.path(0, "")))
	if err != nil {
		return nil, fmt.Errorf("look at the processes: %w", err)
	}
	found := map[int]entry{}
	for _, d := range list {
		pid, err := strconv.Atoi(d.Name())
		if err != nil {
			continue
		}
		e, err := root.entry(pid)
		// A master starts itself anew with each reload, and has no command line for a moment.
		for tries := 0; err == nil && e.isHAProxy() && e.args[0] == "" && tries < 100; tries++ {
			if err := wait(ctx, time.Millisecond); err != nil {
				return nil, err
			}
			e, err = root.entry(pid)
		}
		// One that ends meanwhile is none.
		if err == nil && e.isHAProxy() {
			found[pid] = e
		}
	}
	return found, nil
}

// stat reads a process's parent and start time (proc_pid_stat(5)). One that has ended is an error, also where it has
// not been reaped.
func (root procfs) stat(pid int) (entry, error) {
	raw, err := os.ReadFile(root.path(pid, "stat"))
	if err != nil {
		return entry{}, err
	}
	// The second field is a name in parentheses that may have some itself.
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	const state, parent, start = 0, 1, 19 // fields 3, 4 and 22
	if len(fields) <= start || strings.Contains("ZX", fields[state]) {
		return entry{}, fs.ErrNotExist
	}
	e := entry{pid: pid}
	e.parent, err = strconv.Atoi(fields[parent])
	if err == nil {
		e.start, err = strconv.ParseUint(fields[start], 10, 64)
	}
	return e, err
}

// entry looks at a process.
func (root procfs) entry(pid int) (entry, error) {
	e, err := root.stat(pid)
	if err != nil {
		return entry{}, err
	}
	line, err := os.ReadFile(root.path(pid, "cmdline"))
	if err != nil {
		return entry{}, err
	}
	e.args = strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
	e.executable, err = os.Readlink(root.path(pid, "exe"))
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		return entry{}, err
	}
	// A package upgrade puts a new file in the place of the one that runs.
	e.executable = strings.TrimSuffix(e.executable, " (deleted)")
	return e, nil
}

// isHAProxy goes by the file that runs, and by what the process calls itself only where that cannot be seen.
func (e entry) isHAProxy() bool {
	if e.executable == "" {
		return binary.MatchString(filepath.Base(e.args[0]))
	}
	return binary.MatchString(filepath.Base(e.executable))
}

// isMaster reports whether a HAProxy among others is a master: it has HAProxies below it, or is about to, and none
// above. Its workers have the same command line.
func isMaster(e entry, all map[int]entry) bool {
	return isTop(e, all) && (parseArguments(e.args).masterWorker || len(children(e, all)) > 0)
}

// isTop reports whether no HAProxy has started it.
func isTop(e entry, all map[int]entry) bool { _, below := all[e.parent]; return !below }

func children(e entry, all map[int]entry) []int {
	var pids []int
	for _, other := range all {
		if other.parent == e.pid {
			pids = append(pids, other.pid)
		}
	}
	return pids
}

// credentials reads the user, group and further groups with which a process acts (proc_pid_status(5)).
func (root procfs) credentials(pid int) (uid, gid int, groups []int, err error) {
	raw, err := os.ReadFile(root.path(pid, "status"))
	if err != nil {
		return 0, 0, nil, err
	}
	uid, gid = -1, -1
	for line := range strings.Lines(string(raw)) {
		name, rest, _ := strings.Cut(line, ":")
		fields := strings.Fields(rest)
		const effective = 1
		switch {
		case name == "Uid" && len(fields) > effective:
			uid, err = strconv.Atoi(fields[effective])
		case name == "Gid" && len(fields) > effective:
			gid, err = strconv.Atoi(fields[effective])
		case name == "Groups":
			for _, f := range fields {
				g, err := strconv.Atoi(f)
				if err != nil {
					return 0, 0, nil, err
				}
				groups = append(groups, g)
			}
		}
		if err != nil {
			return 0, 0, nil, err
		}
	}
	if uid < 0 || gid < 0 {
		return 0, 0, nil, fmt.Errorf("%s names no user", root.path(pid, "status"))
	}
	return uid, gid, groups, nil
}

// catches reports whether a process has a handler for a signal, and does not hold it back (proc_pid_status(5)).
func (root procfs) catches(pid int, sig syscall.Signal) bool {
	raw, err := os.ReadFile(root.path(pid, "status"))
	if err != nil {
		return false
	}
	set := func(name string) bool {
		_, rest, _ := strings.Cut(string(raw), "\n"+name+":")
		mask, _, _ := strings.Cut(rest, "\n")
		bits, err := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
		return err == nil && bits>>(sig-1)&1 == 1
	}
	return set("SigCgt") && !set("SigBlk")
}

// elsewhere reports whether a process is known to have another root directory than we have: it is in a container,
// and the paths that it names are not ours.
func (root procfs) elsewhere(pid int) bool {
	theirs, err := os.Stat(root.path(pid, "root"))
	if err != nil {
		return false
	}
	ours, err := os.Stat("/")
	return err == nil && !os.SameFile(theirs, ours)
}

// environ is the environment that a process got when it began to run its program.
func (root procfs) environ(pid int) ([]string, error) {
	raw, err := os.ReadFile(root.path(pid, "environ"))
	if err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(string(raw), "\x00"), "\x00"), nil
}

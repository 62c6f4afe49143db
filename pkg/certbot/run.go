package certbot

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Run identifies one run of certbot by its process. A process id alone is used again after a while, so
// the start time, the boot and the PID namespace belong to it.
type Run struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // clock ticks after boot: field 22 of /proc/PID/stat
	Boot  string `json:"boot"`  // /proc/sys/kernel/random/boot_id
	PIDNS string `json:"pidns"` // PID namespace, as /proc/self/ns/pid names it
}

// Life is what can be said of a process.
type Life int

const (
	// Untraceable is a process of another boot or PID namespace, of which nothing can be said from here.
	Untraceable Life = iota
	// Alive is a process that runs.
	Alive
	// Dead is a process that has ended, reaped or not.
	Dead
)

// Processes looks at the processes of this machine.
type Processes struct {
	Root string // where procfs is mounted; "" means /proc
}

func (p Processes) path(elem ...string) string {
	root := p.Root
	if root == "" {
		root = "/proc"
	}
	return filepath.Join(append([]string{root}, elem...)...)
}

// ErrOrphan means that the certbot that started a process is gone.
var ErrOrphan = errors.New("the certbot that started this is gone")

// CertbotRun finds the run that the process pid, a hook, belongs to: the nearest ancestor whose initial
// environment lacks CERTBOT_VALIDATION. Certbot gives that variable to the shell it starts, so shells and
// wrapper scripts in between are passed over. started is the process right below, which certbot waits for;
// certbot kills it when it is told to stop.
//
// Certbot leaves the process that it starts in its own session, so an ancestor of another session is no
// certbot. If it is a process that adopts orphans, the error is ErrOrphan; any other error says why the run
// cannot be told.
func (p Processes) CertbotRun(pid int) (run, started Run, err error) {
	fail := func(err error) (Run, Run, error) {
		return Run{}, Run{}, fmt.Errorf("find the certbot process: %w", err)
	}
	child, err := p.stat(pid)
	for err == nil && child.parent > 0 {
		above, err := p.stat(child.parent)
		if err != nil {
			return fail(err)
		}
		environ, err := os.ReadFile(p.path(strconv.Itoa(child.parent), "environ"))
		if err != nil {
			return fail(err)
		}
		if bytes.HasPrefix(environ, []byte("CERTBOT_VALIDATION=")) || bytes.Contains(environ, []byte("\x00CERTBOT_VALIDATION=")) {
			pid, child = child.parent, above
			continue
		}
		if above.session != child.session {
			if child.parent == 1 || above.name == "systemd" { // the latter per user as well
				return fail(ErrOrphan)
			}
			return fail(fmt.Errorf("process %d started this in a session of its own, which certbot does not", child.parent))
		}
		if run, err = p.Identify(child.parent); err == nil {
			started, err = p.Identify(pid)
		}
		return run, started, err
	}
	if err != nil {
		return fail(err)
	}
	return fail(errors.New("every ancestor that can be seen from here is a hook's"))
}

// Identify returns the Run whose process is pid.
func (p Processes) Identify(pid int) (Run, error) {
	stat, err := p.stat(pid)
	if err != nil {
		return Run{}, fmt.Errorf("identify process %d: %w", pid, err)
	}
	boot, ns, err := p.here()
	if err != nil {
		return Run{}, fmt.Errorf("identify process %d: %w", pid, err)
	}
	return Run{PID: pid, Start: stat.start, Boot: boot, PIDNS: ns}, nil
}

// Life reports whether the run's process lives. A process that cannot be looked at for another reason
// than its absence is Untraceable.
func (p Processes) Life(r Run) Life {
	boot, ns, err := p.here()
	if err != nil || boot != r.Boot || ns != r.PIDNS {
		return Untraceable
	}
	stat, err := p.stat(r.PID)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Dead
	case err != nil:
		return Untraceable
	case stat.start != r.Start || stat.ended:
		return Dead
	}
	return Alive
}

func (p Processes) here() (boot, pidns string, err error) {
	id, err := os.ReadFile(p.path("sys/kernel/random/boot_id"))
	if err != nil {
		return "", "", err
	}
	ns, err := os.Readlink(p.path("self/ns/pid"))
	return strings.TrimSpace(string(id)), ns, err
}

type stat struct {
	name            string
	parent, session int
	start           uint64
	ended           bool // a zombie, or being removed
}

// stat parses /proc/PID/stat (proc_pid_stat(5)). The command name may hold spaces and parentheses, so
// fields are counted from the last closing one.
func (p Processes) stat(pid int) (stat, error) {
	raw, err := os.ReadFile(p.path(strconv.Itoa(pid), "stat"))
	if err != nil {
		return stat{}, err
	}
	open, end := bytes.IndexByte(raw, '('), bytes.LastIndexByte(raw, ')')
	if open < 0 || end < open {
		return stat{}, fmt.Errorf("%s names no command", p.path(strconv.Itoa(pid), "stat"))
	}
	fields := strings.Fields(string(raw[end+1:]))
	const state, parent, session, start = 0, 1, 3, 19 // fields 3, 4, 6 and 22
	if len(fields) <= start {
		return stat{}, fmt.Errorf("%s has %d fields", p.path(strconv.Itoa(pid), "stat"), len(fields))
	}
	s := stat{name: string(raw[open+1 : end])}
	s.ended = strings.Contains("ZX", fields[state])
	if s.parent, err = strconv.Atoi(fields[parent]); err != nil {
		return stat{}, err
	}
	if s.session, err = strconv.Atoi(fields[session]); err != nil {
		return stat{}, err
	}
	s.start, err = strconv.ParseUint(fields[start], 10, 64)
	return s, err
}

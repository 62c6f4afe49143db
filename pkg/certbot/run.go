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

// CertbotRun finds the run that the process pid, a child of a hook's caller, belongs to: the nearest
// ancestor, pid included, whose initial environment lacks CERTBOT_VALIDATION. Certbot gives that
// variable to the shell it starts, so shells and wrapper scripts in between are passed over. The error
// says which process could not be read.
func (p Processes) CertbotRun(pid int) (Run, error) {
	for pid > 0 {
		environ, err := os.ReadFile(p.path(strconv.Itoa(pid), "environ"))
		if err != nil {
			return Run{}, fmt.Errorf("find the certbot process: %w", err)
		}
		if !bytes.HasPrefix(environ, []byte("CERTBOT_VALIDATION=")) && !bytes.Contains(environ, []byte("\x00CERTBOT_VALIDATION=")) {
			return p.Identify(pid)
		}
		stat, err := p.stat(pid)
		if err != nil {
			return Run{}, fmt.Errorf("find the certbot process: %w", err)
		}
		pid = stat.parent
	}
	return Run{}, errors.New("find the certbot process: every ancestor that can be seen from here is a hook's")
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
	parent int
	start  uint64
	ended  bool // a zombie, or being removed
}

// stat parses /proc/PID/stat (proc_pid_stat(5)). The command name may hold spaces and parentheses, so
// fields are counted from the last closing one.
func (p Processes) stat(pid int) (stat, error) {
	raw, err := os.ReadFile(p.path(strconv.Itoa(pid), "stat"))
	if err != nil {
		return stat{}, err
	}
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	const state, parent, start = 0, 1, 19 // fields 3, 4 and 22
	if len(fields) <= start {
		return stat{}, fmt.Errorf("%s has %d fields", p.path(strconv.Itoa(pid), "stat"), len(fields))
	}
	var s stat
	s.ended = strings.Contains("ZX", fields[state])
	if s.parent, err = strconv.Atoi(fields[parent]); err != nil {
		return stat{}, err
	}
	s.start, err = strconv.ParseUint(fields[start], 10, 64)
	return s, err
}

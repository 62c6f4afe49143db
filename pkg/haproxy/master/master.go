// Package master deals with HAProxy's master process: it finds it, proves that it is one, asks it how it stands,
// has it check its configuration and reload, and tells whether the reload came to anything. HAProxy itself does
// not: a master whose reload has failed lives on with its old worker, and kill and systemctl reload succeed.
//
// What is said here of the master CLI is in HAProxy's management.txt, sections 4 and 9.4, and src/mworker.c.
package master

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

var (
	// ErrDown means that nobody listens at the master socket. A master refuses connections while it loads its
	// configuration, too, so that a caller who knows that HAProxy lives has to wait.
	ErrDown = errors.New("nobody answers at HAProxy's master socket")
	// ErrBusy means that the master is at another reload and does not begin a second one.
	ErrBusy = errors.New("another reload of HAProxy is still in progress")
	// ErrNone means that no HAProxy runs that the hints are about.
	ErrNone = errors.New("no HAProxy is running")
)

// Proc is how a master and its workers stand: the reply to show proc.
type Proc struct {
	Master  int // process id, as the master itself sees it: another one where it is in a container
	Reloads int // since the master's start, the failed ones among them
	Failed  int // since the last one that succeeded; -1 where HAProxy (before 2.5) does not say
	Uptime  int // of the master, in seconds; -1 where it is unknown
	Version string

	Workers []Worker // that serve, or, before a master of HAProxy 3.1 or newer has loaded, are going to
	Old     []Worker // that finish their connections, or serve until then
}

// Worker is a process that serves.
type Worker struct {
	PID     int
	Reloads int // that it has outlived; for one that still serves each of them has failed
	Version string
}

func (p Proc) has(pid int) bool {
	same := func(w Worker) bool { return w.PID == pid }
	return slices.ContainsFunc(p.Workers, same) || slices.ContainsFunc(p.Old, same)
}

// loadsBeside reports whether the master is one that answers while a worker loads the configuration, as HAProxy 3.1 and
// newer do. It does not say then which of its workers does.
func (p Proc) loadsBeside() bool {
	major, rest, _ := strings.Cut(p.Version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	minor, _, _ = strings.Cut(minor, "-")
	x, err := strconv.Atoi(major)
	y, err2 := strconv.Atoi(minor)
	return errors.Join(err, err2) == nil && (x > 3 || x == 3 && y >= 1)
}

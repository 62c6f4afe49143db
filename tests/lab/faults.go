package lab

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/certhook/certhook/pkg/certbot"
)

// What goes wrong on the machine itself. The API and the name servers have switches of their own.

// FillDisk puts a folder on a disk of its own that is full, until mend is called. What was in it is back then.
func (l *Lab) FillDisk(folder string) (mend func()) {
	l.tb.Helper()
	err := os.MkdirAll(folder, 0o700)
	if err == nil {
		err = mount("tmpfs", folder, "tmpfs", 0, "mode=0700,size=64k")
	}
	if err != nil {
		l.tb.Fatalf("lab: fill a disk: %v", err)
	}
	mend = sync.OnceFunc(func() {
		if err := unix.Unmount(folder, unix.MNT_DETACH); err != nil {
			l.tb.Errorf("lab: take a full disk away: %v", err)
		}
	})
	l.tb.Cleanup(mend)
	const more = 1 << 20
	if err := os.WriteFile(filepath.Join(folder, "filler"), make([]byte, more), 0o600); !errors.Is(err, unix.ENOSPC) {
		l.tb.Fatalf("lab: fill a disk: %v", err)
	}
	return mend
}

// Running returns the processes that run a program, or a script, of that path.
func Running(program string) []int {
	var pids []int
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is well-formed
	for _, path := range lines {
		text, _ := os.ReadFile(path) // empty once the process has ended
		args := bytes.SplitN(text, []byte{0}, 3)
		if slices.ContainsFunc(args[:min(2, len(args))], func(arg []byte) bool { return string(arg) == program }) {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// Kill ends all processes that run a program, at once, and returns how many those were when they are dead. It is
// for the lab's own programs: the lab sees no process from outside.
func Kill(program string) int {
	processes := certbot.Processes{}
	n := 0
	for _, pid := range Running(program) {
		run, err := processes.Identify(pid)
		if err != nil || unix.Kill(pid, unix.SIGKILL) != nil {
			continue // it has ended
		}
		n++
		for processes.Life(run) == certbot.Alive {
			time.Sleep(time.Millisecond)
		}
	}
	return n
}

package haproxytest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

func (h *HAProxy) process() (*exec.Cmd, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.cmd, h.gone
}

// Running tells whether the master, or the one process, lives.
func (h *HAProxy) Running() bool {
	cmd, gone := h.process()
	if cmd == nil {
		return false
	}
	select {
	case <-gone:
		return false
	default:
		return true
	}
}

// PID is the master's, or the one process's, also after its end.
func (h *HAProxy) PID() int {
	cmd, _ := h.process()
	return cmd.Process.Pid
}

// WorkerPID is the youngest worker's, who takes the connections; the one process's without a master; 0 where there is
// none.
func (h *HAProxy) WorkerPID() int {
	if h.o.NoMaster {
		return h.PID()
	}
	workers := h.Workers()
	if len(workers) == 0 {
		return 0
	}
	return workers[len(workers)-1]
}

// Workers are the master's children, the oldest first: after a reload the old one stays for its connections.
func (h *HAProxy) Workers() []int {
	master := strconv.Itoa(h.PID())
	text, _ := os.ReadFile(filepath.Join("/proc", master, "task", master, "children"))
	var pids []int
	for _, field := range strings.Fields(string(text)) {
		if pid, err := strconv.Atoi(field); err == nil {
			pids = append(pids, pid)
		}
	}
	slices.SortStableFunc(pids, func(a, b int) int { return started(a) - started(b) })
	return pids
}

// listens tells whether the master takes a reload. HAProxy 2.6 ignores SIGUSR2 for some milliseconds after it has said
// that it is loaded, so that a signal gets lost then.
func (h *HAProxy) listens() bool {
	const bit = uint64(1) << (syscall.SIGUSR2 - 1)
	text, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(h.PID()), "status"))
	masks := map[string]uint64{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		if strings.HasPrefix(name, "Sig") {
			masks[name], _ = strconv.ParseUint(strings.TrimSpace(value), 16, 64)
		}
	}
	return masks["SigCgt"]&bit != 0 && masks["SigBlk"]&bit == 0
}

// started is when a process began, in ticks since boot; 0 when it has ended.
func started(pid int) int {
	fields := stat(pid)
	if len(fields) < 20 || fields[0] == "Z" {
		return 0
	}
	ticks, _ := strconv.Atoi(fields[19]) // the 22nd
	return ticks
}

// stat is what the kernel says about a process, from the third field on (proc(5)). The second may hold anything, in
// brackets.
func stat(pid int) []string {
	text, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
}

package haproxytest

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// patience is how long HAProxy may take for a start or a reload. Thousands of certificates take seconds.
const patience = 60 * time.Second

const pause = 10 * time.Millisecond // between two looks

// start runs HAProxy and returns when it serves at every address.
func (h *HAProxy) start() error {
	// As a file, not a pipe: a worker that outlives its master would hold the pipe open.
	output, err := os.OpenFile(h.logFile(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer output.Close()
	loaded := h.count(success)
	args := []string{"-f", h.ConfigFile}
	switch {
	case h.options.NoMaster:
		args = append(args, "-db")
	case h.options.Systemd:
		args = append(args, "-Ws")
	default:
		args = append(args, "-W")
	}
	if h.MasterSocket != "" {
		args = append(args, "-S", h.MasterSocket)
	}
	if h.PIDFile != "" {
		args = append(args, "-p", h.PIDFile)
	}
	cmd := exec.Command(h.program, args...)
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setpgid:    true,            // workers of every reload are in the master's group
		Pdeathsig:  syscall.SIGKILL, // not to outlive a test that was killed; workers leave with their master
		Credential: h.credential(),
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_ = cmd.Wait()
		// Whatever of the group is left keeps the number from being given to anybody else.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}()
	h.mu.Lock()
	h.cmd, h.gone = cmd, gone
	h.mu.Unlock()

	deadline := time.Now().Add(patience)
	for {
		if err = h.ready(loaded); err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("HAProxy does not serve: %w", err)
		}
		select {
		case <-gone:
			return errors.New("HAProxy ended")
		case <-time.After(pause):
		}
	}
}

func (h *HAProxy) credential() *syscall.Credential {
	if h.options.User == 0 || h.options.User == os.Getuid() {
		return nil
	}
	return &syscall.Credential{Uid: uint32(h.options.User), Gid: uint32(h.options.User)}
}

// ready tells whether HAProxy has loaded once more than the number given, and serves.
func (h *HAProxy) ready(loaded int) error {
	if !h.options.NoMaster && h.count(success) == loaded {
		return errors.New("it is loading")
	}
	for _, address := range h.Addrs {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return err
		}
		conn.Close()
	}
	for _, path := range []string{h.AdminSocket, h.MasterSocket} {
		if path == "" {
			continue
		}
		conn, err := net.Dial("unix", path)
		if err != nil {
			return err
		}
		conn.Close()
	}
	return nil
}

// What a master says about a start or a reload.
const (
	success = "Loading success."
	failure = "Loading failure!"
)

func (h *HAProxy) count(what string) int { return strings.Count(h.Log(), what) }

// Start starts HAProxy again after Stop or Kill, at the same addresses.
func (h *HAProxy) Start() {
	h.tb.Helper()
	if h.Running() {
		h.tb.Fatalf("haproxytest: HAProxy is running")
	}
	if err := h.start(); err != nil {
		h.tb.Fatalf("haproxytest: %v", err)
	}
}

// Stop ends HAProxy as a service manager does, with SIGTERM. What files HAProxy leaves behind stays.
func (h *HAProxy) Stop() {
	h.tb.Helper()
	cmd, gone := h.process()
	_ = cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-gone:
	case <-time.After(15 * time.Second):
		h.tb.Errorf("haproxytest: HAProxy does not end")
		h.kill()
	}
}

// Kill ends HAProxy and its workers with SIGKILL; sockets and pidfile stay behind.
func (h *HAProxy) Kill() { h.kill() }

func (h *HAProxy) kill() {
	cmd, gone := h.process()
	if cmd == nil {
		return
	}
	select {
	case <-gone: // and the number may be somebody else's
	default:
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-gone
	}
}

func (h *HAProxy) process() (*exec.Cmd, chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.cmd, h.gone
}

// Running tells whether the master, or the one process, lives.
func (h *HAProxy) Running() bool {
	_, gone := h.process()
	select {
	case <-gone:
		return false
	default:
		return true
	}
}

// MasterPID returns the process that was started: the master, or the one process without one.
func (h *HAProxy) MasterPID() int {
	cmd, _ := h.process()
	return cmd.Process.Pid
}

// WorkerPID returns the youngest worker, which takes the connections; without a master, the one process; 0
// where there is none.
func (h *HAProxy) WorkerPID() int {
	if h.options.NoMaster {
		return h.MasterPID()
	}
	workers := h.workers()
	if len(workers) == 0 {
		return 0
	}
	return workers[len(workers)-1]
}

// workers returns the master's children, the oldest first.
func (h *HAProxy) workers() []int {
	master := strconv.Itoa(h.MasterPID())
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

// started is when a process began, in ticks since boot (proc(5), field 22 of stat); 0 when it is gone.
func started(pid int) int {
	text, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	// The name stands in brackets and may hold anything; what follows it begins with field 3.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 20 {
		return 0
	}
	ticks, _ := strconv.Atoi(string(fields[19]))
	return ticks
}

// SignalReload asks the master for a reload and does not wait for it.
func (h *HAProxy) SignalReload() {
	h.tb.Helper()
	if err := syscall.Kill(h.MasterPID(), syscall.SIGUSR2); err != nil {
		h.tb.Fatalf("haproxytest: %v", err)
	}
}

// Reload reloads by hand, as an operator does, and waits for the outcome: an error when the master could not
// load, and the old worker goes on.
func (h *HAProxy) Reload() error {
	h.tb.Helper()
	if h.options.NoMaster {
		h.tb.Fatalf("haproxytest: there is no master to reload")
	}
	good, bad := h.count(success), h.count(failure)
	h.SignalReload()
	_, gone := h.process()
	for deadline := time.Now().Add(patience); ; {
		switch {
		case h.count(failure) > bad:
			return h.settled(errors.New("HAProxy could not reload"))
		case h.count(success) > good:
			return h.settled(nil)
		case time.Now().After(deadline):
			h.tb.Fatalf("haproxytest: the reload did not end")
		}
		select {
		case <-gone:
			h.tb.Fatalf("haproxytest: HAProxy ended in the reload")
		case <-time.After(pause):
		}
	}
}

// settled waits for the master's socket, which is closed during a reload, and hands the outcome on.
func (h *HAProxy) settled(outcome error) error {
	h.tb.Helper()
	if h.MasterSocket == "" {
		return outcome
	}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(pause) {
		if conn, err := net.Dial("unix", h.MasterSocket); err == nil {
			conn.Close()
			return outcome
		}
	}
	h.tb.Fatalf("haproxytest: the master's socket did not come back")
	return nil
}

// Check lets HAProxy judge its configuration and the certificates on disk ("haproxy -c"), as the master's
// user.
func (h *HAProxy) Check() error {
	cmd := exec.Command(h.program, "-c", "-f", h.ConfigFile)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Credential: h.credential()}
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("check the configuration: %w\n%s", err, output)
	}
	return nil
}

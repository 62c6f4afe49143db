package haproxytest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	patience = 60 * time.Second      // for a start or a reload; thousands of certificates take seconds
	pause    = 10 * time.Millisecond // between two looks
)

// What a master says about a start or a reload.
const (
	success = "Loading success."
	failure = "Loading failure!"
)

// Start starts HAProxy, or starts it again, and returns when it serves. HAProxy does not take an empty folder of
// certificates: where nothing is in it, there will be 000-default.pem for default.test, by a CA of nobody's.
func (h *HAProxy) Start() {
	h.tb.Helper()
	if h.Running() {
		h.tb.Fatalf("haproxytest: HAProxy is running")
	}
	entries, err := os.ReadDir(h.CertDir)
	h.must(err)
	if len(entries) == 0 {
		pair := NewAuthority(h.tb).Issue(Wish{}, "default.test")
		h.must(os.WriteFile(filepath.Join(h.CertDir, "000-default.pem"), pair.PEM(), 0o644))
	}
	if err := h.start(); err != nil {
		h.tb.Fatalf("haproxytest: %v:\n%s", err, h.Log())
	}
}

// arguments are those of the command line.
func (h *HAProxy) arguments() []string {
	args := []string{"-f", h.Config}
	if h.PIDFile != "" {
		args = append(args, "-p", h.PIDFile)
	}
	switch {
	case h.o.NoMaster:
		return append(args, "-db")
	case h.o.Systemd:
		args = append(args, "-Ws")
	default:
		args = append(args, "-W")
	}
	if h.MasterSocket != "" {
		args = append(args, "-S", h.MasterSocket)
	}
	return args
}

func (h *HAProxy) environ() []string {
	env := os.Environ()
	for _, variable := range h.o.Env {
		env = append(env, h.expand(variable))
	}
	return env
}

func (h *HAProxy) start() error {
	// As a file, not a pipe: a worker that outlives its master would hold the pipe open.
	output, err := os.OpenFile(h.logFile(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer output.Close()
	loaded := h.count(success)
	cmd := exec.Command(h.program, h.arguments()...)
	cmd.Dir = "/"
	cmd.Env = h.environ()
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setpgid:    true,            // the workers of every reload are in the master's group
		Pdeathsig:  syscall.SIGKILL, // not to outlive a test that was killed; workers leave with their master
		Credential: h.o.Credential,
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_ = cmd.Wait()
		// Whatever is left of the group keeps its number from being given to anybody else.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}()
	h.mu.Lock()
	h.cmd, h.gone = cmd, gone
	h.mu.Unlock()
	if h.o.NoMaster && h.PIDFile != "" { // -db writes none
		if err := os.WriteFile(h.PIDFile, fmt.Appendf(nil, "%d\n", cmd.Process.Pid), 0o644); err != nil {
			return err
		}
	}
	return h.await("HAProxy does not serve", func() error { return h.serves(loaded) })
}

// await asks again and again until there is no error, HAProxy ends or patience does.
func (h *HAProxy) await(what string, ask func() error) error {
	_, gone := h.process()
	deadline := time.Now().Add(patience)
	for {
		err := ask()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: %w", what, err)
		}
		select {
		case <-gone:
			return fmt.Errorf("%s: it has ended", what)
		case <-time.After(pause):
		}
	}
}

// serves tells whether HAProxy has loaded once more than the number given, and every socket is there.
func (h *HAProxy) serves(loaded int) error {
	if !h.o.NoMaster && (h.count(success) == loaded || !h.listens()) {
		return errors.New("it is loading")
	}
	for _, address := range h.Addrs {
		if err := connects("tcp", address); err != nil {
			return err
		}
	}
	for _, socket := range []string{h.AdminSocket, h.MasterSocket} {
		if socket == "" {
			continue
		}
		if err := connects("unix", socket); err != nil {
			return err
		}
	}
	return nil
}

func connects(network, address string) error {
	conn, err := net.Dial(network, address)
	if err == nil {
		conn.Close()
	}
	return err
}

func (h *HAProxy) count(what string) int { return strings.Count(h.Log(), what) }

// Stop ends HAProxy as a service manager does. What files HAProxy leaves behind stay.
func (h *HAProxy) Stop() {
	h.tb.Helper()
	if !h.Running() {
		return
	}
	cmd, gone := h.process()
	_ = cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-gone:
	case <-time.After(15 * time.Second): // longer than hard-stop-after
		h.tb.Errorf("haproxytest: HAProxy does not end")
		h.Kill()
	}
}

// Kill ends HAProxy and its workers as a crash does: sockets and pidfile stay.
func (h *HAProxy) Kill() {
	if !h.Running() {
		return
	}
	cmd, gone := h.process()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	<-gone
}

// Signal sends a signal to the master and does not wait; SIGUSR2 is a reload.
func (h *HAProxy) Signal(sig syscall.Signal) {
	h.tb.Helper()
	cmd, _ := h.process()
	h.must(cmd.Process.Signal(sig))
}

// Reload reloads by hand, as an operator does, and waits for the outcome: an error when the master could not load and
// the old worker goes on.
func (h *HAProxy) Reload() error {
	h.tb.Helper()
	if h.o.NoMaster {
		h.tb.Fatalf("haproxytest: there is no master to reload")
	}
	good, bad := h.count(success), h.count(failure)
	h.Signal(syscall.SIGUSR2)
	var outcome error
	h.must(h.await("the reload has no end", func() error {
		if h.count(failure) > bad {
			outcome = errors.New("HAProxy could not reload")
		} else if h.count(success) == good {
			return errors.New("it is loading")
		}
		if !h.listens() {
			return errors.New("it is not done yet")
		}
		if h.MasterSocket == "" {
			return nil
		}
		return connects("unix", h.MasterSocket) // nobody listens there during a reload
	}))
	return outcome
}

// Check is an error where HAProxy would not start with what is on disk ("haproxy -c", as the master's user).
func (h *HAProxy) Check() error {
	cmd := exec.Command(h.program, "-c", "-f", h.Config)
	cmd.Dir = "/"
	cmd.Env = h.environ()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Credential: h.o.Credential}
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, output)
	}
	return nil
}

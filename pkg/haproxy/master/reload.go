package master

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"github.com/certhook/certhook/pkg/fault"
)

const (
	reloadTime          = time.Minute // 1,000 certificates take 2 s
	firstPoll, lastPoll = 50 * time.Millisecond, time.Second
)

// How is how HAProxy can be reloaded. The first of CLI, Process and Command that there is is taken.
type How struct {
	CLI     *CLI          // nil for no master socket
	Process *Process      // nil where it is unknown; one that is no master is not signalled
	Command string        // shell line; "" for none
	Timeout time.Duration // 0 = 60 s; ctx may end sooner
}

// Outcome is what is known after a reload.
type Outcome struct {
	Way    string // "master socket", "signal" or "command"
	Worker int    // process id of the new worker as the master sees it; 0 where it is unknown
	Doubt  string // why the reload may have failed although there is no error; "" where it is known to have worked
	Output string // of the command; its beginning and its end where it is long
}

// Reload has HAProxy load its configuration and waits until it serves it. Errors are of kind Refused where
// HAProxy keeps the old one, of kind Usage where it cannot be asked, and of kind Pending where HAProxy is gone or
// the time was over before it was known (context.DeadlineExceeded). Where it cannot be known there is no error and
// Outcome.Doubt says so: only what is served can tell.
func Reload(ctx context.Context, how How) (Outcome, error) {
	timeout := how.Timeout
	if timeout == 0 {
		timeout = reloadTime
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var o Outcome
	var err error
	switch {
	case how.CLI != nil:
		o, err = how.bySocket(ctx)
	case how.Process != nil && how.Process.MasterWorker:
		o, err = how.bySignal(ctx)
	case how.Command != "":
		o, err = how.byCommand(ctx)
	default:
		return Outcome{}, fault.Errorf(fault.Usage, "there is no way to reload HAProxy: no master socket, no master process, no command").
			WithHint("start HAProxy with -W -S /run/haproxy-master.sock, or set HAPROXY_RELOAD_COMMAND")
	}
	if errors.Is(err, context.DeadlineExceeded) && fault.KindOf(err) == fault.Other {
		err = fault.Errorf(fault.Pending, "the reload of HAProxy has not come to an end in time: %w", err)
	}
	return o, err
}

// bySocket asks at the master socket. Only what show proc says before and after tells how it went.
func (how How) bySocket(ctx context.Context) (Outcome, error) {
	o := Outcome{Way: "master socket"}
	var before *Proc
	var last error
	asked, said := false, false
	err := poll(ctx, func() (bool, error) {
		now, err := how.CLI.Proc(ctx)
		if err == nil && before == nil {
			before = &now
		}
		if err == nil && !asked {
			var r reply
			if r, err = how.CLI.reload(ctx); err == nil && r.failed {
				return true, how.explain(ctx, alerts(r.log))
			} else if err == nil {
				asked, said = true, r.done
				return false, nil
			}
		}
		switch {
		case err == nil:
			last = nil
			done, err := how.judge(ctx, *before, now, &o)
			if done && err == nil && !said && o.Doubt == "" && now.loadsBeside() {
				o.Doubt = newWorker
			}
			return done, err
		case errors.Is(err, ErrBusy): // the other reload may have read our files, or not
			last = err
			return false, nil
		case errors.Is(err, ErrDown): // it loads, or it is gone
			last = err
			return false, how.gone()
		}
		return false, err
	})
	if last != nil && errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, last) {
		err = fmt.Errorf("%w; %w", last, err)
	}
	return o, err
}

// judge compares how the master stands with how it stood before the reload. done is false while that tells nothing.
func (how How) judge(ctx context.Context, before, now Proc, o *Outcome) (done bool, err error) {
	v, doubt := compare(before, now)
	switch v {
	case loaded:
		o.Worker, o.Doubt = now.Workers[0].PID, doubt
		return true, nil
	case failed:
		return true, how.explain(ctx, "")
	}
	return false, nil
}

type verdict int

const (
	pending verdict = iota
	loaded
	failed
)

// compare tells from two states of a master what became of a reload in between. It has worked when other workers
// serve, whoever asked for it: they have read what was on disk at the first look. It has failed when the count of
// reloads has gone up and there is no other worker.
func compare(before, now Proc) (verdict, string) {
	fresh := 0
	for _, w := range now.Workers {
		if !before.has(w.PID) {
			fresh++
		}
	}
	// A new master counts from 0, in a container with the same process ids: it has read everything anew.
	restarted := now.Master != before.Master || now.Reloads < before.Reloads ||
		now.Reloads == before.Reloads && now.Uptime >= 0 && now.Uptime < before.Uptime
	switch {
	case restarted && len(now.Workers) > 0:
		if now.Failed > 0 {
			return loaded, "HAProxy was started anew meanwhile, and a reload has failed since"
		}
		return loaded, ""
	case restarted, now.Reloads == before.Reloads:
		return pending, ""
	case fresh > 0 && fresh == len(now.Workers):
		if now.Failed > 0 {
			return loaded, "HAProxy has loaded its configuration, and another reload has failed since"
		}
		return loaded, ""
	case fresh == 0 && now.Failed != 0:
		return failed, ""
	}
	return pending, ""
}

// explain is the error for a reload that failed. Where HAProxy has not said why, its check may.
func (how How) explain(ctx context.Context, alerts string) error {
	if how.Process != nil {
		alerts = how.Process.conceal(alerts)
	}
	if alerts == "" && how.Process != nil {
		if err := how.Process.Check(ctx, nil); fault.KindOf(err) == fault.Usage {
			alerts = err.Error()
		}
	}
	return refused(alerts)
}

func refused(alerts string) error {
	const what = "HAProxy has not loaded its configuration and goes on with the old one"
	if alerts == "" {
		return fault.Errorf(fault.Refused, what).
			WithHint("HAProxy's log says why; where haproxy -c finds nothing wrong, a port may be taken")
	}
	return fault.Errorf(fault.Refused, "%s: %s", what, alerts)
}

// gone is an error where HAProxy is known to have ended, so that waiting for it is of no use.
func (how How) gone() error {
	if how.Process == nil || how.Process.alive() {
		return nil
	}
	return fault.Errorf(fault.Pending, "HAProxy, process %d, has ended: %w", how.Process.PID, ErrDown)
}

// byCommand runs the command, which may do anything.
func (how How) byCommand(ctx context.Context) (Outcome, error) {
	o := Outcome{Way: "command"}
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", how.Command)
	cmd.Env = bare
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var err error
	o.Output, err = collect(cmd)
	_, ended := errors.AsType[*exec.ExitError](err)
	switch {
	case ctx.Err() != nil:
		return o, fmt.Errorf("run the command that reloads HAProxy: %w", ctx.Err())
	case ended:
		o.Doubt = fmt.Sprintf("the command that reloads HAProxy ended with %v; only what is served tells what it did", err)
	case err != nil:
		return o, fault.Errorf(fault.Usage, "run the command that reloads HAProxy: %w", err)
	default:
		o.Doubt = "the command that reloads HAProxy says that it worked; only what is served tells"
	}
	return o, nil
}

// poll calls ask until it is done or fails, at growing distances.
func poll(ctx context.Context, ask func() (done bool, err error)) error {
	for distance := firstPoll; ; distance = min(distance*3/2, lastPoll) {
		done, err := ask()
		if done || err != nil {
			return err
		}
		if err := wait(ctx, distance); err != nil {
			return err
		}
	}
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

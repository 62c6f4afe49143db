package master

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/certhook/certhook/pkg/fault"
)

// ways are those in which a master can be told to reload and is seen to have done it.
func ways(h *haproxy) map[string]How {
	p := h.find()
	return map[string]How{"socket": {CLI: h.cli(), Process: &p}, "signal": {Process: &p}}
}

func TestReload(t *testing.T) {
	for _, way := range []string{"socket", "signal"} {
		t.Run(way, func(t *testing.T) {
			h := newHAProxy(t).start()
			how := ways(h)[way]
			before := h.proc()

			o, err := Reload(t.Context(), how)
			after := h.proc()
			if err != nil || o.Doubt != "" || o.Worker != after.Workers[0].PID {
				t.Fatalf("%+v, %v; show proc %+v", o, err, after)
			}
			if after.Master != h.pid() || after.Reloads != before.Reloads+1 || after.Failed != 0 || after.has(before.Workers[0].PID) && len(after.Old) == 0 {
				t.Errorf("before %+v, after %+v", before, after)
			}

			o1 := o
			// Twice, since a second failure comes from another state.
			h.configure("no-such-keyword")
			for range 2 {
				before = after
				o, err = Reload(t.Context(), how)
				after = h.proc()
				if fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), "no-such-keyword") {
					t.Errorf("broken configuration: %+v, %v", o, err)
				}
				if after.Failed <= 0 || !after.has(o1.Worker) {
					t.Errorf("broken configuration: before %+v, after %+v", before, after)
				}
			}

			h.configure("")
			o, err = Reload(t.Context(), how)
			if after := h.proc(); err != nil || o.Doubt != "" || o.Worker == o1.Worker || after.Failed != 0 {
				t.Errorf("mended configuration: %+v, %v, %+v", o, err, after)
			}
		})
	}
}

func TestReloadThatCheckDoesNotForesee(t *testing.T) {
	for _, way := range []string{"socket", "signal"} {
		t.Run(way, func(t *testing.T) {
			h := newHAProxy(t).start()
			taken, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer taken.Close()
			h.configure("bind " + taken.Addr().String())
			if err := h.find().Check(t.Context(), nil); err != nil {
				t.Fatalf("check: %v", err)
			}
			o, err := Reload(t.Context(), ways(h)[way])
			if fault.KindOf(err) != fault.Refused || fault.HintOf(err) == "" {
				t.Errorf("port taken: %+v, %v", o, err)
			}
		})
	}
}

// A counter that begins anew is no reload that never comes.
func TestReloadAcrossRestart(t *testing.T) {
	h := newHAProxy(t).start()
	for range 3 {
		if _, err := Reload(t.Context(), How{CLI: h.cli()}); err != nil {
			t.Fatal(err)
		}
	}
	before := h.proc()
	h.stop(h.cmd)
	done := make(chan error, 1)
	how := How{CLI: h.cli(), Timeout: 30 * time.Second}
	var o Outcome
	go func() {
		done <- poll(t.Context(), func() (bool, error) {
			now, err := h.cli().Proc(t.Context())
			if errors.Is(err, ErrDown) {
				return false, nil
			} else if err != nil {
				return false, err
			}
			return how.judge(t.Context(), before, now, &o)
		})
	}()
	h.start()
	if err := <-done; err != nil || o.Worker == 0 || o.Worker != h.proc().Workers[0].PID {
		t.Errorf("%+v, %v", o, err)
	}
}

// While a reload that somebody else has asked for is under way the master answers nobody, and loses signals. That
// other reload may have read what was there before ours, so that it is not enough.
func TestReloadDuringAnother(t *testing.T) {
	for _, way := range []string{"socket", "signal"} {
		t.Run(way, func(t *testing.T) {
			h := newHAProxy(t)
			gate := h.gate()
			gate.open()
			how := ways(h.start())[way]
			gate.shut()

			if err := h.cmd.Process.Signal(syscall.SIGUSR2); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the master loads", func() bool { return !how.Process.ready() })
			if err := how.Process.Reload(t.Context()); !errors.Is(err, ErrBusy) {
				t.Errorf("signal: %v", err)
			}
			if _, err := h.cli().Proc(t.Context()); !errors.Is(err, ErrDown) {
				t.Errorf("show proc: %v", err)
			}
			done := make(chan error, 1)
			var o Outcome
			go func() {
				var err error
				o, err = Reload(t.Context(), how)
				done <- err
			}()
			select {
			case err := <-done:
				t.Fatalf("%+v, %v, while the other reload is under way", o, err)
			case <-time.After(300 * time.Millisecond):
			}
			gate.open()
			if err := <-done; err != nil || o.Doubt != "" {
				t.Fatalf("%+v, %v", o, err)
			}
			if p := h.proc(); p.Reloads != 2 || p.Workers[0].PID != o.Worker {
				t.Errorf("%+v; %+v", o, p)
			}
		})
	}
}

// A master that loads its first configuration would die of the signal.
func TestNoSignalBeforeTheFirstLoad(t *testing.T) {
	h := newHAProxy(t)
	gate := h.gate()
	h.launch()
	eventually(t, "the process is there", func() bool {
		_, err := Find(t.Context(), Hints{ConfigFiles: []string{h.path("h.cfg")}})
		return err == nil
	})
	p := h.find()
	if err := p.Reload(t.Context()); !errors.Is(err, ErrBusy) {
		t.Errorf("signal: %v", err)
	}
	gate.open()
	h.serving()
	if p.Start != h.find().Start {
		t.Error("it has been started anew")
	}
}

func TestReloadOfOneThatIsGone(t *testing.T) {
	h := newHAProxy(t).start()
	p := h.find()
	h.cmd.Process.Kill()
	h.cmd.Wait()
	for name, how := range map[string]How{"stale socket": {CLI: h.cli(), Process: &p}, "signal": {Process: &p}} {
		if _, err := Reload(t.Context(), how); fault.KindOf(err) != fault.Pending || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Without a process to look at there is no telling, and an end to waiting.
	_, err := Reload(t.Context(), How{CLI: h.cli(), Timeout: 100 * time.Millisecond})
	if fault.KindOf(err) != fault.Pending || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, ErrDown) {
		t.Errorf("stale socket: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Reload(ctx, How{CLI: h.cli()}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

func TestReloadByCommand(t *testing.T) {
	h := newHAProxy(t).start()
	first := h.proc()
	t.Setenv("CLOUDFLARE_API_TOKEN", "hush")
	for name, tt := range map[string]struct {
		command string
		output  string
	}{
		"works":            {fmt.Sprintf("kill -USR2 %d", h.pid()), ""},
		"exits with 3":     {"echo no such service >&2; exit 3", "no such service\n"},
		"has no secret":    {"echo [$CLOUDFLARE_API_TOKEN]", "[]\n"},
		"leaves a process": {"sleep 60 & echo $!", "*"},
	} {
		o, err := Reload(t.Context(), How{Command: tt.command})
		if err != nil || o.Doubt == "" || tt.output != "*" && o.Output != tt.output {
			t.Errorf("%s: %+v, %v", name, o, err)
		}
		if name == "leaves a process" {
			var pid int
			fmt.Sscan(o.Output, &pid)
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if strings.Contains(o.Doubt, "exit status") != (name == "exits with 3") {
			t.Errorf("%s: %s", name, o.Doubt)
		}
	}
	eventually(t, "the command has reloaded HAProxy", func() bool {
		p, err := h.cli().Proc(t.Context())
		return err == nil && p.Reloads == first.Reloads+1
	})
	if _, err := Reload(t.Context(), How{Command: "exec sleep 60", Timeout: 100 * time.Millisecond}); fault.KindOf(err) != fault.Pending {
		t.Errorf("a command that hangs: %v", err)
	}
	o, err := Reload(t.Context(), How{Command: "yes | head -c 5000000"})
	if err != nil || len(o.Output) > maxOutput+10 {
		t.Errorf("much output: %d octets, %v", len(o.Output), err)
	}
}

func TestNoWayToReload(t *testing.T) {
	h := newHAProxy(t)
	h.args = []string{"-db", "-f", h.path("h.cfg")}
	p := h.start().find()
	if p.MasterWorker {
		t.Errorf("%+v is called a master", p)
	}
	if _, err := Reload(t.Context(), How{Process: &p}); fault.KindOf(err) != fault.Usage {
		t.Errorf("%v", err)
	}
	if err := p.Reload(t.Context()); fault.KindOf(err) != fault.Usage {
		t.Errorf("signal: %v", err)
	}
}

func TestCompare(t *testing.T) {
	w := func(pids ...int) (list []Worker) {
		for _, pid := range pids {
			list = append(list, Worker{PID: pid})
		}
		return list
	}
	before := Proc{Master: 1, Reloads: 4, Uptime: 100, Workers: w(8), Old: w(7)}
	again := before
	again.Failed = 2
	for name, tt := range map[string]struct {
		before, now Proc
		want        verdict
	}{
		"nothing yet":                          {before, Proc{Master: 1, Reloads: 4, Uptime: 101, Workers: w(8)}, pending},
		"new worker":                           {before, Proc{Master: 1, Reloads: 5, Uptime: 101, Workers: w(9), Old: w(8)}, loaded},
		"old worker, failed":                   {before, Proc{Master: 1, Reloads: 5, Failed: 1, Uptime: 101, Workers: w(8)}, failed},
		"failed again":                         {again, Proc{Master: 1, Reloads: 5, Failed: 3, Uptime: 101, Workers: w(8)}, failed},
		"old worker, not failed yet":           {before, Proc{Master: 1, Reloads: 5, Uptime: 101, Workers: w(8)}, pending},
		"both":                                 {before, Proc{Master: 1, Reloads: 5, Uptime: 101, Workers: w(8, 9)}, pending},
		"both, after a failure":                {again, Proc{Master: 1, Reloads: 5, Failed: 2, Uptime: 101, Workers: w(8, 9)}, pending},
		"3.1: failed":                          {before, Proc{Master: 1, Reloads: 5, Failed: 1, Uptime: 101, Old: w(8)}, failed},
		"before 2.5: old worker":               {before, Proc{Master: 1, Reloads: 5, Failed: -1, Uptime: 101, Old: w(8)}, failed},
		"before 2.5: new worker":               {before, Proc{Master: 1, Reloads: 5, Failed: -1, Uptime: 101, Workers: w(9)}, loaded},
		"another's failed afterwards":          {before, Proc{Master: 1, Reloads: 6, Failed: 1, Uptime: 101, Workers: w(9), Old: w(8)}, loaded},
		"new master":                           {before, Proc{Master: 2, Reloads: 0, Workers: w(8)}, loaded},
		"new master that has no worker yet":    {before, Proc{Master: 2}, pending},
		"new master of the same id":            {before, Proc{Master: 1, Reloads: 0, Uptime: 1, Workers: w(8)}, loaded},
		"new master of the same id and count":  {before, Proc{Master: 1, Reloads: 4, Uptime: 1, Workers: w(8)}, loaded},
		"an old one that finishes is none new": {before, Proc{Master: 1, Reloads: 5, Failed: 1, Uptime: 101, Workers: w(7)}, failed},
	} {
		if got, _ := compare(tt.before, tt.now); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}

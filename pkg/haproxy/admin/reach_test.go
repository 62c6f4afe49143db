package admin

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/tests/haproxytest"
)

func TestLevel(t *testing.T) {
	for _, level := range []string{"user", "operator"} {
		t.Run(level, func(t *testing.T) {
			l, ctx := newLab(t, haproxytest.Options{Level: level}), t.Context()
			list, err := l.List(ctx)
			if level == "operator" && (err != nil || len(list.Names) != 2) {
				t.Errorf("list: %+v, %v", list, err)
			}
			errs := []error{l.Set(ctx, l.a, l.first.PEM()), l.Commit(ctx, l.a), l.Abort(ctx, l.a)}
			if level == "user" {
				_, one := l.Show(ctx, l.a)
				_, both := l.ShowAll(ctx, []string{l.a, l.b})
				errs = append(errs, err, one, both)
			}
			for i, err := range errs {
				if !errors.Is(err, ErrPermission) || fault.KindOf(err) != fault.Usage || !strings.Contains(fault.HintOf(err), "level admin") {
					t.Errorf("%d: %v, hint %q", i, err, fault.HintOf(err))
				}
			}
		})
	}
}

// Nobody is there: the file of the socket is gone, or left behind by a HAProxy that was killed.
func TestDown(t *testing.T) {
	l, ctx := newLab(t, haproxytest.Options{}), t.Context()
	all := func(why string) {
		_, list := l.List(ctx)
		_, show := l.Show(ctx, l.a)
		_, process := l.Process(ctx)
		for i, err := range []error{list, show, process, l.Set(ctx, l.a, l.first.PEM()), l.Commit(ctx, l.a), l.Abort(ctx, l.a)} {
			if !errors.Is(err, ErrDown) {
				t.Errorf("%s, %d: %v", why, i, err)
			}
		}
	}
	l.Kill()
	if _, err := os.Stat(l.AdminSocket); err != nil {
		t.Fatal(err)
	}
	all("stale")
	if err := os.Remove(l.AdminSocket); err != nil {
		t.Fatal(err)
	}
	all("missing")
	if err := os.WriteFile(l.AdminSocket, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	all("a file")
	l.Path = haproxytest.FreePort(t)
	all("nobody at the port")
}

// A HAProxy that is stopped, as under a debugger, takes connections and says nothing.
func TestStopped(t *testing.T) {
	l := newLab(t, haproxytest.Options{})
	l.Signal(syscall.SIGSTOP)
	defer l.Signal(syscall.SIGCONT)
	for !stopped(t, l.PID()) {
		time.Sleep(time.Millisecond)
	}
	c := &Client{Path: l.AdminSocket, Timeout: 50 * time.Millisecond}
	if _, err := c.List(t.Context()); !errors.Is(err, ErrEmpty) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("within its time: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := l.Abort(ctx, l.a); !errors.Is(err, ErrEmpty) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("within the caller's: %v", err)
	}
}

// stopped tells whether every thread of a process has stopped.
func stopped(t *testing.T, pid int) bool {
	t.Helper()
	threads, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task", "*", "stat"))
	if err != nil || len(threads) == 0 {
		t.Fatalf("process %d: %v", pid, err)
	}
	for _, file := range threads {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), ") T ") {
			return false
		}
	}
	return true
}

// A stats socket may also listen at a port.
func TestPort(t *testing.T) {
	port := haproxytest.FreePort(t)
	l := newLab(t, haproxytest.Options{Global: "stats socket ipv4@" + port + " level admin"})
	l.Path = port
	fresh := l.ca.Issue(haproxytest.Wish{}, "a.test")
	if err := l.Set(t.Context(), l.a, fresh.PEM()); err != nil {
		t.Fatal(err)
	}
	if err := l.Commit(t.Context(), l.a); err != nil {
		t.Fatal(err)
	}
	l.state(t, fresh.Leaf, "")
}

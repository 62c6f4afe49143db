package haproxytest

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// Tap stands in front of a socket of HAProxy's: it writes down the commands that pass, and answers some of them itself.
// What it does not answer it hands on as it comes, whole or not, in either direction.
type Tap struct {
	Path string

	behind   string
	mu       sync.Mutex
	commands []string
	faults   []*fault
	on       func(command string)
}

// Fault is how a command is answered in HAProxy's place.
type Fault struct {
	Reply  string // HAProxy ends its own with an empty line
	Silent bool   // say nothing and keep the connection
	Close  bool   // say nothing and end it
	Pass   bool   // hand the command to HAProxy all the same, and answer as above once it has done it
	Skip   int    // so many commands are let through before
	Times  int    // 0: always
}

type fault struct {
	Fault
	command string
}

// NewTap starts a tap in front of a HAProxy's stats socket.
func NewTap(tb TB, h *HAProxy) *Tap {
	tb.Helper()
	return newTap(tb, h.AdminSocket, filepath.Join(h.Dir, "tap.sock"))
}

// NewMasterTap starts a tap in front of a HAProxy's master socket.
func NewMasterTap(tb TB, h *HAProxy) *Tap {
	tb.Helper()
	return newTap(tb, h.MasterSocket, filepath.Join(h.Dir, "master-tap.sock"))
}

func newTap(tb TB, behind, path string) *Tap {
	tb.Helper()
	t := &Tap{Path: path, behind: behind}
	listener, err := net.Listen("unix", path)
	if err != nil {
		tb.Fatalf("haproxytest: %v", err)
	}
	done := make(chan struct{})
	var open sync.WaitGroup
	open.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			open.Go(func() { t.serve(conn.(*net.UnixConn), done) })
		}
	})
	tb.Cleanup(func() {
		close(done)
		listener.Close()
		open.Wait()
		os.Remove(path)
	})
	return t
}

// Break answers commands that begin so. Of several faults that fit, the first counts until it is used up.
func (t *Tap) Break(command string, f Fault) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.faults = append(t.faults, &fault{f, command})
}

// Mend ends all faults.
func (t *Tap) Mend() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.faults = nil
}

// On calls f before each command goes on to HAProxy, or is answered in its place; the client waits for f.
func (t *Tap) On(f func(command string)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.on = f
}

// Commands returns the commands so far, without what was sent along, and forgets them.
func (t *Tap) Commands() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.commands
	t.commands = nil
	return all
}

// Changes returns those of the commands that change something, and forgets all.
func (t *Tap) Changes() []string {
	var changes []string
	for _, c := range t.Commands() {
		if !strings.HasPrefix(c, "show ") {
			changes = append(changes, c)
		}
	}
	return changes
}

// hear writes a command down and returns the fault for it; ok is false where there is none.
func (t *Tap) hear(command string) (f Fault, ok bool) {
	t.mu.Lock()
	t.commands = append(t.commands, command)
	f, ok = t.pick(command)
	on := t.on
	t.mu.Unlock()
	if on != nil {
		on(command)
	}
	return f, ok
}

func (t *Tap) pick(command string) (Fault, bool) {
	for i, f := range t.faults {
		switch {
		case !strings.HasPrefix(command, f.command):
			continue
		case f.Skip > 0:
			f.Skip--
			return Fault{}, false
		case f.Times == 1:
			t.faults = append(t.faults[:i:i], t.faults[i+1:]...)
		case f.Times > 1:
			f.Times--
		}
		return f.Fault, true
	}
	return Fault{}, false
}

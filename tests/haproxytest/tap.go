package haproxytest

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Tap stands in front of a stats socket: it writes down the commands that pass, and answers some of them itself.
type Tap struct {
	Path string

	tb       TB
	behind   string
	mu       sync.Mutex
	commands []string
	faults   map[string]Fault // by the first words of a command
	on       func(command string)
}

// Fault is how a command is answered in HAProxy's place.
type Fault struct {
	Reply  string
	Silent bool // say nothing and keep the connection
	Close  bool // say nothing and end it
	Pass   bool // hand the command to HAProxy all the same, and answer by Reply
	Times  int  // 0: always
}

// NewTap starts a tap in front of a HAProxy's stats socket.
func NewTap(tb TB, h *HAProxy) *Tap {
	tb.Helper()
	t := &Tap{tb: tb, behind: h.AdminSocket, Path: filepath.Join(h.Dir, "tap.sock"), faults: map[string]Fault{}}
	l, err := net.Listen("unix", t.Path)
	if err != nil {
		tb.Fatalf("haproxytest: %v", err)
	}
	tb.Cleanup(func() { l.Close(); os.Remove(t.Path) })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go t.serve(conn)
		}
	}()
	return t
}

// Break answers commands that begin so.
func (t *Tap) Break(command string, f Fault) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.faults[command] = f
}

// Mend ends all faults.
func (t *Tap) Mend() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.faults = map[string]Fault{}
}

// On calls f before each command goes on to HAProxy.
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

func (t *Tap) fault(command string) (Fault, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.commands = append(t.commands, command)
	for prefix, f := range t.faults {
		if !strings.HasPrefix(command, prefix) {
			continue
		}
		switch f.Times {
		case 0:
		case 1:
			delete(t.faults, prefix)
		default:
			f.Times--
			t.faults[prefix] = f
		}
		return f, true
	}
	return Fault{}, false
}

func (t *Tap) serve(conn net.Conn) {
	defer conn.Close()
	request := make([]byte, 1<<20)
	n := 0
	for {
		_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
		m, err := conn.Read(request[n:])
		n += m
		text := string(request[:n])
		if err != nil || strings.Contains(text, "<<\n") && strings.HasSuffix(text, "\n\n") || !strings.Contains(text, "<<") && strings.HasSuffix(text, "\n") {
			break
		}
	}
	line, _, _ := strings.Cut(string(request[:n]), "\n")
	command := strings.TrimSuffix(line, " <<")
	f, broken := t.fault(command)
	t.mu.Lock()
	on := t.on
	t.mu.Unlock()
	if on != nil {
		on(command)
	}
	if broken && !f.Pass {
		switch {
		case f.Silent:
			_, _ = io.Copy(io.Discard, conn)
		case !f.Close:
			_, _ = io.WriteString(conn, f.Reply)
		}
		return
	}
	behind, err := net.Dial("unix", t.behind)
	if err != nil {
		return
	}
	defer behind.Close()
	if _, err := behind.Write(request[:n]); err != nil {
		return
	}
	reply, _ := io.ReadAll(behind)
	if broken {
		reply = []byte(f.Reply)
	}
	_, _ = conn.Write(reply)
}

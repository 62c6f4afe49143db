package haproxytest

import (
	"bufio"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
)

// Tap sits between a client and a socket of HAProxy's, at the socket's own path: it keeps every command, and
// can spoil the ones it is told to.
type Tap struct {
	real string // the socket, moved aside

	mu       sync.Mutex
	commands []Command
	faults   []*Fault
}

// Command is what a client sent: a line and, after "<<", lines up to an empty one.
type Command struct {
	Line    string // without the line end
	Payload string
}

// Deed is what becomes of a command.
type Deed int

// Deeds.
const (
	Pass    Deed = iota // on to HAProxy, as without a fault
	Answer              // HAProxy never hears of it, the client gets Fault.Reply
	Empty               // HAProxy never hears of it, the connection is closed
	Hang                // HAProxy never hears of it, and there is no answer as long as the client waits
	Swallow             // HAProxy does it, and the connection is closed without its answer
)

// Fault spoils commands.
type Fault struct {
	Command string // how the line begins: "commit ssl cert"
	Skip    int    // so many of these are let through before
	Times   int    // so many are spoilt; 0 means all
	Deed    Deed
	// Reply is Answer's. {name} stands for the certificate that the command is about. HAProxy ends what it
	// says with an empty line.
	Reply string
	// Before runs before the deed, such as a rival's command. It runs on the connection's goroutine, so the
	// client waits for it.
	Before func()
}

// Replies to put into a Fault, as HAProxy 2.6 words them.
const (
	Locked    = "Can't commit the certificate!\nOperations on certificates are currently locked!\n\n"
	Updated   = "Transaction updated for certificate {name}!\n\n"
	Created   = "Transaction created for certificate {name}!\n\n"
	Committed = "Committing {name}.\nSuccess!\n\n"
)

// Tap puts a tap on the stats socket until the test ends. HAProxy.AdminSocket is then the tap.
func (h *HAProxy) Tap() *Tap { h.tb.Helper(); return h.tap(h.AdminSocket) }

// TapMaster puts a tap on the master's socket, until the test ends or HAProxy makes the socket anew.
func (h *HAProxy) TapMaster() *Tap { h.tb.Helper(); return h.tap(h.MasterSocket) }

// tap moves the socket aside, which goes on to work under its new name, and listens in its place.
func (h *HAProxy) tap(path string) *Tap {
	h.tb.Helper()
	t := &Tap{real: path + ".real"}
	if err := os.Rename(path, t.real); err != nil {
		h.tb.Fatalf("haproxytest: %v", err)
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		h.tb.Fatalf("haproxytest: %v", err)
	}
	var open sync.WaitGroup
	done := make(chan struct{})
	open.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			open.Go(func() { t.serve(client.(*net.UnixConn), done) })
		}
	})
	h.tb.Cleanup(func() {
		close(done)
		listener.Close()
		open.Wait()
	})
	return t
}

// Fault adds a fault. Of several that match, the first added counts until it is used up.
func (t *Tap) Fault(f Fault) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.faults = append(t.faults, &f)
}

// Mend takes all faults away.
func (t *Tap) Mend() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.faults = nil
}

// Commands returns the lines of all commands since the start or the last Reset, in the order of their
// arrival.
func (t *Tap) Commands() []string {
	var lines []string
	for _, c := range t.Sent("") {
		lines = append(lines, c.Line)
	}
	return lines
}

// Sent returns the commands whose line begins like this.
func (t *Tap) Sent(prefix string) []Command {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(t.commands), func(c Command) bool {
		return !strings.HasPrefix(c.Line, prefix)
	})
}

// Reset forgets the commands so far.
func (t *Tap) Reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.commands = nil
}

// heard keeps a command and returns the fault that is for it.
func (t *Tap) heard(c Command) Fault {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.commands = append(t.commands, c)
	for i, f := range t.faults {
		if !strings.HasPrefix(c.Line, f.Command) {
			continue
		}
		if f.Skip > 0 {
			f.Skip--
			break
		}
		if f.Times == 1 {
			t.faults = slices.Delete(t.faults, i, i+1)
		} else if f.Times > 0 {
			f.Times--
		}
		return *f
	}
	return Fault{}
}

// serve hands one connection on, command by command, until either side or the test ends it.
func (t *Tap) serve(client *net.UnixConn, done <-chan struct{}) {
	defer client.Close()
	conn, err := net.Dial("unix", t.real)
	if err != nil {
		return // as closed as it gets from here
	}
	server := conn.(*net.UnixConn)
	defer server.Close()
	finished := make(chan struct{})
	defer close(finished)
	go func() {
		select {
		case <-done:
			client.Close()
			server.Close()
		case <-finished:
		}
	}()

	var answer sync.WaitGroup
	defer answer.Wait()
	var forwarding bool
	forward := func(to io.Writer, then func() error) {
		forwarding = true
		answer.Go(func() {
			_, _ = io.Copy(to, server)
			_ = then()
		})
	}
	in := bufio.NewReader(client)
	for {
		raw, command, err := next(in)
		if raw == "" {
			if !forwarding {
				forward(client, client.CloseWrite)
			}
			_ = server.CloseWrite()
			return
		}
		fault := t.heard(command)
		if fault.Before != nil {
			fault.Before()
		}
		switch fault.Deed {
		case Pass:
			if !forwarding {
				forward(client, client.Close)
			}
		case Swallow:
			if !forwarding {
				forward(io.Discard, client.Close)
			}
		case Answer:
			_, _ = io.WriteString(client, strings.ReplaceAll(fault.Reply, "{name}", command.name()))
			server.Close()
			return
		case Empty:
			server.Close()
			return
		case Hang:
			// A client that half-closes still waits; only its whole end, or the test's, sets us free.
			hang(client, done)
			server.Close()
			return
		}
		if _, werr := io.WriteString(server, raw); werr != nil || err != nil {
			_ = server.CloseWrite()
			return
		}
	}
}

// name is the certificate that a command is about.
func (c Command) name() string {
	fields := strings.Fields(c.Line)
	if len(fields) < 4 {
		return ""
	}
	return fields[3]
}

// next reads a command; raw is all of it as it came. An error may come with a command that is cut short.
func next(in *bufio.Reader) (raw string, c Command, err error) {
	line, err := in.ReadString('\n')
	raw, c.Line = line, strings.TrimRight(line, "\r\n")
	if !strings.HasSuffix(c.Line, "<<") {
		return raw, c, err
	}
	for err == nil {
		line, err = in.ReadString('\n')
		raw += line
		if line == "\n" {
			break
		}
		c.Payload += line
	}
	return raw, c, err
}

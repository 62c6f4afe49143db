package haproxytest

import (
	"bufio"
	"io"
	"net"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// serve hands one connection on, command by command, until either side or the test ends it.
func (t *Tap) serve(client *net.UnixConn, done <-chan struct{}) {
	defer client.Close()
	conn, err := net.Dial("unix", t.behind)
	if err != nil {
		return // the client meets an end without a word
	}
	server := conn.(*net.UnixConn)
	over := make(chan struct{})
	var helpers sync.WaitGroup
	defer helpers.Wait()
	defer close(over)
	defer server.Close()
	helpers.Go(func() {
		select {
		case <-done:
			client.Close()
			server.Close()
		case <-over:
		}
	})

	// The answers flow while commands still come; "answered" is the end of HAProxy's.
	var answered chan struct{}
	answer := func(to io.Writer) {
		if answered != nil {
			return
		}
		answered = make(chan struct{})
		helpers.Go(func() {
			defer close(answered)
			_, _ = io.Copy(to, server)
			if to == io.Writer(client) {
				client.Close() // as HAProxy does, also under a client that still writes
			}
		})
	}
	in := bufio.NewReader(client)
	for {
		raw, command, err := next(in)
		if raw != "" {
			f, broken := t.hear(command)
			if broken && !f.Pass {
				f.answer(client)
				return
			}
			if broken {
				answer(io.Discard)
				_, _ = io.WriteString(server, raw)
				<-answered
				f.answer(client)
				return
			}
			answer(client)
			if _, werr := io.WriteString(server, raw); werr != nil {
				err = werr
			}
		}
		if err != nil { // the client has said all: HAProxy may still be answering
			answer(client)
			_ = server.CloseWrite()
			<-answered
			return
		}
	}
}

// answer answers in HAProxy's place.
func (f Fault) answer(client *net.UnixConn) {
	switch {
	case f.Close:
	case f.Silent:
		hold(client)
	default:
		_, _ = io.WriteString(client, f.Reply)
	}
}

// next reads a command; raw is all of it as it came, and command its line without the "<<" before what is sent along,
// up to an empty line. An error may come with a command that is cut short.
func next(in *bufio.Reader) (raw, command string, err error) {
	raw, err = in.ReadString('\n')
	command = strings.TrimRight(raw, "\r\n")
	command, payload := strings.CutSuffix(command, "<<")
	for payload && err == nil {
		var line string
		line, err = in.ReadString('\n')
		raw += line
		if line == "\n" {
			break
		}
	}
	return raw, strings.TrimSpace(command), err
}

// hold keeps a connection until the client has closed all of it. One that has only said all still waits for an answer.
func hold(client *net.UnixConn) {
	_, _ = io.Copy(io.Discard, client)
	raw, err := client.SyscallConn()
	for closed := false; err == nil && !closed; {
		err = raw.Control(func(fd uintptr) {
			poll := []unix.PollFd{{Fd: int32(fd)}}
			_, perr := unix.Poll(poll, 20)
			closed = perr == nil && poll[0].Revents != 0 // POLLHUP: neither direction is left
		})
	}
}

package bindtest

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"

	"github.com/miekg/dns"
)

// Relay stands between a client and a server, on TCP, sees every message and can disturb each.
type Relay struct {
	Addr string // host:port for the client

	ctx context.Context // ends with the test

	mu       sync.Mutex
	server   string
	messages []*dns.Msg // from the client
	faults   []*fault
}

// Fault is what happens to a message or to its reply.
type Fault int

// The faults. All but Stall and ServFail let the message take effect.
const (
	LoseReply Fault = iota // the connection ends instead of the reply
	ServFail               // the relay answers itself, unsigned
	Stall                  // nothing happens until the test ends
	Unsign                 // the reply loses its signature
	Forge                  // the reply's signature is another one
	DropAA                 // the reply loses its signature and the AA bit
)

type fault struct {
	kind  Fault
	when  func(*dns.Msg) bool
	times int // how often at most; negative = always
}

// Question chooses questions for a type, IsUpdate updates.
func Question(qtype uint16) func(*dns.Msg) bool {
	return func(m *dns.Msg) bool { return m.Opcode == dns.OpcodeQuery && m.Question[0].Qtype == qtype }
}

// IsUpdate chooses updates.
func IsUpdate(m *dns.Msg) bool { return m.Opcode == dns.OpcodeUpdate }

// Always chooses every message.
func Always(*dns.Msg) bool { return true }

// Relay starts a relay to the server that ends with the test.
func (s *Server) Relay(tb TB) *Relay {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("bindtest: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &Relay{Addr: listener.Addr().String(), server: s.Addr.String(), ctx: ctx}
	var open sync.WaitGroup
	open.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			open.Go(func() { r.serve(conn) })
		}
	})
	tb.Cleanup(func() {
		listener.Close()
		cancel()
		open.Wait()
	})
	return r
}

// Break makes the next messages that when chooses fail, so many times; a negative number means always.
func (r *Relay) Break(kind Fault, when func(*dns.Msg) bool, times int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults = append(r.faults, &fault{kind, when, times})
}

// Mend ends all faults.
func (r *Relay) Mend() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults = nil
}

// To makes the relay lead to another server from now on.
func (r *Relay) To(s *Server) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.server = s.Addr.String()
}

func (r *Relay) dial() (net.Conn, error) {
	r.mu.Lock()
	at := r.server
	r.mu.Unlock()
	return net.Dial("tcp", at)
}

// Messages returns the client's messages so far.
func (r *Relay) Messages() []*dns.Msg {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]*dns.Msg(nil), r.messages...)
}

// note records a message and returns the fault that hits it, or nil.
func (r *Relay) note(m *dns.Msg) *fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.messages = append(r.messages, m)
	for _, f := range r.faults {
		if f.times != 0 && f.when(m) {
			f.times--
			return f
		}
	}
	return nil
}

// serve handles one connection; clients send one message each.
func (r *Relay) serve(client net.Conn) {
	defer client.Close()
	defer context.AfterFunc(r.ctx, func() { client.Close() })()
	raw, err := readFrame(client)
	m := new(dns.Msg)
	if err != nil || m.Unpack(raw) != nil {
		return
	}
	f := r.note(m)
	if f != nil {
		switch f.kind {
		case Stall:
			<-r.ctx.Done()
			return
		case ServFail:
			writeMsg(client, new(dns.Msg).SetRcode(m, dns.RcodeServerFailure))
			return
		}
	}
	server, err := r.dial()
	if err != nil {
		return
	}
	defer server.Close()
	writeFrame(server, raw)
	reply, err := readFrame(server)
	if err != nil || f != nil && f.kind == LoseReply {
		return
	}
	if f == nil {
		writeFrame(client, reply)
		return
	}
	answer := new(dns.Msg)
	if answer.Unpack(reply) != nil {
		return
	}
	t := answer.IsTsig()
	switch {
	case f.kind == Forge && t != nil:
		answer.Extra[len(answer.Extra)-1] = forged(t)
	case t != nil:
		answer.Extra = answer.Extra[:len(answer.Extra)-1]
	}
	if f.kind == DropAA {
		answer.Authoritative = false
	}
	writeMsg(client, answer)
}

// forged is a signature with its first octet changed.
func forged(t *dns.TSIG) *dns.TSIG {
	other := *t
	first := "00"
	if t.MAC[:2] == first {
		first = "01"
	}
	other.MAC = first + t.MAC[2:]
	return &other
}

// The errors of these are left to whoever waits at the other end.

func writeMsg(w io.Writer, m *dns.Msg) {
	if raw, err := m.Pack(); err == nil {
		writeFrame(w, raw)
	}
}

func writeFrame(w io.Writer, raw []byte) {
	_, _ = w.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(raw))), raw...))
}

func readFrame(r io.Reader) ([]byte, error) {
	var length [2]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	raw := make([]byte, binary.BigEndian.Uint16(length[:]))
	_, err := io.ReadFull(r, raw)
	return raw, err
}

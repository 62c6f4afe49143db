package resolver

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"
)

// Bounds of a memory for one server.
const (
	atOnce = 64 // questions on their way: each takes a socket, and servers limit whoever asks too much
	silent = 3  // questions without an answer, and never one with, after which a server is taken for dead
)

type memoryKey struct{}

// memory keeps answers.
type memory struct {
	ctx     context.Context // under which all questions are asked, whoever wants to know
	mu      sync.Mutex
	calls   map[question]*call
	servers map[Endpoint]*server
}

// question is all that an answer depends on.
type question struct {
	endpoint      Endpoint
	name          string // lower case
	qtype, qclass uint16
	rd, cd, do    bool
}

// call is a question that waits for its turn until that is closed, and its answer as soon as done is.
type call struct {
	turn chan struct{}
	done chan struct{}
	msg  *dns.Msg
	err  error
}

// server is what a memory knows of one endpoint.
type server struct {
	turns    chan struct{} // holds one for each question on its way
	mu       sync.Mutex
	answered bool
	timeouts int
}

// Remember returns a context under which [Exchange] asks a server each question once, however many want to know,
// and answers from memory for as long as the context lives. A question that has been asked is waited for even
// if those who wanted to know have gone, so that the next one does not ask again; with the context, that ends. A
// server that lets several questions go unanswered and never answers any is not asked any more.
func Remember(ctx context.Context) context.Context {
	if _, ok := ctx.Value(memoryKey{}).(*memory); ok {
		return ctx
	}
	return context.WithValue(ctx, memoryKey{}, &memory{ctx: ctx, calls: map[question]*call{}, servers: map[Endpoint]*server{}})
}

func keyOf(e Endpoint, m *dns.Msg) question {
	q := m.Question[0]
	k := question{endpoint: e, name: strings.ToLower(q.Name), qtype: q.Qtype, qclass: q.Qclass, rd: m.RecursionDesired, cd: m.CheckingDisabled}
	if opt := m.IsEdns0(); opt != nil {
		k.do = opt.Do()
	}
	return k
}

// exchange is [exchangeOnce] from memory. What it returns belongs to the caller.
func (mem *memory) exchange(ctx context.Context, limit time.Duration, e Endpoint, m *dns.Msg) (*dns.Msg, error) {
	key := keyOf(e, m)
	mem.mu.Lock()
	c, asked := mem.calls[key]
	if !asked {
		c = &call{turn: make(chan struct{}), done: make(chan struct{})}
		mem.calls[key] = c
		s := mem.servers[e]
		if s == nil {
			s = &server{turns: make(chan struct{}, atOnce)}
			mem.servers[e] = s
		}
		question := m.Copy()
		go func() {
			defer close(c.done)
			c.msg, c.err = s.ask(mem.ctx, limit, e, question, c.turn)
		}()
	}
	mem.mu.Unlock()
	c.await(ctx)
	select {
	case <-c.done:
	case <-ctx.Done():
		return nil, failure(e, m, cause(ctx, ctx.Err()))
	}
	if c.err != nil {
		return nil, c.err
	}
	r := c.msg.Copy()
	r.Id = m.Id
	return r, nil
}

// await waits until it is the question's turn, and stops the clock of [Limit] so long.
func (c *call) await(ctx context.Context) {
	select {
	case <-c.turn:
		return
	default:
	}
	clock, _ := ctx.Value(clockKey{}).(*clock)
	clock.hold()
	defer clock.release()
	select {
	case <-c.turn:
	case <-ctx.Done():
	}
}

// ask waits for its turn, closes turn and asks.
func (s *server) ask(ctx context.Context, limit time.Duration, e Endpoint, m *dns.Msg, turn chan<- struct{}) (*dns.Msg, error) {
	ended := sync.OnceFunc(func() { close(turn) })
	defer ended()
	select {
	case s.turns <- struct{}{}:
		defer func() { <-s.turns }()
	case <-ctx.Done():
		return nil, failure(e, m, cause(ctx, ctx.Err()))
	}
	ended()
	if s.dead() {
		return nil, failure(e, m, ErrTimeout)
	}
	r, err := exchangeOnce(ctx, limit, e, m)
	s.mu.Lock()
	defer s.mu.Unlock()
	if errors.Is(err, ErrTimeout) {
		s.timeouts++
	} else {
		s.answered = true
	}
	return r, err
}

func (s *server) dead() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.answered && s.timeouts >= silent
}

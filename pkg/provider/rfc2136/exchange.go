package rfc2136

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/miekg/dns"
)

const (
	// exchangeTime is for one connection, one message and its reply. TCP repeats a lost SYN after 1, 3 and 7
	// seconds.
	exchangeTime = 10 * time.Second
	firstWait    = 500 * time.Millisecond
	maxTries     = 3
	// maxOpen is how many connections are open at once; BIND lets ten wait to be accepted.
	maxOpen = 8
)

// server is the primary server and the key that it shares with us.
type server struct {
	addr string // host:port
	key  *key   // nil = nothing is signed
	now  func() time.Time
	wait time.Duration
	open chan struct{} // one element for each connection
}

func newServer(cfg Config) (*server, error) {
	k, err := newKey(cfg)
	if err != nil {
		return nil, err
	}
	s := &server{
		addr: cfg.Server, key: k, now: cfg.Now,
		wait: cmp.Or(cfg.RetryWait, firstWait), open: make(chan struct{}, maxOpen),
	}
	if s.now == nil {
		s.now = time.Now
	}
	return s, nil
}

// ask puts a question, without asking for recursion.
func (s *server) ask(ctx context.Context, name string, qtype uint16) (*dns.Msg, error) {
	m := new(dns.Msg).SetQuestion(dns.Fqdn(name), qtype)
	m.RecursionDesired = false
	return s.exchange(ctx, question(name, qtype), m, dns.RcodeSuccess, dns.RcodeNameError)
}

// exchange sends m and returns the reply if it can be believed and has one of the rcodes. Every error is a
// *failure, which asked introduces. What fails quickly for want of a connection is sent again: a server may
// just be starting anew, and doing the same update twice does no more than doing it once.
func (s *server) exchange(ctx context.Context, asked string, m *dns.Msg, rcodes ...int) (*dns.Msg, error) {
	for try, wait := 1, s.wait; ; try, wait = try+1, 2*wait {
		r, f := s.once(ctx, asked, m.Copy(), rcodes)
		if f == nil {
			return r, nil
		}
		if !f.passing() || try == maxTries || ctx.Err() != nil {
			return nil, f
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, f
		}
	}
}

// once sends m over a connection of its own.
func (s *server) once(parent context.Context, asked string, m *dns.Msg, rcodes []int) (*dns.Msg, *failure) {
	select {
	case s.open <- struct{}{}:
		defer func() { <-s.open }()
	case <-parent.Done():
	}
	if parent.Err() != nil {
		return nil, s.fail(asked, unsent, context.Cause(parent))
	}
	ctx, cancel := context.WithTimeout(parent, exchangeTime)
	defer cancel()

	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", s.addr)
	if err != nil {
		return nil, s.fail(asked, unsent, cause(parent, ctx, err))
	}
	defer conn.Close()
	// miekg/dns looks at a context's deadline only; this ends a wait that is cancelled, too.
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()

	c := &dns.Conn{Conn: conn}
	if s.key != nil {
		c.TsigProvider = s.key
		s.key.sign(m, s.now())
	}
	id, opcode := m.Id, m.Opcode
	if err := c.WriteMsg(m); err != nil {
		return nil, s.fail(asked, unanswered, cause(parent, ctx, err))
	}
	r, err := c.ReadMsg()
	switch {
	case r == nil:
		return nil, s.fail(asked, unanswered, cause(parent, ctx, err))
	case r.Id != id || !r.Response || r.Opcode != opcode:
		return nil, s.fail(asked, unusable, errors.New("it is not the reply to this message"))
	}
	return r, s.judge(asked, r, err, rcodes)
}

// errSilence is what a connection that ran out of time comes to.
var errSilence = errors.New("no reply within " + exchangeTime.String())

// cause says why a connection ended: because the caller's time was over or ours, or for a reason of its own.
func cause(parent, ctx context.Context, err error) error {
	switch {
	case parent.Err() != nil:
		return context.Cause(parent)
	case ctx.Err() != nil:
		return errSilence
	}
	return err
}

// judge decides whether a reply is one to work with; nil says yes. invalid is what is wrong with its form or
// signature.
func (s *server) judge(asked string, r *dns.Msg, invalid error, rcodes []int) *failure {
	t := r.IsTsig()
	proven := invalid == nil && (t != nil) == (s.key != nil)
	switch {
	case t != nil && t.Error != dns.RcodeSuccess:
		return s.keyFailure(asked, t)
	case !slices.Contains(rcodes, r.Rcode):
		f := s.fail(asked, denied, nil)
		f.rcode, f.proven = r.Rcode, proven
		return f
	case proven:
		return nil
	case t != nil && s.key == nil:
		return s.fail(asked, unusable, errors.New("it is signed though we have no key"))
	case t != nil:
		return s.fail(asked, unusable, fmt.Errorf("its signature does not hold: %w", invalid))
	case invalid != nil:
		return s.fail(asked, unusable, fmt.Errorf("it is malformed: %w", invalid))
	}
	return s.fail(asked, unsigned, nil)
}

package resolver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// Timeout bounds one exchange with one server, whatever the context allows.
const Timeout = 5 * time.Second

// udpSize is the largest UDP answer asked for; bigger ones risk fragments, which get lost.
const udpSize = 1232

// ErrTimeout means that no answer came in time.
var ErrTimeout = errors.New("no answer in time")

// Error is a question that one server did not answer, or refused to.
type Error struct {
	Server string
	Name   string // canonical
	Type   uint16
	Rcode  int    // the server's refusal; 0 where no usable message came
	Extra  string // what the server says about its refusal (RFC 8914), one line for people; often empty
	Err    error  // the cause where Rcode is 0
}

// Refusal returns the error that stands for m, a response whose code is no answer, or not where it came.
func Refusal(server, name string, qtype uint16, m *dns.Msg) *Error {
	return &Error{Server: server, Name: Canonical(name), Type: qtype, Rcode: m.Rcode, Extra: remark(m)}
}

func (e *Error) Error() string {
	return fmt.Sprintf("ask %s for %s %q: %s", e.Server, dns.Type(e.Type), e.Name, e.reason())
}

// reason says why there is no answer, without who was asked what.
func (e *Error) reason() string {
	switch {
	case e.Rcode == 0:
		return fmt.Sprint(e.Err)
	case e.Extra == "":
		return RcodeName(e.Rcode)
	}
	return fmt.Sprintf("%s (%s)", RcodeName(e.Rcode), e.Extra)
}

func (e *Error) Unwrap() error { return e.Err }

// RcodeName returns the mnemonic of a response code, such as SERVFAIL.
func RcodeName(rcode int) string {
	if s, ok := dns.RcodeToString[rcode]; ok {
		return s
	}
	return fmt.Sprintf("RCODE%d", rcode)
}

// NewQuestion returns a question for name, which need not be canonical, with EDNS.
func NewQuestion(name string, qtype uint16, recursion bool) *dns.Msg {
	m := new(dns.Msg)
	m.SetQuestion(dns.Fqdn(name), qtype)
	m.RecursionDesired = recursion
	m.SetEdns0(udpSize, false)
	return m
}

// Exchange puts m, which has one question, to e and returns the response whatever its response code. It
// gives up after [Timeout]. A response to another question is never returned. The error is an *[Error].
// Under a context of [Remember] the answer may come from memory.
func Exchange(ctx context.Context, e Endpoint, m *dns.Msg) (*dns.Msg, error) {
	return ExchangeWithin(ctx, Timeout, e, m)
}

// ExchangeWithin is [Exchange] with a limit of its own, which is counted from when the question is sent.
func ExchangeWithin(ctx context.Context, limit time.Duration, e Endpoint, m *dns.Msg) (*dns.Msg, error) {
	if mem, ok := ctx.Value(memoryKey{}).(*memory); ok {
		return mem.exchange(ctx, limit, e, m)
	}
	return exchangeOnce(ctx, limit, e, m)
}

// exchangeOnce really asks.
func exchangeOnce(ctx context.Context, limit time.Duration, e Endpoint, m *dns.Msg) (*dns.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r, err := exchange(ctx, e, m)
	if err == nil && r.Truncated {
		err = errors.New("the answer is truncated")
	}
	if err != nil {
		return nil, failure(e, m, cause(ctx, err))
	}
	return r, nil
}

// failure says who did not answer what.
func failure(e Endpoint, m *dns.Msg, err error) *Error {
	q := m.Question[0]
	return &Error{Server: e.String(), Name: Canonical(q.Name), Type: q.Qtype, Err: err}
}

func exchange(ctx context.Context, e Endpoint, m *dns.Msg) (*dns.Msg, error) {
	switch e.Transport {
	case UDP:
		return exchangeUDP(ctx, e, m)
	case TCP, TLS:
		return exchangeStream(ctx, e, m)
	case HTTPS:
		return exchangeHTTPS(ctx, e, m)
	case JSON:
		return exchangeJSON(ctx, e, m)
	}
	return nil, fmt.Errorf("transport %q is unknown", e.Transport)
}

// cause names the reason why an exchange failed: the end of its time before what that did to a socket.
func cause(ctx context.Context, err error) error {
	if timeout, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err); ok && timeout.Timeout() {
		err = ErrTimeout
	}
	switch ctx.Err() {
	case nil:
		return err
	case context.DeadlineExceeded:
		return ErrTimeout
	default:
		return context.Cause(ctx)
	}
}

// answers reports whether r is a response to the question of m. A refusal may leave the question out.
func answers(m, r *dns.Msg) bool {
	if !r.Response || r.Id != m.Id || r.Opcode != m.Opcode {
		return false
	}
	if len(r.Question) == 0 {
		return r.Rcode != dns.RcodeSuccess && r.Rcode != dns.RcodeNameError
	}
	q, a := m.Question[0], r.Question[0]
	return len(r.Question) == 1 && strings.EqualFold(q.Name, a.Name) && q.Qtype == a.Qtype && q.Qclass == a.Qclass
}

// Canonical returns a name found in a message in the form of pkg/dnsname: lower case, no trailing dot; ""
// for the root. Unlike dnsname.Parse it takes whatever DNS allows in a name.
func Canonical(name string) string {
	return strings.TrimSuffix(strings.ToLower(name), ".")
}

// TXT returns the value of a TXT record: its character-strings joined, as octets.
func TXT(rr *dns.TXT) string {
	s := strings.Join(rr.Txt, "")
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] != '\\' || i+1 == len(s):
			b.WriteByte(s[i])
		case i+3 < len(s) && isDigit(s[i+1]) && isDigit(s[i+2]) && isDigit(s[i+3]):
			b.WriteByte((s[i+1]-'0')*100 + (s[i+2]-'0')*10 + s[i+3] - '0')
			i += 3
		default:
			b.WriteByte(s[i+1])
			i++
		}
	}
	return b.String()
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

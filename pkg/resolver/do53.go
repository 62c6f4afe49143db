package resolver

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"github.com/miekg/dns"
)

var errMismatch = errors.New("the response does not belong to the question")

// exchangeUDP spends half of the time on UDP and the rest on TCP, since a lost datagram, a filter for big
// ones and a truncated answer are all cured by TCP.
func exchangeUDP(ctx context.Context, e Endpoint, m *dns.Msg) (*dns.Msg, error) {
	half := ctx
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		half, cancel = context.WithTimeout(ctx, time.Until(deadline)/2)
		defer cancel()
	}
	r, err := exchangeSocket(half, e, m, "udp")
	if (err == nil && !r.Truncated) || ctx.Err() != nil {
		return r, err
	}
	return exchangeStream(ctx, e, m)
}

func exchangeStream(ctx context.Context, e Endpoint, m *dns.Msg) (*dns.Msg, error) {
	return exchangeSocket(ctx, e, m, "tcp")
}

// exchangeSocket asks over a new socket. A server that does not know EDNS is asked again without it
// (RFC 6891, section 6.2.2).
func exchangeSocket(ctx context.Context, e Endpoint, m *dns.Msg, network string) (*dns.Msg, error) {
	r, err := ask(ctx, e, m, network)
	if err == nil && r.Rcode == dns.RcodeFormatError && m.IsEdns0() != nil && r.IsEdns0() == nil {
		plain := m.Copy()
		plain.Extra = nil
		return ask(ctx, e, plain, network)
	}
	return r, err
}

func ask(ctx context.Context, e Endpoint, m *dns.Msg, network string) (*dns.Msg, error) {
	conn, err := dial(ctx, e, network)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	// miekg/dns looks at a context's deadline only; this ends a wait that is cancelled.
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()

	c := &dns.Conn{Conn: conn, UDPSize: udpSize}
	if err := c.WriteMsg(m); err != nil {
		return nil, err
	}
	for {
		packet, err := c.ReadMsgHeader(nil)
		if err != nil {
			return nil, err
		}
		r := new(dns.Msg)
		if err := r.Unpack(packet); err == nil && answers(m, r) {
			return r, nil
		}
		if network == "tcp" {
			return nil, errMismatch
		}
		// Anyone can send a datagram: what does not fit is ignored, and the wait goes on.
	}
}

func dial(ctx context.Context, e Endpoint, network string) (net.Conn, error) {
	if e.Transport == TLS {
		d := tls.Dialer{Config: e.tlsConfig()}
		return d.DialContext(ctx, network, e.dialAddress())
	}
	var d net.Dialer
	return d.DialContext(ctx, network, e.dialAddress())
}

func (e Endpoint) tlsConfig() *tls.Config {
	return &tls.Config{ServerName: e.Host, RootCAs: e.Roots, MinVersion: tls.VersionTLS12}
}

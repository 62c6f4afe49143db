package dnstest

import (
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/miekg/dns"
)

// Server is one authoritative server of a [World].
type Server struct {
	Host string     // lower case, no trailing dot
	Addr netip.Addr // where it listens, on the world's port

	world   *World
	fqdn    string
	port    uint16
	faults  faults // guarded by world.mu
	closing sync.Once
	sockets sockets
}

// Close stops the server: from now on connections are refused. Compare [Server.SetDead].
func (s *Server) Close() {
	s.closing.Do(func() {
		s.SetDead(true) // for Ask
		s.sockets.stop()
	})
}

func (s *Server) handler(transport string) dns.HandlerFunc {
	return func(rw dns.ResponseWriter, req *dns.Msg) {
		from := sender(rw)
		entry := s.world.log(Query{Server: s.Host, Transport: transport, From: from}, req)

		s.world.mu.Lock()
		delay, blocked := s.faults.delay, slices.Contains(s.faults.blocked, from)
		s.world.mu.Unlock()
		if delay > 0 {
			select {
			case <-time.After(delay):
			case <-s.world.closed:
				return
			}
		}

		var resp *dns.Msg
		if !blocked {
			resp = s.reply(req, transport)
		}
		s.world.logAnswer(entry, resp)
		if resp != nil {
			send(rw, req, resp, transport)
		}
	}
}

// reply answers a question with the server's faults applied; nil is silence.
func (s *Server) reply(req *dns.Msg, transport string) *dns.Msg {
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	f := s.faults
	if f.dead || f.tcpOnly && transport == "udp" || f.udpOnly && transport == "tcp" {
		return nil
	}
	resp := new(dns.Msg).SetReply(req)
	if opt := req.IsEdns0(); opt != nil {
		resp.SetEdns0(maxUDP, opt.Do())
		if opt.Version() != 0 {
			resp.Rcode = dns.RcodeBadVers
			return resp
		}
	}
	switch {
	case req.Opcode != dns.OpcodeQuery:
		resp.Rcode = dns.RcodeNotImplemented
		return resp
	case len(req.Question) != 1:
		resp.Rcode = dns.RcodeFormatError
		return resp
	}
	q := req.Question[0]
	switch code := f.failNames[canonical(q.Name)]; {
	case code != 0:
		resp.Rcode = code
	case f.rcode != 0:
		resp.Rcode = f.rcode
	case f.lame, q.Qclass != dns.ClassINET:
		resp.Rcode = dns.RcodeRefused
	case f.truncate && transport == "udp":
		resp.Truncated = true
	default:
		s.answer(q, resp)
	}
	if f.noAA {
		resp.Authoritative = false
	}
	return resp
}

func (s *Server) addressRecord() dns.RR {
	if s.Addr.Is4() {
		return &dns.A{Hdr: header(s.fqdn, dns.TypeA, 3600), A: s.Addr.AsSlice()}
	}
	return &dns.AAAA{Hdr: header(s.fqdn, dns.TypeAAAA, 3600), AAAA: s.Addr.AsSlice()}
}

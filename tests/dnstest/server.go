package dnstest

import (
	"net"
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
	running []*dns.Server
	serving sync.WaitGroup
}

// start serves in the background; it returns when both sockets are being read.
func (s *Server) start(udp net.PacketConn, tcp net.Listener) {
	s.running = []*dns.Server{
		{PacketConn: udp, Handler: s.handler("udp")},
		{Listener: tcp, Handler: s.handler("tcp")},
	}
	var started sync.WaitGroup
	for _, srv := range s.running {
		started.Add(1)
		srv.NotifyStartedFunc = started.Done
		s.serving.Go(func() {
			if err := srv.ActivateAndServe(); err != nil {
				s.world.tb.Errorf("dnstest: server %q: %v", s.Host, err)
			}
		})
	}
	started.Wait()
}

// Close stops the server: from now on connections are refused. Compare [Server.SetDead].
func (s *Server) Close() {
	s.closing.Do(func() {
		s.SetDead(true) // for Ask
		for _, srv := range s.running {
			_ = srv.Shutdown()
		}
		s.serving.Wait() // the address is free only then
	})
}

func (s *Server) handler(transport string) dns.HandlerFunc {
	return func(rw dns.ResponseWriter, req *dns.Msg) {
		var from netip.Addr
		if ap, err := netip.ParseAddrPort(rw.RemoteAddr().String()); err == nil {
			from = ap.Addr()
		}
		entry := s.world.log(s.Host, transport, from, req)

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
		if resp == nil {
			return
		}
		if transport == "udp" {
			limit := dns.MinMsgSize
			if opt := req.IsEdns0(); opt != nil {
				limit = max(limit, min(int(opt.UDPSize()), maxUDP))
			}
			resp.Truncate(limit)
		}
		_ = rw.WriteMsg(resp) // the client may have gone
	}
}

// maxUDP is the largest answer over UDP, in octets: what DNS Flag Day 2020 recommends.
const maxUDP = 1232

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

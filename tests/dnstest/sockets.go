package dnstest

import (
	"net"
	"net/netip"
	"sync"

	"github.com/miekg/dns"
)

// sockets answers over UDP and TCP at one address.
type sockets struct {
	running []*dns.Server
	serving sync.WaitGroup
}

// open listens at an address, UDP and TCP.
func open(addr netip.Addr, port uint16) (net.PacketConn, net.Listener, error) {
	at := net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, port))
	udp, err := net.ListenUDP("udp", at)
	if err != nil {
		return nil, nil, err
	}
	tcp, err := net.Listen("tcp", at.String())
	if err != nil {
		udp.Close()
		return nil, nil, err
	}
	return udp, tcp, nil
}

// start serves in the background; it returns when both sockets are being read. handler makes one for "udp" and one
// for "tcp". failed is told of a server that ends before its time.
func (s *sockets) start(udp net.PacketConn, tcp net.Listener, handler func(transport string) dns.HandlerFunc, failed func(error)) {
	s.running = []*dns.Server{
		{PacketConn: udp, Handler: handler("udp")},
		{Listener: tcp, Handler: handler("tcp")},
	}
	var started sync.WaitGroup
	for _, srv := range s.running {
		started.Add(1)
		srv.NotifyStartedFunc = started.Done
		s.serving.Go(func() {
			if err := srv.ActivateAndServe(); err != nil {
				failed(err)
			}
		})
	}
	started.Wait()
}

// stop returns when the address is free.
func (s *sockets) stop() {
	for _, srv := range s.running {
		_ = srv.Shutdown()
	}
	s.serving.Wait()
}

// send writes a response as far as the transport takes it.
func send(rw dns.ResponseWriter, req, resp *dns.Msg, transport string) {
	if transport == "udp" {
		limit := dns.MinMsgSize
		if opt := req.IsEdns0(); opt != nil {
			limit = max(limit, min(int(opt.UDPSize()), maxUDP))
		}
		resp.Truncate(limit)
	}
	_ = rw.WriteMsg(resp) // the client may have gone
}

// maxUDP is the largest answer over UDP, in octets: what DNS Flag Day 2020 recommends.
const maxUDP = 1232

// sender returns the address that a question comes from.
func sender(rw dns.ResponseWriter) netip.Addr {
	ap, _ := netip.ParseAddrPort(rw.RemoteAddr().String()) // invalid is the zero value
	return ap.Addr()
}

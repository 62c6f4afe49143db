package dnstest

import (
	"net/netip"
	"slices"
	"time"
)

// faults is how a server deviates from a good one. The zero value is a good one.
type faults struct {
	lag       time.Duration
	lagFrom   uint64 // sequence number of the last change that the lag does not concern
	dead      bool
	lame      bool
	tcpOnly   bool
	udpOnly   bool
	truncate  bool
	noAA      bool
	chase     bool
	rcode     int
	delay     time.Duration
	failNames map[string]int
	blocked   []netip.Addr
}

func (s *Server) set(f func(*faults)) {
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	f(&s.faults)
}

// SetLag makes changes of data that come after this call visible on this server that much later than
// they are made. Zero lets it catch up at once.
func (s *Server) SetLag(d time.Duration) {
	s.set(func(f *faults) { f.lag, f.lagFrom = d, s.world.seq })
}

// SetDead makes the server take questions and never answer any.
func (s *Server) SetDead(on bool) { s.set(func(f *faults) { f.dead = on }) }

// SetBlocked makes the server dead for who asks from these addresses, as a firewall between does; none end it.
func (s *Server) SetBlocked(from ...netip.Addr) {
	s.set(func(f *faults) { f.blocked = slices.Clone(from) })
}

// SetLame makes the server answer REFUSED, as one does that was never told of its zones.
func (s *Server) SetLame(on bool) { s.set(func(f *faults) { f.lame = on }) }

// SetTCPOnly makes the server ignore questions over UDP, as behind a firewall.
func (s *Server) SetTCPOnly(on bool) { s.set(func(f *faults) { f.tcpOnly = on }) }

// SetUDPOnly makes the server ignore questions over TCP.
func (s *Server) SetUDPOnly(on bool) { s.set(func(f *faults) { f.udpOnly = on }) }

// SetTruncate makes the server answer over UDP with the TC bit and no records.
func (s *Server) SetTruncate(on bool) { s.set(func(f *faults) { f.truncate = on }) }

// SetNoAA takes the AA bit from every answer, as from a server that forwards to another.
func (s *Server) SetNoAA(on bool) { s.set(func(f *faults) { f.noAA = on }) }

// SetChase makes the server follow a CNAME into other zones of its own, as BIND does with recursion.
// Without it an answer ends at the CNAME.
func (s *Server) SetChase(on bool) { s.set(func(f *faults) { f.chase = on }) }

// SetRcode makes every answer an error of that code; 0 ends it.
func (s *Server) SetRcode(rcode int) { s.set(func(f *faults) { f.rcode = rcode }) }

// SetRcodeFor makes every answer about one name an error of that code; 0 ends it.
func (s *Server) SetRcodeFor(name string, rcode int) {
	s.set(func(f *faults) {
		if f.failNames == nil {
			f.failNames = map[string]int{}
		}
		f.failNames[canonical(name)] = rcode
	})
}

// SetDelay makes the server wait before it answers.
func (s *Server) SetDelay(d time.Duration) { s.set(func(f *faults) { f.delay = d }) }

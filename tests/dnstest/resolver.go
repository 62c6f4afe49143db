package dnstest

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/miekg/dns"
)

// Resolver is a recursive resolver that can be asked over the network and does what a test wants of it, also what
// no real one could be made to do. Without a fault it answers as [World.Ask] does, from no cache.
type Resolver struct {
	// Addr is where it listens, over UDP and TCP. Each resolver of a world has an address of its own.
	Addr netip.AddrPort

	world   *World
	ctx     context.Context // ends with the resolver
	end     context.CancelFunc
	sockets sockets
	closing sync.Once

	mu     sync.Mutex
	faults resolverFaults
}

// resolverFaults is how a resolver deviates from a good one.
type resolverFaults struct {
	dead     bool
	udpOnly  bool
	truncate bool
	rcode    int
	delay    time.Duration
	rcodes   map[string]int // by canonical name
	lies     map[dns.Question][]dns.RR
}

// AddResolver starts a resolver on a loopback address of its own.
func (w *World) AddResolver() *Resolver {
	w.tb.Helper()
	var err error
	for range 100 { // as AddServer
		var r *Resolver
		if r, err = newResolver(w, netip.AddrPortFrom(randomLoopback(), randomPort())); err == nil {
			return r
		}
	}
	w.tb.Fatalf("dnstest: no address for a resolver: %v", err)
	return nil
}

// AddResolverAt is [World.AddResolver] with a chosen address.
func (w *World) AddResolverAt(addr netip.AddrPort) *Resolver {
	w.tb.Helper()
	r, err := newResolver(w, addr)
	if err != nil {
		w.tb.Fatalf("dnstest: start a resolver: %v", err)
	}
	return r
}

func newResolver(w *World, addr netip.AddrPort) (*Resolver, error) {
	udp, tcp, err := open(addr.Addr(), addr.Port())
	if err != nil {
		return nil, err
	}
	r := &Resolver{Addr: addr, world: w}
	r.ctx, r.end = context.WithCancel(context.Background())
	r.sockets.start(udp, tcp, r.handler, func(err error) { w.tb.Errorf("dnstest: resolver %v: %v", r.URL(), err) })
	w.tb.Cleanup(r.Close)
	return r, nil
}

// URL returns the resolver as settings name one: "udp://127.1.2.3:10053".
func (r *Resolver) URL() string { return "udp://" + r.Addr.String() }

// Close stops the resolver: from now on connections are refused. Compare [Resolver.SetDead].
func (r *Resolver) Close() {
	r.closing.Do(func() {
		r.end()
		r.sockets.stop()
	})
}

// Queries returns the questions to this resolver so far, in the order of arrival. Those of the world have them, too.
func (r *Resolver) Queries() []Query {
	return slices.DeleteFunc(r.world.Queries(), func(q Query) bool { return q.Server != r.URL() })
}

func (r *Resolver) set(f func(*resolverFaults)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(&r.faults)
}

// Mend ends every fault.
func (r *Resolver) Mend() { r.set(func(f *resolverFaults) { *f = resolverFaults{} }) }

// SetDead makes the resolver take questions and never answer any.
func (r *Resolver) SetDead(on bool) { r.set(func(f *resolverFaults) { f.dead = on }) }

// SetUDPOnly makes the resolver ignore questions over TCP.
func (r *Resolver) SetUDPOnly(on bool) { r.set(func(f *resolverFaults) { f.udpOnly = on }) }

// SetTruncate makes the resolver answer over UDP with the TC bit and no records.
func (r *Resolver) SetTruncate(on bool) { r.set(func(f *resolverFaults) { f.truncate = on }) }

// SetDelay makes the resolver wait before it answers.
func (r *Resolver) SetDelay(d time.Duration) { r.set(func(f *resolverFaults) { f.delay = d }) }

// SetRcode makes every answer an error of that code; 0 ends it.
func (r *Resolver) SetRcode(rcode int) { r.set(func(f *resolverFaults) { f.rcode = rcode }) }

// SetRcodeFor makes every answer to a question about one name that code, of no records; 0 ends it. NXDOMAIN is one
// way to have heard of a name too early.
func (r *Resolver) SetRcodeFor(name string, rcode int) {
	r.set(func(f *resolverFaults) {
		if f.rcodes == nil {
			f.rcodes = map[string]int{}
		}
		f.rcodes[canonical(name)] = rcode
	})
}

// SetAnswer makes the resolver lie about one name and type: these records, in zone-file syntax with every name from
// the root, are the whole answer. Without any the answer says that there are none of the type.
func (r *Resolver) SetAnswer(name string, qtype uint16, records ...string) {
	r.world.tb.Helper()
	var rrs []dns.RR
	for _, text := range records {
		rr, err := dns.NewRR(text)
		if err != nil || rr == nil {
			r.world.tb.Fatalf("dnstest: malformed record %q: %v", text, err)
		}
		rrs = append(rrs, rr)
	}
	r.set(func(f *resolverFaults) {
		if f.lies == nil {
			f.lies = map[dns.Question][]dns.RR{}
		}
		f.lies[question(name, qtype)] = rrs
	})
}

func question(name string, qtype uint16) dns.Question {
	return dns.Question{Name: canonical(name), Qtype: qtype, Qclass: dns.ClassINET}
}

func (r *Resolver) handler(transport string) dns.HandlerFunc {
	return func(rw dns.ResponseWriter, req *dns.Msg) {
		entry := r.world.log(Query{Server: r.URL(), Transport: transport, From: sender(rw), Recursive: true}, req)
		resp := r.reply(req, transport)
		r.world.logAnswer(entry, resp)
		if resp != nil {
			send(rw, req, resp, transport)
		}
	}
}

// reply answers a question; nil is silence.
func (r *Resolver) reply(req *dns.Msg, transport string) *dns.Msg {
	resp := new(dns.Msg).SetReply(req)
	resp.RecursionAvailable = true
	if opt := req.IsEdns0(); opt != nil {
		resp.SetEdns0(maxUDP, opt.Do())
	}
	if req.Opcode != dns.OpcodeQuery || len(req.Question) != 1 {
		resp.Rcode = dns.RcodeFormatError
		return resp
	}
	q := question(req.Question[0].Name, req.Question[0].Qtype)

	r.mu.Lock()
	f := r.faults
	rcode := f.rcodes[q.Name]
	lie, lies := f.lies[q]
	r.mu.Unlock()
	if f.dead || f.udpOnly && transport == "tcp" {
		return nil
	}
	select {
	case <-time.After(f.delay):
	case <-r.ctx.Done():
		return nil
	}
	switch {
	case rcode != 0:
		resp.Rcode = rcode
	case f.rcode != 0:
		resp.Rcode = f.rcode
	case f.truncate && transport == "udp":
		resp.Truncated = true
	case lies:
		for _, rr := range lie {
			resp.Answer = append(resp.Answer, dns.Copy(rr))
		}
	default:
		if err := r.world.resolve(r.ctx, q, resp); err != nil {
			resp.Rcode, resp.Answer, resp.Ns = dns.RcodeServerFailure, nil, nil
		}
	}
	return resp
}

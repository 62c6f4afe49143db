package propagation

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/authority"
	"github.com/certhook/certhook/pkg/resolver"
)

const zoneName = "deleg.example.net"

// fake stands for all servers and resolvers. An address does what its behaviour says about a name at a
// time; without one it answers NXDOMAIN.
type fake struct {
	began time.Time

	mu        sync.Mutex
	behaviour map[string]behaviour
	asked     map[string][]time.Duration // when, by address
	names     map[string]int             // how often, by address and name
	flying    map[string]int
	most      int // questions at a time to one address
}

// behaviour answers a question with TXT values or fails.
type behaviour func(name string, after time.Duration) ([]string, error)

func newFake() *fake {
	return &fake{
		began: time.Now(), behaviour: map[string]behaviour{}, asked: map[string][]time.Duration{},
		names: map[string]int{}, flying: map[string]int{},
	}
}

func (f *fake) ask(ctx context.Context, addr, name string) (*dns.Msg, error) {
	f.mu.Lock()
	f.asked[addr] = append(f.asked[addr], time.Since(f.began))
	f.names[addr+" "+name]++
	f.flying[addr]++
	f.most = max(f.most, f.flying[addr])
	b := f.behaviour[addr]
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.flying[addr]--
	}()
	m := new(dns.Msg)
	m.Rcode = dns.RcodeNameError
	if b == nil {
		return m, nil
	}
	shown, err := b(name, time.Since(f.began))
	if errors.Is(err, resolver.ErrTimeout) {
		select {
		case <-time.After(2 * time.Second):
		case <-ctx.Done():
		}
	}
	if errors.Is(err, errElsewhere) {
		m.Rcode = dns.RcodeSuccess
		m.Answer = []dns.RR{&dns.TXT{Hdr: dns.RR_Header{Name: "other." + zoneName + ".", Rrtype: dns.TypeTXT}, Txt: []string{"value"}}}
		return m, nil
	}
	if err != nil {
		return nil, &resolver.Error{Server: addr, Name: name, Type: dns.TypeTXT, Err: err}
	}
	for _, v := range shown {
		m.Rcode = dns.RcodeSuccess
		// Split, as a long value comes.
		txt := []string{v[:len(v)/2], v[len(v)/2:]}
		m.Answer = append(m.Answer, &dns.TXT{Hdr: dns.RR_Header{Name: strings.ToUpper(name) + ".", Rrtype: dns.TypeTXT}, Txt: txt})
	}
	return m, nil
}

// wait runs a wait against the fake and returns its report, how long it took, and its error.
func (f *fake) wait(ctx context.Context, groups []Group, opts Options) (Report, time.Duration, error) {
	f.began = time.Now()
	w := newWaiter(opts)
	w.query = func(ctx context.Context, addr netip.Addr, name string) (*dns.Msg, error) {
		return f.ask(ctx, addr.String(), name)
	}
	w.resolve = func(ctx context.Context, e resolver.Endpoint, name string) (*dns.Msg, error) {
		return f.ask(ctx, e.String(), name)
	}
	report, err := w.wait(ctx, groups)
	return report, time.Since(f.began), err
}

// shows makes an address show values from some time on, and others always.
func shows(after time.Duration, want string, others ...string) behaviour {
	return func(_ string, now time.Duration) ([]string, error) {
		if now < after {
			return others, nil
		}
		return append([]string{want}, others...), nil
	}
}

// elsewhere stands for an answer with the value at another name.
func elsewhere(string, time.Duration) ([]string, error) { return nil, errElsewhere }

var errElsewhere = errors.New("at another name")

func fails(err error) behaviour {
	return func(string, time.Duration) ([]string, error) { return nil, err }
}

// until makes an address behave in one way up to a time and in another from then on.
func until(at time.Duration, before, then behaviour) behaviour {
	return func(name string, now time.Duration) ([]string, error) {
		if now < at {
			return before(name, now)
		}
		return then(name, now)
	}
}

// zone makes servers ns1, ns2, … with the given addresses each, separated by spaces.
func zone(servers ...string) authority.Zone {
	z := authority.Zone{Name: zoneName}
	for i, addrs := range servers {
		s := authority.Server{Name: fmt.Sprintf("ns%d.example", i+1)}
		for _, addr := range strings.Fields(addrs) {
			s.Addrs = append(s.Addrs, netip.MustParseAddr(addr))
		}
		z.Servers = append(z.Servers, s)
	}
	return z
}

func group(z authority.Zone) []Group {
	return []Group{{Zone: z, Values: []Value{{"a." + zoneName, "value"}}}}
}

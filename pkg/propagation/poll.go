package propagation

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/authority"
	"github.com/certhook/certhook/pkg/resolver"
)

// Pace of the questions to one address.
const (
	firstPause = 250 * time.Millisecond
	maxPause   = 2 * time.Second
	parallel   = 16 // questions at a time
	tries      = 2  // that fail before an address counts as silent

	// grace is how long an address that has answered, and lacked a value, is waited for after its last
	// answer. A server that limits its rate falls silent for a while and is there for a CA all the same, so
	// two failures say little; longer than this is taken for an outage.
	grace = 20 * time.Second
)

// poll asks addresses until they show values.
type poll struct {
	zone    string // "" for resolvers
	values  []Value
	servers int
	enough  func(answering, servers int) bool
	began   time.Time
	observe func(Event)
	changed chan struct{} // has an item after something changed

	mu      sync.Mutex // guards what the sources have learnt
	sources []*source
}

// half is the rule for the servers of a zone, one that for resolvers.
func half(answering, servers int) bool { return answering > 0 && 2*answering >= servers }
func one(answering, _ int) bool        { return answering > 0 }

// source is one address.
type source struct {
	server, addr string
	ask          func(ctx context.Context, name string) (*dns.Msg, error)

	missing  map[string][]string // values not seen yet, by name
	said     map[string]string   // last answer about those names
	last     map[string]string   // the same with the failure after it, if there was one
	heard    time.Time           // its last answer; zero before the first
	failures int                 // tries since the last answer
	done     time.Duration       // when it had shown everything
}

func (s *source) answered() bool { return !s.heard.IsZero() }
func (s *source) failing() bool  { return s.failures >= tries && len(s.missing) > 0 }

// silent reports whether the wait goes on without s, answering whether it counts; before either is told
// the wait cannot end.
func (s *source) silent() bool    { return s.failing() && (!s.answered() || time.Since(s.heard) >= grace) }
func (s *source) answering() bool { return s.answered() && !s.silent() }

func (w *waiter) newPoll(zone string, values []Value, enough func(answering, servers int) bool) *poll {
	return &poll{
		zone: zone, values: values, enough: enough, began: w.began, changed: make(chan struct{}, 1),
		observe: func(e Event) {
			if w.Observe != nil {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.Observe(e)
			}
		},
	}
}

func (p *poll) addServer(s authority.Server, query func(context.Context, netip.Addr, string) (*dns.Msg, error)) {
	p.servers++
	if len(s.Addrs) == 0 {
		src := p.add(s.Name, "", nil)
		src.failures = tries
		for name := range src.missing {
			src.last[name] = "it has no address"
		}
	}
	for _, addr := range s.Addrs {
		p.add(s.Name, addr.String(), func(ctx context.Context, name string) (*dns.Msg, error) {
			return query(ctx, addr, name)
		})
	}
}

func (p *poll) addResolver(e resolver.Endpoint, resolve func(context.Context, resolver.Endpoint, string) (*dns.Msg, error)) {
	p.servers++
	host := e.Host
	if host == "" {
		host = e.Addr.String()
	}
	p.add(host, e.String(), func(ctx context.Context, name string) (*dns.Msg, error) {
		return resolve(ctx, e, name)
	})
}

func (p *poll) add(server, addr string, ask func(context.Context, string) (*dns.Msg, error)) *source {
	s := &source{
		server: server, addr: addr, ask: ask,
		missing: map[string][]string{}, said: map[string]string{}, last: map[string]string{},
	}
	for _, v := range p.values {
		if !slices.Contains(s.missing[v.Name], v.Value) {
			s.missing[v.Name] = append(s.missing[v.Name], v.Value)
		}
	}
	p.sources = append(p.sources, s)
	return s
}

// start begins to ask. The returned function ends that and returns when nothing is asked any more.
func (p *poll) start(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for _, s := range p.sources {
		if s.ask != nil {
			wg.Go(func() { p.follow(ctx, s) })
		}
	}
	return func() {
		cancel()
		wg.Wait()
	}
}

// state reports whether no address answers, and whether the wait is over.
func (p *poll) state() (silent, settled bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	answering := map[string]bool{}
	silent, settled = true, true
	for _, s := range p.sources {
		if s.answering() {
			answering[s.server] = true
		}
		silent = silent && s.silent()
		settled = settled && (s.silent() || len(s.missing) == 0)
	}
	return silent, settled && p.enough(len(answering), p.servers)
}

// follow asks one address until it has shown everything.
func (p *poll) follow(ctx context.Context, s *source) {
	for try, pause := 0, firstPause; ; try++ {
		names := p.due(s)
		if len(names) == 0 {
			return
		}
		// One question tells whether an address answers at all, another one the next time.
		if probe := !p.known(s); probe {
			names = []string{names[try%len(names)]}
			p.round(ctx, s, names)
			if p.known(s) {
				continue
			}
		} else {
			p.round(ctx, s, names)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		pause = min(pause*3/2, maxPause)
	}
}

// known reports whether s answers at present.
func (p *poll) known(s *source) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return s.answered() && !s.failing()
}

// due returns the names about which s still has something to show.
func (p *poll) due(s *source) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var names []string
	for name := range s.missing {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// round asks about names in parallel and keeps what is learnt.
func (p *poll) round(ctx context.Context, s *source, names []string) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, parallel)
	errs := make([]error, len(names))
	for i, name := range names {
		slots <- struct{}{}
		wg.Go(func() {
			m, err := s.ask(ctx, name)
			if errs[i] = err; ctx.Err() == nil {
				p.learn(s, name, m, err)
			}
			<-slots
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return // what failed then says nothing about s
	}
	p.mu.Lock()
	if slices.Contains(errs, nil) {
		s.failures = 0
	} else {
		s.failures++
		if errors.Is(errs[0], resolver.ErrTimeout) {
			s.failures++ // UDP and TCP were tried
		}
	}
	p.mu.Unlock()
	p.signal()
}

// learn keeps one answer.
func (p *poll) learn(s *source, name string, m *dns.Msg, err error) {
	p.mu.Lock()
	var seen []string
	if err != nil {
		s.last[name] = brief(err)
		if said := s.said[name]; said != "" {
			s.last[name] = said + ", then " + s.last[name]
		}
	} else {
		shown := texts(m, name)
		s.heard = time.Now()
		s.said[name] = describe(m, shown)
		s.last[name] = s.said[name]
		s.missing[name] = slices.DeleteFunc(s.missing[name], func(value string) bool {
			if !slices.Contains(shown, value) {
				return false
			}
			seen = append(seen, value)
			return true
		})
		if len(s.missing[name]) == 0 {
			delete(s.missing, name)
		}
		if len(s.missing) == 0 {
			s.done = time.Since(p.began)
		}
	}
	p.mu.Unlock()
	for _, value := range seen {
		p.observe(Event{Server: s.server, Addr: s.addr, Value: Value{name, value}, Elapsed: time.Since(p.began)})
	}
	p.signal()
}

func (p *poll) signal() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// texts returns the values of the TXT records at name.
func texts(m *dns.Msg, name string) []string {
	var list []string
	for _, rr := range m.Answer {
		if rr, ok := rr.(*dns.TXT); ok && resolver.Canonical(rr.Hdr.Name) == name {
			list = append(list, resolver.TXT(rr))
		}
	}
	return list
}

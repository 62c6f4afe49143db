package resolver

import (
	"context"
	"errors"
	"sync"

	"github.com/miekg/dns"
)

// Probe is what one resolver of a panel says, its failures included, and whether DNSSEC is behind them.
type Probe struct {
	Server string   // as in [Statement]
	Plain  bool     // as in [Statement]
	Msg    *dns.Msg // whatever its response code; nil with Err
	Err    error

	// Unchecked is what the resolver says with checking disabled (CD; RFC 4035, section 3.2.2), where Msg is
	// SERVFAIL; nil where it then says nothing either.
	Unchecked *dns.Msg
}

// Bogus reports whether the resolver has an answer and withholds it because it fails validation.
func (p Probe) Bogus() bool {
	return p.Unchecked != nil && (p.Unchecked.Rcode == dns.RcodeSuccess || p.Unchecked.Rcode == dns.RcodeNameError)
}

// Probe is [Panel.Ask] for a diagnosis: it asks with the DO bit, so that AD shows what was validated (RFC 3655),
// and returns responses as they are.
func (p Panel) Probe(ctx context.Context, name string, qtype uint16) []Probe {
	probes := make([]Probe, len(p.seats))
	var wg sync.WaitGroup
	for i, s := range p.seats {
		wg.Go(func() { probes[i] = s.probe(ctx, name, qtype) })
	}
	wg.Wait()
	return probes
}

func (s seat) probe(ctx context.Context, name string, qtype uint16) Probe {
	calls := make([]func(context.Context) (Probe, error), len(s.endpoints))
	for i, e := range s.endpoints {
		calls[i] = func(ctx context.Context) (Probe, error) {
			p := Probe{Plain: e.Transport == UDP || e.Transport == TCP}
			q := NewQuestion(name, qtype, true)
			q.IsEdns0().SetDo()
			var err error
			if p.Msg, err = Exchange(ctx, e, q); err != nil || p.Msg.Rcode != dns.RcodeServerFailure {
				return p, err
			}
			q.CheckingDisabled = true
			p.Unchecked, _ = Exchange(ctx, e, q)
			return p, nil
		}
	}
	p, err := First(ctx, stagger, calls)
	p.Server = s.name
	if p.Err = err; err != nil {
		p.Msg = nil
	} else if p.Msg == nil {
		p.Err = errors.New("there is no server to ask")
	}
	return p
}

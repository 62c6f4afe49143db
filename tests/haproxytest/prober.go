package haproxytest

import (
	"context"
	"sync"
	"time"
)

// Prober connects to one listener for one name again and again, until Stop.
type Prober struct {
	mu      sync.Mutex
	tally   Tally
	stop    context.CancelFunc
	stopped chan struct{}
}

// Tally is what a prober has seen.
type Tally struct {
	Connections int
	Failures    []error
	Serials     []string // of the leaves, one for every change: A, B, A means that A came back
}

// Probe starts a prober: a new connection with a whole TLS handshake, 5 ms after the last one's end. It ends
// with the test at the latest.
func (h *HAProxy) Probe(name string) *Prober {
	ctx, cancel := context.WithCancel(context.Background())
	p := &Prober{stop: cancel, stopped: make(chan struct{})}
	go func() {
		defer close(p.stopped)
		for {
			p.once(Handshake{Addr: h.Addr, Name: name})
			select {
			case <-ctx.Done():
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	h.tb.Cleanup(func() { p.Stop() })
	return p
}

func (p *Prober) once(s Handshake) {
	// Not the prober's context: a connection that Stop cuts is no failure of HAProxy's.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	chain, err := s.Chain(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tally.Connections++
	if err != nil {
		p.tally.Failures = append(p.tally.Failures, err)
		return
	}
	serial := Serial(chain[0])
	if n := len(p.tally.Serials); n == 0 || p.tally.Serials[n-1] != serial {
		p.tally.Serials = append(p.tally.Serials, serial)
	}
}

// Stop ends the prober and returns what it has seen; a second call returns the same.
func (p *Prober) Stop() Tally {
	p.stop()
	<-p.stopped
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tally
}

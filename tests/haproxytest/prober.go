package haproxytest

import (
	"slices"
	"sync"
	"time"
)

// Prober makes a connection after the other, with a whole TLS handshake each, and notes what it sees.
type Prober struct {
	stop func()
	done sync.WaitGroup

	mu      sync.Mutex
	made    int
	failed  []string
	serials []string
}

// Probe starts one for a name: a connection 5 ms after the end of the last. It ends with the test at the latest.
func (h *HAProxy) Probe(name string) *Prober {
	stop := make(chan struct{})
	p := &Prober{stop: sync.OnceFunc(func() { close(stop) })}
	// One at a time, or else the order of what is seen would be anybody's guess.
	p.done.Go(func() {
		for {
			p.once(Look{Addr: h.Addr, Name: name})
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	})
	h.tb.Cleanup(func() { p.Stop() })
	return p
}

func (p *Prober) once(l Look) {
	chain, err := l.once()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made++
	if err != nil {
		p.failed = append(p.failed, err.Error())
		return
	}
	serial := Serial(chain[0])
	if n := len(p.serials); n == 0 || p.serials[n-1] != serial {
		p.serials = append(p.serials, serial)
	}
}

// Serials are those of the leaves that were seen, one for every change: A, B, A means that A came back.
func (p *Prober) Serials() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.serials)
}

// Stop ends it and returns how many connections it made, and what failed.
func (p *Prober) Stop() (made int, failed []string) {
	p.stop()
	p.done.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.made, p.failed
}

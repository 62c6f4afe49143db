package haproxytest

import (
	"fmt"
	"sync"
	"time"
)

// Prober makes a connection after the other, and notes what it sees.
type Prober struct {
	stop chan struct{}
	done sync.WaitGroup

	mu      sync.Mutex
	made    int
	failed  []string
	serials []string // in the order in which they were first seen
}

// Probe starts one for a name.
func (h *HAProxy) Probe(name string) *Prober {
	p := &Prober{stop: make(chan struct{})}
	addr := h.Addr
	for range 2 {
		p.done.Go(func() {
			for {
				select {
				case <-p.stop:
					return
				case <-time.After(3 * time.Millisecond):
				}
				chain, err := Handshake(addr, name)
				p.mu.Lock()
				p.made++
				if err != nil {
					p.failed = append(p.failed, err.Error())
				} else if serial := fmt.Sprintf("%X", chain[0].SerialNumber); len(p.serials) == 0 || p.serials[len(p.serials)-1] != serial {
					p.serials = append(p.serials, serial)
				}
				p.mu.Unlock()
			}
		})
	}
	return p
}

// Stop ends it and returns how many connections it made, and what failed.
func (p *Prober) Stop() (made int, failed []string) {
	close(p.stop)
	p.done.Wait()
	return p.made, p.failed
}

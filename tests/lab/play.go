package lab

import (
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
)

// Play calls run with a TB for a program that is no test, then what was left for clean-up, and returns the
// program's exit code: 1 if anything failed. Complaints go to stderr; Logf is silent.
func Play(run func(TB)) int {
	p := new(player)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer p.cleanUp()
		run(p)
	}()
	<-done
	if p.Failed() {
		return 1
	}
	return 0
}

type player struct {
	failed   atomic.Bool
	cleanups []func()
}

func (p *player) Helper()             {}
func (p *player) Logf(string, ...any) {}
func (p *player) Failed() bool        { return p.failed.Load() }
func (p *player) Cleanup(f func())    { p.cleanups = append(p.cleanups, f) }

func (p *player) Errorf(format string, args ...any) {
	p.failed.Store(true)
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}

func (p *player) Fatalf(format string, args ...any) {
	p.Errorf(format, args...)
	runtime.Goexit()
}

func (p *player) cleanUp() {
	for len(p.cleanups) > 0 {
		last := len(p.cleanups) - 1
		f := p.cleanups[last]
		p.cleanups = p.cleanups[:last]
		f()
	}
}

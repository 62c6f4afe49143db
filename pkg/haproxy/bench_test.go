package haproxy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/certhook/certhook/tests/haproxytest"
)

// One of many certificates is renewed: how long a run takes, a run with nothing to do, and, side by side, a plain
// reload until HAProxy serves what is new on disk.
func BenchmarkOneOfMany(b *testing.B) {
	for _, n := range []int{1000, 5000} {
		s := newScene(b, haproxytest.Options{})
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader) // one for all
		if err != nil {
			b.Fatal(err)
		}
		for i := range n {
			name := fmt.Sprintf("n%05d.test", i)
			s.lineages.Renew(name, s.ca.Issue(haproxytest.Wish{Key: key}, name))
		}
		long := func(a *Applier) { a.Timeout = 10 * time.Minute }
		if _, err := s.apply(long); err == nil {
			b.Fatal("HAProxy is down")
		}
		s.Start()
		if states, err := s.apply(long); err != nil {
			b.Fatalf("%v, %d states", err, len(states))
		}
		b.Run(fmt.Sprintf("%d/renewed", n), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				p := s.renew("n00007.test", haproxytest.Wish{})
				b.StartTimer()
				if _, err := s.apply(long); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				s.serves(p)
				b.StartTimer()
			}
		})
		b.Run(fmt.Sprintf("%d/nothing-to-do", n), func(b *testing.B) {
			for b.Loop() {
				if _, err := s.apply(long); err != nil || len(s.steps) > 0 {
					b.Fatal(err, s.steps)
				}
			}
		})
		b.Run(fmt.Sprintf("%d/plain-reload", n), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				p := s.ca.Issue(haproxytest.Wish{}, "n00008.test")
				s.put("n00008.test.pem", p)
				b.StartTimer()
				if err := s.Reload(); err != nil { // a master that still loads would lose a signal
					b.Fatal(err)
				}
				b.StopTimer()
				s.serves(p)
				b.StartTimer()
			}
		})
		s.Stop()
	}
}

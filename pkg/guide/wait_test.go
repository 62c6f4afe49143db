package guide

import (
	"testing"
	"time"

	"github.com/miekg/dns"
)

// The wait ends as soon as everything stands, and asks no more about what stood before.
func TestWaitEnds(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.Add("example.com", "svc.example.com A 192.0.2.1")
	passes := 0
	results := s.Wait(t.Context(), []Plan{plan(t, domain)}, nil, 30*time.Second, func([]Result) {
		if passes++; passes == 3 {
			s.Add("example.com", cnameRR)
			s.Add("example.com", caaRR)
		}
	})
	if !Fine(results) {
		t.Errorf("after %d passes: %+v", passes, results)
	}
	if passes != 5 {
		t.Errorf("%d passes, want one after the records appeared, and one that looks at all again", passes)
	}
}

// The time is kept however long the interval is, and the last pass comes just before it is up.
func TestWaitKeepsTime(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.Interval = time.Hour
	var passes []time.Time
	began := time.Now()
	const timeout = 2 * time.Second
	results := s.Wait(t.Context(), []Plan{plan(t, domain)}, nil, timeout, func([]Result) { passes = append(passes, time.Now()) })
	if took := time.Since(began); took > timeout+5*time.Second { // a busy machine is late, an hour is the interval
		t.Errorf("it took %v", took)
	}
	if len(passes) != 2 || passes[1].Sub(began) < timeout/2 {
		t.Errorf("passes at %v after %v", passes, began)
	}
	if Fine(results) || results[0].Findings[0].Status != Missing {
		t.Errorf("results %+v", results)
	}
}

// What was told once is not taken back by a time-out.
func TestWaitRemembers(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	results := s.Wait(t.Context(), []Plan{plan(t, domain)}, nil, 4*time.Second, func([]Result) {
		for _, server := range s.production {
			server.SetDead(true)
		}
		for _, r := range s.resolvers {
			r.SetDead(true)
		}
	})
	if f := finding(t, results, ChallengeCNAME); f.Status != Missing {
		t.Errorf("challenge: %+v", f)
	}
	if f := finding(t, results, CAA); f.Status != Open {
		t.Errorf("CAA: %+v", f)
	}
}

// What was fine does not stay so when nobody tells any more.
func TestWaitForgetsWhatWasFine(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.Add("example.com", "svc.example.com A 192.0.2.1")
	s.Add("example.com", caaRR)
	passes := 0
	results := s.Wait(t.Context(), []Plan{plan(t, domain)}, nil, 8*time.Second, func([]Result) {
		if passes++; passes == 1 {
			s.Add("example.com", cnameRR)
			for _, server := range s.production {
				server.SetRcodeFor(domain, dns.RcodeServerFailure)
			}
			for _, r := range s.resolvers {
				r.SetRcodeFor(domain, dns.RcodeServerFailure)
			}
		}
	})
	if f := finding(t, results, CAA); f.Status != Unknown {
		t.Errorf("CAA: %+v", f)
	}
}

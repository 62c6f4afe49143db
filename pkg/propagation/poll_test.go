package propagation

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/certhook/certhook/pkg/authority"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/resolver"
)

var google = resolver.Endpoint{Transport: resolver.HTTPS, Host: "dns.google", Port: 443, Path: "/dns-query"}

// TestWaitAuthoritative looks at when the wait ends, on the clock of synctest.
func TestWaitAuthoritative(t *testing.T) {
	const timeout = 40 * time.Second
	var (
		refused = errors.New("REFUSED")
		dead    = fails(resolver.ErrTimeout)
		lame    = fails(authority.ErrNotAuthoritative)
	)
	tests := []struct {
		name      string
		zone      authority.Zone
		behaviour map[string]behaviour
		from, to  time.Duration // in which the wait ends
		fails     bool
		says      []string // in the error
	}{
		{"at once", zone("192.0.2.1", "192.0.2.2"), map[string]behaviour{
			"192.0.2.1": shows(0, "value"), "192.0.2.2": shows(0, "value"),
		}, 0, 0, false, nil},
		{"beside others", zone("192.0.2.1"), map[string]behaviour{"192.0.2.1": shows(0, "value", "foreign", "valu")}, 0, 0, false, nil},
		{"when the last one shows it", zone("192.0.2.1", "192.0.2.2"), map[string]behaviour{
			"192.0.2.1": shows(0, "value"), "192.0.2.2": shows(5*time.Second, "value"),
		}, 5 * time.Second, 7 * time.Second, false, nil},
		{"another name's value is not it", zone("192.0.2.1"), map[string]behaviour{"192.0.2.1": elsewhere}, timeout, timeout, true, []string{"no TXT"}},
		{"another value is not it", zone("192.0.2.1"), map[string]behaviour{"192.0.2.1": shows(0, "valu", "value2", "Value")}, timeout, timeout, true, []string{"192.0.2.1", `"valu"`, "a." + zoneName}},
		{"one never shows it", zone("192.0.2.1", "192.0.2.2", "192.0.2.3"), map[string]behaviour{
			"192.0.2.1": shows(0, "value"), "192.0.2.2": shows(0, "value"),
		}, timeout, timeout, true, []string{"ns3.example", "192.0.2.3", "NXDOMAIN"}},
		{"a dead address has one time-out", zone("192.0.2.1", "192.0.2.2"), map[string]behaviour{
			"192.0.2.1": shows(0, "value"), "192.0.2.2": dead,
		}, 2 * time.Second, 2 * time.Second, false, nil},
		{"an unreachable address has two tries", zone("192.0.2.1 2001:db8::1"), map[string]behaviour{
			"192.0.2.1": shows(0, "value"), "2001:db8::1": fails(errors.New("network is unreachable")),
		}, firstPause, firstPause, false, nil},
		{"a lost try is forgiven", zone("192.0.2.1", "192.0.2.2"), map[string]behaviour{
			"192.0.2.1": shows(0, "value"), "192.0.2.2": until(1, fails(refused), shows(3*time.Second, "value")),
		}, 3 * time.Second, 5 * time.Second, false, nil},
		{"a lame server does not count", zone("192.0.2.1", "192.0.2.2"), map[string]behaviour{
			"192.0.2.1": shows(0, "value"), "192.0.2.2": lame,
		}, firstPause, firstPause, false, nil},
		{"less than half answer", zone("192.0.2.1", "192.0.2.2", "192.0.2.3"), map[string]behaviour{
			"192.0.2.1": shows(0, "value"), "192.0.2.2": dead, "192.0.2.3": lame,
		}, timeout, timeout, true, []string{"1 of 3", "ns2.example", resolver.ErrTimeout.Error(), "ns3.example", authority.ErrNotAuthoritative.Error()}},
		{"half answer", zone("192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"), map[string]behaviour{
			"192.0.2.1": shows(0, "value"), "192.0.2.2": shows(time.Second, "value"), "192.0.2.3": dead, "192.0.2.4": lame,
		}, 2 * time.Second, 3 * time.Second, false, nil},
		{"half of the servers, not of the addresses", zone("192.0.2.1", "192.0.2.2 192.0.2.3 192.0.2.4"), map[string]behaviour{
			"192.0.2.1": shows(0, "value"), "192.0.2.2": dead, "192.0.2.3": dead, "192.0.2.4": dead,
		}, 2 * time.Second, 2 * time.Second, false, nil},
		{"many addresses of one server are one server", zone("192.0.2.1 192.0.2.2 192.0.2.3", "192.0.2.4", "192.0.2.5"), map[string]behaviour{
			"192.0.2.1": shows(0, "value"), "192.0.2.2": shows(0, "value"), "192.0.2.3": shows(0, "value"), "192.0.2.4": dead, "192.0.2.5": dead,
		}, timeout, timeout, true, []string{"1 of 3"}},
		{"every address of a server must show it", zone("192.0.2.1 192.0.2.2"), map[string]behaviour{
			"192.0.2.1": shows(0, "value"), "192.0.2.2": shows(4*time.Second, "value"),
		}, 4 * time.Second, 6 * time.Second, false, nil},
		{"a server without address counts among the servers", zone("192.0.2.1", "", ""), map[string]behaviour{
			"192.0.2.1": shows(0, "value"),
		}, timeout, timeout, true, []string{"1 of 3", "ns2.example"}},
		{"a server that dies on the way is left out in the end", zone("192.0.2.1", "192.0.2.2"), map[string]behaviour{
			"192.0.2.1": shows(3*time.Second, "value"), "192.0.2.2": until(time.Second, shows(time.Hour, "value"), dead),
		}, grace, grace + 5*time.Second, false, nil},
		{"a server that refuses for a while is waited for", zone("192.0.2.1", "192.0.2.2"), map[string]behaviour{
			"192.0.2.1": shows(0, "value"), "192.0.2.2": until(time.Second, shows(time.Hour, "value"), until(15*time.Second, fails(refused), shows(0, "value"))),
		}, 15 * time.Second, 17 * time.Second, false, nil},
		{"a server that is silent for a while is waited for", zone("192.0.2.1", "192.0.2.2"), map[string]behaviour{
			"192.0.2.1": shows(0, "value"), "192.0.2.2": until(time.Second, shows(time.Hour, "value"), until(10*time.Second, dead, shows(0, "value"))),
		}, 10 * time.Second, 15 * time.Second, false, nil},
		{"each answer begins the grace anew", zone("192.0.2.1", "192.0.2.2"), map[string]behaviour{
			"192.0.2.1": shows(0, "value"), "192.0.2.2": func(_ string, after time.Duration) ([]string, error) {
				if after%(15*time.Second) < 3*time.Second {
					return nil, nil
				}
				return nil, refused
			},
		}, timeout, timeout, true, []string{"not visible", "ns2.example", "NXDOMAIN, then REFUSED", "a." + zoneName}},
		{"a server that comes to life counts", zone("192.0.2.1", "192.0.2.2"), map[string]behaviour{
			"192.0.2.1": shows(8*time.Second, "value"), "192.0.2.2": until(4*time.Second, dead, shows(12*time.Second, "value")),
		}, 12 * time.Second, 15 * time.Second, false, nil},
		{"anycast that forgets again", zone("192.0.2.1", "192.0.2.2"), map[string]behaviour{
			"192.0.2.1": until(1, shows(0, "value"), shows(time.Hour, "value")), "192.0.2.2": shows(3*time.Second, "value"),
		}, 3 * time.Second, 5 * time.Second, false, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				f.behaviour = tt.behaviour
				report, took, err := f.wait(t.Context(), group(tt.zone), Options{Timeout: timeout})
				if took < tt.from || took > tt.to {
					t.Errorf("took %v, want %v to %v", took, tt.from, tt.to)
				}
				if (err != nil) != tt.fails || err != nil && fault.KindOf(err) != fault.Propagation {
					t.Fatalf("error %v", err)
				}
				for _, word := range tt.says {
					if !strings.Contains(err.Error(), word) {
						t.Errorf("error %q does not say %q", err, word)
					}
				}
				want := 0
				for _, s := range tt.zone.Servers {
					want += max(1, len(s.Addrs))
				}
				if len(report.Servers) != want || report.Elapsed != took {
					t.Errorf("report %+v, want %d servers", report, want)
				}
			})
		})
	}
}

// TestWaitForOneThatAnswered looks at what is said of a server that answered and then failed, before and
// after it is left out.
func TestWaitForOneThatAnswered(t *testing.T) {
	for timeout, want := range map[time.Duration]State{10 * time.Second: Lacks, time.Minute: Lost} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			f.behaviour["192.0.2.1"] = shows(0, "value")
			f.behaviour["192.0.2.2"] = until(time.Second, shows(time.Hour, "value"), fails(errors.New("REFUSED")))
			report, _, err := f.wait(t.Context(), group(zone("192.0.2.1", "192.0.2.2")), Options{Timeout: timeout})
			if (err == nil) != (want == Lost) {
				t.Errorf("time-out %v: error %v", timeout, err)
			}
			if s := report.Servers[1]; s.State != want || s.Last != "NXDOMAIN, then REFUSED" {
				t.Errorf("time-out %v: server %+v, want %s", timeout, s, want)
			}
			if text := report.Summary(); strings.Contains(text, "did not answer") || !strings.Contains(text, "1 of 2") {
				t.Errorf("time-out %v: summary %q", timeout, text)
			}
			if warned := len(report.Warnings) == 1 && strings.Contains(report.Warnings[0], "ns2.example"); warned != (want == Lost) {
				t.Errorf("time-out %v: warnings %q", timeout, report.Warnings)
			}
		})
	}
}

func TestWaitPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.behaviour["192.0.2.1"] = shows(30*time.Second, "value")
		if _, _, err := f.wait(t.Context(), group(zone("192.0.2.1")), Options{}); err != nil {
			t.Fatal(err)
		}
		var pauses []time.Duration
		at := f.asked["192.0.2.1"]
		for i := 1; i < len(at); i++ {
			if pause := at[i] - at[i-1]; pause > 0 {
				pauses = append(pauses, pause)
			}
		}
		if !slices.IsSorted(pauses) || pauses[0] != 250*time.Millisecond || pauses[len(pauses)-1] != 2*time.Second || len(pauses) < 15 {
			t.Errorf("pauses %v, want them to grow from 250ms to 2s", pauses)
		}
	})
}

// TestWaitManyNames has 20 names with two values each, which come to be visible one after the other.
func TestWaitManyNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var values []Value
		visible := map[string]time.Duration{}
		for i := range 20 {
			name := fmt.Sprintf("n%02d.%s", i, zoneName)
			values = append(values, Value{name, "one"}, Value{name, "two"}, Value{name, "two"})
			visible[name] = time.Duration(i) * 500 * time.Millisecond
		}
		f := newFake()
		slow := func(name string, now time.Duration) ([]string, error) {
			time.Sleep(100 * time.Millisecond)
			if now < visible[name] {
				return []string{"one"}, nil
			}
			return []string{"two"}, nil // the first value is gone again, which does not matter
		}
		f.behaviour["192.0.2.1"], f.behaviour["192.0.2.2"] = slow, slow
		f.behaviour["192.0.2.3"] = fails(resolver.ErrTimeout)
		visible["n00."+zoneName] = time.Second // so that both values of a name come apart

		var mu sync.Mutex
		events := map[Event]bool{}
		report, took, err := f.wait(t.Context(), []Group{{zone("192.0.2.1", "192.0.2.2", "192.0.2.3"), values}}, Options{Observe: func(e Event) {
			if !mu.TryLock() {
				t.Error("two events at a time")
				return
			}
			defer mu.Unlock()
			if e.Elapsed > time.Since(f.began) || e.Elapsed <= 0 {
				t.Errorf("event %+v at %v", e, time.Since(f.began))
			}
			e.Elapsed = 0
			if events[e] {
				t.Errorf("event %+v came twice", e)
			}
			events[e] = true
		}})
		if err != nil || took < 9500*time.Millisecond || took > 12*time.Second {
			t.Errorf("error %v after %v", err, took)
		}
		if len(events) != 80 {
			t.Errorf("%d events, want one for each of 2 servers and 40 values", len(events))
		}
		if f.most < 10 || f.most > 16 {
			t.Errorf("%d questions at a time, want several and at most 16", f.most)
		}
		if first, last := f.names["192.0.2.1 n01."+zoneName], f.names["192.0.2.1 n19."+zoneName]; first >= last {
			t.Errorf("the first name was asked %d times, the last %d: a name is asked until it is seen", first, last)
		}
		if n := len(f.asked["192.0.2.3"]); n > 6 {
			t.Errorf("%d questions to a dead address, want one a try", n)
		}
		if len(report.Warnings) != 1 || !strings.Contains(report.Warnings[0], "ns3.example") {
			t.Errorf("warnings %q, want one about the dead server", report.Warnings)
		}
		for _, s := range report.Servers {
			if want := map[string]State{"192.0.2.1": Shows, "192.0.2.2": Shows, "192.0.2.3": Silent}[s.Addr]; s.State != want {
				t.Errorf("server %+v, want %s", s, want)
			}
		}
	})
}

func TestWaitGroupsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.behaviour["192.0.2.1"] = shows(3*time.Second, "value")
		f.behaviour["192.0.2.3"] = shows(4*time.Second, "value")
		groups := append(group(zone("192.0.2.1")), group(zone("192.0.2.2"))...)
		groups = append(groups, group(zone("192.0.2.3"))...)
		report, took, err := f.wait(t.Context(), groups, Options{Timeout: 10 * time.Second})
		if fault.KindOf(err) != fault.Propagation || took != 10*time.Second {
			t.Fatalf("error %v after %v, want the failure of the second group", err, took)
		}
		shown := 0
		for _, s := range report.Servers {
			if s.State == Shows && s.Elapsed >= 3*time.Second && s.Elapsed < 6*time.Second {
				shown++
			}
		}
		if shown != 2 {
			t.Errorf("report %+v, want that the other groups succeeded on their own time", report)
		}
	})
}

func TestWaitWithoutAuthoritativeServers(t *testing.T) {
	const extra = 45 * time.Second
	endpoints := []resolver.Endpoint{google}
	tests := []struct {
		name     string
		zone     authority.Zone
		opts     Options
		set      func(*fake)
		from, to time.Duration
		fails    bool
		asked    bool // the resolver
	}{
		{"resolvers after half a minute", zone("192.0.2.1", "192.0.2.2"), Options{Resolvers: endpoints}, func(f *fake) {
			f.behaviour[google.String()] = shows(0, "value")
		}, 32 * time.Second, 33 * time.Second, false, true},
		{"resolvers after the longer extra wait", zone("192.0.2.1", "192.0.2.2"), Options{Resolvers: endpoints, Extra: extra}, func(f *fake) {
			f.behaviour[google.String()] = shows(0, "value")
		}, extra + 2*time.Second, extra + 3*time.Second, false, true},
		{"no servers known", zone(), Options{Resolvers: endpoints}, func(f *fake) {
			f.behaviour[google.String()] = shows(0, "value")
		}, 30 * time.Second, 30 * time.Second, false, true},
		{"resolvers though the time-out is short", zone("192.0.2.1"), Options{Resolvers: endpoints, Timeout: 5 * time.Second}, func(f *fake) {
			f.behaviour[google.String()] = shows(36*time.Second, "value")
		}, 36 * time.Second, 39 * time.Second, false, true},
		{"resolvers never show it", zone("192.0.2.1"), Options{Resolvers: endpoints, Timeout: 60 * time.Second}, nil, 60 * time.Second, 61 * time.Second, true, true},
		{"the servers come to life", zone("192.0.2.1"), Options{Resolvers: endpoints}, func(f *fake) {
			f.behaviour["192.0.2.1"] = until(20*time.Second, fails(resolver.ErrTimeout), shows(50*time.Second, "value"))
		}, 50 * time.Second, 53 * time.Second, false, false},
		{"no resolvers either", zone("192.0.2.1"), Options{Timeout: 60 * time.Second}, nil, 60 * time.Second, 60 * time.Second, true, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				f.behaviour["192.0.2.1"], f.behaviour["192.0.2.2"] = fails(resolver.ErrTimeout), fails(resolver.ErrTimeout)
				if tt.set != nil {
					tt.set(f)
				}
				report, took, err := f.wait(t.Context(), group(tt.zone), tt.opts)
				if took < tt.from || took > tt.to {
					t.Errorf("took %v, want %v to %v", took, tt.from, tt.to)
				}
				if tt.fails && fault.KindOf(err) != fault.Propagation || !tt.fails && err != nil {
					t.Errorf("error %v", err)
				}
				if asked := len(f.asked[google.String()]) > 0; asked != tt.asked {
					t.Errorf("the resolver was asked: %v, want %v", asked, tt.asked)
				}
				if tt.asked && len(report.Warnings) == 0 {
					t.Error("no warning")
				}
				if tt.asked && f.asked[google.String()][0] < max(minBlindWait, tt.opts.Extra) {
					t.Errorf("the resolver was asked at %v", f.asked[google.String()])
				}
			})
		})
	}
}

func TestWaitModes(t *testing.T) {
	other := resolver.Endpoint{Transport: resolver.UDP, Addr: netip.MustParseAddr("192.0.2.53"), Port: 53}
	deadOne := resolver.Endpoint{Transport: resolver.UDP, Addr: netip.MustParseAddr("192.0.2.54"), Port: 53}
	tests := []struct {
		name     string
		opts     Options
		from, to time.Duration
		kind     fault.Kind // Other: no error
		servers  int        // in the report
		summary  string
	}{
		{"authoritative and an extra wait", Options{Extra: 7 * time.Second}, 7 * time.Second, 7 * time.Second, fault.Other, 1, "on the one server"},
		{"none", Options{Mode: None, Extra: 7 * time.Second}, 7 * time.Second, 7 * time.Second, fault.Other, 0, "not checked"},
		{"none, and no wait", Options{Mode: None}, 0, 0, fault.Other, 0, "not checked"},
		{"all resolvers that answer", Options{Mode: Resolvers, Resolvers: []resolver.Endpoint{google, other, deadOne}, Extra: 7 * time.Second}, 20 * time.Second, 23 * time.Second, fault.Other, 3, "2 of 3 resolvers"},
		{"resolvers in vain", Options{Mode: Resolvers, Resolvers: []resolver.Endpoint{google, other}, Extra: 2 * time.Second, Timeout: 3 * time.Second}, 5 * time.Second, 5 * time.Second, fault.Propagation, 2, "1 of 2"},
		{"only dead resolvers", Options{Mode: Resolvers, Resolvers: []resolver.Endpoint{deadOne}, Timeout: 9 * time.Second}, 9 * time.Second, 9 * time.Second, fault.Propagation, 1, "0 of 1"},
		{"no resolvers", Options{Mode: Resolvers}, 0, 0, fault.Usage, 0, ""},
		{"unknown", Options{Mode: "fast"}, 0, 0, fault.Usage, 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				f.behaviour["192.0.2.1"] = shows(0, "value")
				f.behaviour[google.String()] = shows(0, "value")
				f.behaviour[other.String()] = shows(20*time.Second, "value")
				f.behaviour[deadOne.String()] = fails(resolver.ErrTimeout)
				report, took, err := f.wait(t.Context(), group(zone("192.0.2.1")), tt.opts)
				if took < tt.from || took > tt.to {
					t.Errorf("took %v, want %v to %v", took, tt.from, tt.to)
				}
				if (err != nil) != (tt.kind != fault.Other) || fault.KindOf(err) != tt.kind {
					t.Errorf("error %v, want kind %v", err, tt.kind)
				}
				if nobody := tt.kind == fault.Propagation && strings.HasPrefix(tt.summary, "0 of"); strings.Contains(fault.HintOf(err), "DNS_RESOLVERS") != nobody {
					t.Errorf("hint %q", fault.HintOf(err))
				}
				if len(report.Servers) != tt.servers || !strings.Contains(report.Summary(), tt.summary) {
					t.Errorf("report %q: %+v", report.Summary(), report)
				}
				if tt.opts.Mode == Resolvers && len(f.asked["192.0.2.1"]) > 0 {
					t.Error("an authoritative server was asked")
				}
				if at := f.asked[google.String()]; len(at) > 0 && at[0] != tt.opts.Extra {
					t.Errorf("the resolver was first asked at %v, want after the extra wait", at[0])
				}
			})
		})
	}
}

func TestWaitCancelled(t *testing.T) {
	for _, opts := range []Options{{}, {Extra: time.Hour}, {Mode: None, Extra: time.Hour}, {Mode: Resolvers, Resolvers: []resolver.Endpoint{google}}} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			if opts.Extra > 0 {
				f.behaviour["192.0.2.1"] = shows(0, "value")
			}
			reason := errors.New("certbot is gone")
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(5*time.Second, func() { cancel(reason) })
			_, took, err := f.wait(ctx, group(zone("192.0.2.1")), opts)
			if !errors.Is(err, reason) || took != 5*time.Second {
				t.Errorf("%+v: error %v after %v, want the cause at once", opts, err, took)
			}
		})
	}
}

func TestWaitForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		for _, groups := range [][]Group{nil, {{Zone: zone("192.0.2.1")}}} {
			if _, took, err := f.wait(t.Context(), groups, Options{}); err != nil || took != 0 {
				t.Errorf("error %v after %v", err, took)
			}
		}
	})
}

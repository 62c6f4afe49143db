package dnstest

import (
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"
)

func TestLag(t *testing.T) {
	// Through reply, so that the clock can be a fake one.
	synctest.Test(t, func(t *testing.T) {
		w := &World{tb: t, Port: 1, zones: map[string]*Zone{}, failing: map[string]AskFailure{}}
		s := &Server{Host: "ns.test", world: w, fqdn: "ns.test."}
		w.servers = []*Server{s}
		w.AddZone("example.net", s)
		w.Add("example.net", "example.net TXT old")
		serial := func() uint32 {
			m := s.reply(new(dns.Msg).SetQuestion("example.net.", dns.TypeSOA), "udp")
			return m.Answer[0].(*dns.SOA).Serial
		}
		values := func() []string {
			var v []string
			for _, rr := range s.reply(new(dns.Msg).SetQuestion("example.net.", dns.TypeTXT), "udp").Answer {
				v = append(v, rr.(*dns.TXT).Txt...)
			}
			return v
		}
		before := serial()
		s.SetLag(2 * time.Second)
		w.Add("example.net", "example.net TXT new")
		time.Sleep(time.Second)
		w.Remove("example.net", "example.net TXT old")

		steps := []struct {
			after time.Duration
			want  []string
		}{
			{0, []string{"old"}},
			{time.Second - 1, []string{"old"}},
			{1, []string{"old", "new"}},
			{time.Second, []string{"new"}},
		}
		for _, st := range steps {
			time.Sleep(st.after)
			if got := values(); !slices.Equal(got, st.want) {
				t.Errorf("%v later: %q, want %q", st.after, got, st.want)
			}
		}
		if got := serial(); got != before+2 {
			t.Errorf("serial %d, was %d", got, before)
		}

		w.Add("example.net", "example.net TXT late")
		if slices.Contains(values(), "late") {
			t.Error("the lag has ended by itself")
		}
		s.SetLag(0)
		if !slices.Contains(values(), "late") {
			t.Error("without lag the server has not caught up")
		}
	})
}

func TestServerFaults(t *testing.T) {
	w, _, one, _ := example(t)
	lookup := func(transport string) string {
		resp, err := ask(t, one, transport, "www.example.com", dns.TypeA)
		switch {
		case err != nil:
			return "silent"
		case resp.Truncated:
			return "TC"
		case !resp.Authoritative && resp.Rcode == 0:
			return "no aa"
		default:
			return dns.RcodeToString[resp.Rcode]
		}
	}
	tests := []struct {
		name     string
		set      func(on bool)
		udp, tcp string
	}{
		{"dead", one.SetDead, "silent", "silent"},
		{"blocked", func(on bool) {
			from := netip.MustParseAddr(map[bool]string{true: "127.0.0.1", false: "127.0.0.2"}[on])
			one.SetBlocked(from)
		}, "silent", "silent"},
		{"lame", one.SetLame, "REFUSED", "REFUSED"},
		{"tcp only", one.SetTCPOnly, "silent", "NOERROR"},
		{"udp only", one.SetUDPOnly, "NOERROR", "silent"},
		{"truncate", one.SetTruncate, "TC", "NOERROR"},
		{"no aa", one.SetNoAA, "no aa", "no aa"},
		{"rcode", func(on bool) {
			one.SetRcode(map[bool]int{true: dns.RcodeServerFailure}[on])
		}, "SERVFAIL", "SERVFAIL"},
		{"rcode of a name", func(on bool) {
			one.SetRcodeFor("www.example.com", map[bool]int{true: dns.RcodeServerFailure}[on])
		}, "SERVFAIL", "SERVFAIL"},
	}
	for _, tt := range tests {
		tt.set(true)
		if udp, tcp := lookup("udp"), lookup("tcp"); udp != tt.udp || tcp != tt.tcp {
			t.Errorf("%s: %s over UDP, %s over TCP; want %s, %s", tt.name, udp, tcp, tt.udp, tt.tcp)
		}
		tt.set(false)
		if udp, tcp := lookup("udp"), lookup("tcp"); udp != "NOERROR" || tcp != "NOERROR" {
			t.Errorf("after %s: %s over UDP, %s over TCP", tt.name, udp, tcp)
		}
	}

	one.SetDelay(50 * time.Millisecond)
	start := time.Now()
	if got := lookup("udp"); got != "NOERROR" || time.Since(start) < 50*time.Millisecond {
		t.Errorf("delayed: %s after %v", got, time.Since(start))
	}
	one.Close()
	if got := lookup("tcp"); got != "silent" {
		t.Errorf("closed: %s", got)
	}
	if got := len(w.Matching("www.example.com", dns.TypeA)); got < 20 {
		t.Errorf("%d questions logged; those without an answer count too", got)
	}
}

// complaints is a TB that collects what would fail a test.
type complaints struct {
	*testing.T
	n int
}

func (c *complaints) Errorf(string, ...any) { c.n++ }

func TestMisuseFailsTheTest(t *testing.T) {
	tb := &complaints{T: t}
	w := New(tb)
	w.AddZone("example.net", w.AddServer("ns.test"))
	w.Add("example.net", "www.example.net CNAME example.org")
	for name, misuse := range map[string]func(){
		"no such zone":      func() { w.Add("example.com", "example.com A 192.0.2.1") },
		"outside":           func() { w.Add("example.net", "notexample.net A 192.0.2.1") },
		"relative name":     func() { w.Add("example.net", "www A 192.0.2.1") },
		"malformed":         func() { w.Add("example.net", "example.net A nonsense") },
		"empty":             func() { w.Add("example.net", "") },
		"beside a CNAME":    func() { w.Add("example.net", "www.example.net A 192.0.2.1") },
		"duplicate":         func() { w.Add("example.net", "www.example.net CNAME example.org") },
		"remove nothing":    func() { w.Remove("example.net", "x.example.net A 192.0.2.1") },
		"TXT outside":       func() { _ = w.AddTXT("example.net", "example.com", "v", 60) },
		"TXT in no zone":    func() { _ = w.AddTXT("example.com", "example.com", "v", 60) },
		"TXT empty":         func() { _ = w.AddTXT("example.net", "example.net", "", 60) },
		"TXT by a CNAME":    func() { _ = w.AddTXT("example.net", "www.example.net", "v", 60) },
		"TXT off no zone":   func() { _ = w.RemoveTXT("example.com", "example.com", "v") },
		"list of no zone":   func() { w.TXT("example.com", "example.com") },
		"all of no zone":    func() { w.AllTXT("example.com") },
		"over-long label":   func() { _ = w.AddTXT("example.net", string(make([]byte, 64))+".example.net", "v", 60) },
		"CNAME beside data": func() { w.Add("example.net", "example.net CNAME example.org") },
	} {
		tb.n = 0
		misuse()
		if tb.n != 1 {
			t.Errorf("%s: %d complaints, want 1", name, tb.n)
		}
	}
}

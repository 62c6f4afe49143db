package dnstest

import (
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// inquire puts a question to a resolver over the network.
func inquire(t *testing.T, r *Resolver, transport, name string, qtype uint16) (*dns.Msg, error) {
	t.Helper()
	c := dns.Client{Net: transport, Timeout: 300 * time.Millisecond}
	resp, _, err := c.Exchange(new(dns.Msg).SetQuestion(dns.Fqdn(name), qtype), r.Addr.String())
	return resp, err
}

func TestResolver(t *testing.T) {
	w, _, _, _ := example(t)
	r := w.AddResolver()
	w.FailAsk("fails.example.com", ServFail)
	const challenge = "_acme-challenge.svc.example.com"
	good, err := w.Ask(t.Context(), challenge, dns.TypeTXT)
	if err != nil {
		t.Fatal(err)
	}
	const sink = "NOERROR |  |  | "
	tests := []struct {
		about            string
		fault            func()
		name             string
		qtype            uint16
		overUDP, overTCP string // "" is silence
	}{
		{"no fault", func() {}, challenge, dns.TypeTXT, brief(good), brief(good)},
		{"a name that fails", func() {}, "fails.example.com", dns.TypeA, "SERVFAIL |  |  | ", "SERVFAIL |  |  | "},
		{"truncates", func() { r.SetTruncate(true) }, challenge, dns.TypeTXT, sink, brief(good)},
		{"truncates in vain", func() { r.SetTruncate(true); r.SetUDPOnly(true) }, challenge, dns.TypeTXT, sink, ""},
		{"fails", func() { r.SetRcode(dns.RcodeServerFailure) }, challenge, dns.TypeTXT, "SERVFAIL |  |  | ", "SERVFAIL |  |  | "},
		{"has heard too early", func() { r.SetRcodeFor("WWW.example.com.", dns.RcodeNameError) }, "www.example.com", dns.TypeA, "NXDOMAIN |  |  | ", "NXDOMAIN |  |  | "},
		{"has no records", func() { r.SetAnswer(challenge, dns.TypeTXT) }, challenge, dns.TypeTXT, sink, sink},
		{
			"lies", func() { r.SetAnswer("example.com", dns.TypeCAA, `example.com CAA 0 issue "old.example"`) },
			"EXAMPLE.com", dns.TypeCAA, `NOERROR | example.com. CAA 0 issue "old.example" |  | `, `NOERROR | example.com. CAA 0 issue "old.example" |  | `,
		},
		{"another type", func() { r.SetAnswer(challenge, dns.TypeA, challenge+" A 192.0.2.9") }, challenge, dns.TypeTXT, brief(good), brief(good)},
		{"dead", func() { r.SetDead(true) }, challenge, dns.TypeTXT, "", ""},
		{"slow", func() { r.SetDelay(time.Minute) }, challenge, dns.TypeTXT, "", ""},
	}
	for _, tt := range tests {
		r.Mend()
		tt.fault()
		for transport, want := range map[string]string{"udp": tt.overUDP, "tcp": tt.overTCP} {
			before := len(r.Queries())
			resp, err := inquire(t, r, transport, tt.name, tt.qtype)
			switch {
			case (want == "") != (err != nil):
				t.Errorf("%s, %s: %v, %v", tt.about, transport, resp, err)
			case want != "" && brief(resp) != want:
				t.Errorf("%s, %s:\n got %s\nwant %s", tt.about, transport, brief(resp), want)
			case want != "" && (!resp.RecursionAvailable || resp.Truncated != strings.HasPrefix(tt.about, "truncates") && transport == "udp"):
				t.Errorf("%s, %s: %v", tt.about, transport, resp)
			}
			asked := r.Queries()[before:]
			if len(asked) != 1 || asked[0].Name != strings.ToLower(tt.name) || asked[0].Type != tt.qtype || asked[0].Transport != transport || !asked[0].Recursive {
				t.Errorf("%s, %s: noted as %v", tt.about, transport, asked)
			}
		}
	}
	r.Close()
	if _, err := inquire(t, r, "tcp", challenge, dns.TypeTXT); err == nil {
		t.Error("an answer after Close")
	}
}

// Resolvers of one world are told apart by address, in the world's log too.
func TestResolversAreApart(t *testing.T) {
	w, _, _, _ := example(t)
	a, b := w.AddResolver(), w.AddResolver()
	if a.Addr.Addr() == b.Addr.Addr() {
		t.Errorf("both listen at %v", a.Addr)
	}
	if _, err := inquire(t, a, "udp", "www.example.com", dns.TypeA); err != nil {
		t.Fatal(err)
	}
	if len(a.Queries()) != 1 || len(b.Queries()) != 0 {
		t.Errorf("asked: %v and %v", a.Queries(), b.Queries())
	}
	if got := w.Matching("www.example.com", dns.TypeA); len(got) != 1 || got[0].Server != a.URL() {
		t.Errorf("the world's log: %v", got)
	}
}

package guide

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

func TestRoutingCNAME(t *testing.T) {
	t.Parallel()
	const gw = "gw.example.net"
	stale := func(change func(*scene)) func(*scene) { // one server keeps what stood before
		return func(s *scene) {
			s.production[1].SetLag(time.Hour)
			change(s)
		}
	}
	tests := []struct {
		name    string
		of      string // domain unless said
		zone    []string
		gateway []string // addresses
		set     func(*scene)
		method  Method
		want    Status
		remark  string
	}{
		{name: "CNAME", zone: []string{"svc.example.com CNAME " + gw}, gateway: []string{"A 192.0.2.9"}, want: OK},
		{name: "CNAME by way of another", zone: []string{"svc.example.com CNAME via.example.com", "via.example.com CNAME " + gw}, gateway: []string{"A 192.0.2.9"}, want: OK},
		{name: "CNAME of a wildcard", of: "*." + domain, zone: []string{"*.svc.example.com CNAME " + gw}, gateway: []string{"A 192.0.2.9"}, want: OK},
		{name: "target does not resolve, dns-01", zone: []string{"svc.example.com CNAME " + gw}, want: OK, remark: "target does not resolve"},
		{name: "target does not resolve, tls-alpn-01", zone: []string{"svc.example.com CNAME " + gw}, method: TLSALPN01, want: Wrong},
		{name: "target resolves, tls-alpn-01", zone: []string{"svc.example.com CNAME " + gw}, gateway: []string{"AAAA 2001:db8::9"}, method: TLSALPN01, want: OK},
		{name: "flattened apex", of: "example.com", zone: []string{"example.com A 192.0.2.9"}, gateway: []string{"A 192.0.2.9", "A 192.0.2.10"}, want: OK},
		{name: "flattened, IPv6 only", of: "example.com", zone: []string{"example.com AAAA 2001:db8::9"}, gateway: []string{"AAAA 2001:db8::9"}, want: OK},
		{name: "an address too many", of: "example.com", zone: []string{"example.com A 192.0.2.9", "example.com A 192.0.2.66"}, gateway: []string{"A 192.0.2.9"}, want: Wrong},
		{name: "other addresses", zone: []string{"svc.example.com A 192.0.2.1"}, gateway: []string{"A 192.0.2.9"}, want: Wrong},
		{name: "addresses, and the gateway has none", zone: []string{"svc.example.com A 192.0.2.1"}, want: Wrong},
		{name: "CNAME elsewhere", zone: []string{"svc.example.com CNAME old.example.com", "old.example.com A 192.0.2.1"}, gateway: []string{"A 192.0.2.9"}, want: Wrong},
		{name: "CNAME elsewhere that ends at the same addresses", zone: []string{"svc.example.com CNAME old.example.com", "old.example.com A 192.0.2.9"}, gateway: []string{"A 192.0.2.9"}, want: OK},
		{name: "CNAME in a circle", zone: []string{"svc.example.com CNAME x.example.com", "x.example.com CNAME svc.example.com"}, gateway: []string{"A 192.0.2.9"}, want: Wrong},
		{name: "the gateway in a circle, tls-alpn-01", zone: []string{"svc.example.com CNAME " + gw}, gateway: []string{"CNAME svc.example.com"}, method: TLSALPN01, want: Wrong},
		{name: "nothing", gateway: []string{"A 192.0.2.9"}, want: Missing},

		{name: "one server alone still has the CNAME", zone: []string{"svc.example.com CNAME " + gw}, gateway: []string{"A 192.0.2.9"}, set: stale(func(s *scene) {
			s.Remove("example.com", "svc.example.com CNAME "+gw)
		}), want: Unknown, remark: "ns2.example.com"},
		{name: "one server still leads elsewhere", zone: []string{"svc.example.com CNAME old.example.com"}, gateway: []string{"A 192.0.2.9"}, set: stale(func(s *scene) {
			s.Remove("example.com", "svc.example.com CNAME old.example.com")
			s.Add("example.com", "svc.example.com CNAME "+gw)
		}), want: Unknown, remark: "ns2.example.com"},
		{name: "one server has an address besides", zone: []string{"svc.example.com A 192.0.2.9"}, gateway: []string{"A 192.0.2.9"}, set: stale(func(s *scene) {
			s.Add("example.com", "svc.example.com A 192.0.2.66")
		}), want: Unknown, remark: "192.0.2.66"},
		{name: "one server has an IPv6 address besides", zone: []string{"svc.example.com A 192.0.2.9"}, gateway: []string{"A 192.0.2.9"}, set: stale(func(s *scene) {
			s.Add("example.com", "svc.example.com AAAA 2001:db8::66")
		}), want: Unknown, remark: "2001:db8::66"},
		{name: "each server has another address of the gateway", zone: []string{"svc.example.com A 192.0.2.9"}, gateway: []string{"A 192.0.2.9", "A 192.0.2.10"}, set: stale(func(s *scene) {
			s.Remove("example.com", "svc.example.com A 192.0.2.9")
			s.Add("example.com", "svc.example.com A 192.0.2.10")
		}), want: OK},
		{name: "each server leads elsewhere", zone: []string{"svc.example.com A 192.0.2.1"}, gateway: []string{"A 192.0.2.9"}, set: stale(func(s *scene) {
			s.Remove("example.com", "svc.example.com A 192.0.2.1")
			s.Add("example.com", "svc.example.com A 192.0.2.2")
		}), want: Wrong},
		{name: "the servers differ where the CNAME leads", zone: []string{"svc.example.com CNAME via.example.com"}, gateway: []string{"A 192.0.2.9"}, set: stale(func(s *scene) {
			s.Add("example.com", "via.example.com CNAME "+gw)
		}), want: Unknown, remark: "ns2.example.com"},
		{name: "all resolvers fail", zone: []string{"svc.example.com A 192.0.2.9"}, gateway: []string{"A 192.0.2.9"}, set: func(s *scene) {
			s.resolvers[0].SetRcode(dns.RcodeServerFailure)
			s.resolvers[1].SetRcode(dns.RcodeServerFailure)
		}, want: Unknown, remark: "every resolver fails"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			for _, rr := range tt.zone {
				s.Add("example.com", rr)
			}
			for _, a := range tt.gateway {
				s.Add("example.net", gw+" "+a)
			}
			if tt.set != nil {
				tt.set(s)
			}
			name := tt.of
			if name == "" {
				name = domain
			}
			p := plan(t, name, func(p *Plan) {
				p.Gateway, p.Include = gw, map[Kind]bool{CNAME: true}
				if tt.method != "" {
					p.Method = tt.method
				}
			})
			f := finding(t, s.Check(t.Context(), []Plan{p}), CNAME)
			if f.Status != tt.want || !strings.Contains(f.Detail, tt.remark) || strings.HasPrefix(f.Detail, "ok") {
				t.Errorf("%+v, want %s", f, tt.want)
			}
			if f.Status != OK && f.Status != Unknown && f.Advice == "" {
				t.Errorf("nothing is said of what to do: %+v", f)
			}
		})
	}
}

// Addresses of one family are no word about the other, which clients and a CA may prefer.
func TestRoutingHalfKnown(t *testing.T) {
	t.Parallel()
	of := func(text string) sight {
		rr, err := dns.NewRR("svc.example.com " + text)
		if err != nil {
			t.Fatal(err)
		}
		return sight{records: []dns.RR{rr}}
	}
	unknown := sight{err: errors.New("nobody tells")}
	gateway := join(of("A 192.0.2.9"), of("AAAA 2001:db8::9"))
	for name, tt := range map[string]struct {
		own, gateway both
		want         Status
	}{
		"both are known":             {join(of("A 192.0.2.9"), of("AAAA 2001:db8::9")), gateway, OK},
		"IPv6 is not":                {join(of("A 192.0.2.9"), unknown), gateway, Unknown},
		"IPv4 is not":                {join(unknown, of("AAAA 2001:db8::9")), gateway, Unknown},
		"IPv6 is not, IPv4 is wrong": {join(of("A 192.0.2.66"), unknown), gateway, Wrong},
		"neither is":                 {join(unknown, unknown), gateway, Unknown},
		"the gateway's IPv6 is not":  {join(of("A 192.0.2.9"), of("AAAA 2001:db8::9")), join(of("A 192.0.2.9"), unknown), Unknown},
		"nor needed":                 {join(of("A 192.0.2.9"), sight{}), join(of("A 192.0.2.9"), unknown), OK},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan(t, domain, func(p *Plan) { p.Gateway = "gw.example.net" })
			if f := p.route(tt.own, tt.gateway, "", ""); f.Status != tt.want {
				t.Errorf("%+v, want %s", f, tt.want)
			}
		})
	}
}

func TestRoutingTXT(t *testing.T) {
	t.Parallel()
	const name = "_app.svc.example.com"
	long := strings.Repeat("0123456789", 30)
	tests := []struct {
		name  string
		value string // "id:443" unless said
		zone  []string
		set   func(*scene)
		want  Status
		late  []int // resolvers
	}{
		{name: "stands", zone: []string{name + ` TXT "id:443"`}, want: OK},
		{name: "split", value: long, zone: []string{name + ` TXT "` + long[:200] + `" "` + long[200:] + `"`}, want: OK},
		{name: "nothing", want: Missing},
		{name: "another value", zone: []string{name + ` TXT "id:80"`}, want: Wrong},
		{name: "two values", zone: []string{name + ` TXT "id:80"`, name + ` TXT "id:443"`}, want: OK},
		{name: "a resolver lags", zone: []string{name + ` TXT "id:443"`}, set: func(s *scene) { s.resolvers[1].SetAnswer(name, dns.TypeTXT) }, want: OK, late: []int{1}},
		{name: "one server alone has it", set: func(s *scene) {
			s.production[1].SetLag(time.Hour)
			s.Add("example.com", name+` TXT "id:443"`)
		}, want: Unknown},
		{name: "one server has another besides", zone: []string{name + ` TXT "id:443"`}, set: func(s *scene) {
			s.production[1].SetLag(time.Hour)
			s.Add("example.com", name+` TXT "id:80"`)
		}, want: OK},
		{name: "each server has another", zone: []string{name + ` TXT "id:80"`}, set: func(s *scene) {
			s.production[1].SetLag(time.Hour)
			s.Remove("example.com", name+` TXT "id:80"`)
			s.Add("example.com", name+` TXT "id:81"`)
		}, want: Wrong},
		{name: "unreachable, both see it", zone: []string{name + ` TXT "id:443"`}, set: (*scene).block, want: OK},
		{name: "unreachable, one sees it", zone: []string{name + ` TXT "id:443"`}, set: func(s *scene) {
			s.block()
			s.resolvers[1].SetAnswer(name, dns.TypeTXT)
		}, want: Missing, late: []int{1}},
		{name: "unreachable, one answers", zone: []string{name + ` TXT "id:443"`}, set: func(s *scene) { s.block(); s.resolvers[0].Close() }, want: Unknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			for _, rr := range tt.zone {
				s.Add("example.com", rr)
			}
			if tt.set != nil {
				tt.set(s)
			}
			p := plan(t, domain, func(p *Plan) {
				p.TXTName, p.TXTValue, p.Include = name, "id:443", map[Kind]bool{TXT: true}
				if tt.value != "" {
					p.TXTValue = tt.value
				}
			})
			f := finding(t, s.Check(t.Context(), []Plan{p}), TXT)
			var late []string
			for _, i := range tt.late {
				late = append(late, s.resolvers[i].URL())
			}
			if f.Status != tt.want || !slices.Equal(laggards(f), late) {
				t.Errorf("%+v, want %s, lagging %q", f, tt.want, late)
			}
		})
	}
}

// A gateway that does not exist yet is heard of by no resolver.
func TestGatewayIsNotPlanted(t *testing.T) {
	s := newScene(t)
	s.Add("example.com", "svc.example.com CNAME gw.example.net")
	s.Check(t.Context(), []Plan{plan(t, domain, func(p *Plan) { p.Gateway = "gw.example.net"; p.Include = map[Kind]bool{CNAME: true} })})
	for _, r := range s.resolvers {
		for _, q := range r.Queries() {
			if q.Type != dns.TypeCNAME && q.Type != dns.TypeCAA || q.Name == "gw.example.net" {
				t.Errorf("%s was asked: %v", r.URL(), q)
			}
		}
	}
}

package guide

import (
	"bytes"
	"strings"
	"testing"
)

// What cannot stand where it is to is not printed; a note names what stands there and the ways out.
func TestInTheWay(t *testing.T) {
	t.Parallel()
	gateway := func(p *Plan) { p.Gateway = "gw.example.org" }
	routing := func(p *Plan) { p.TXTName, p.TXTValue = "_app."+domain, "id:443" }
	const challenge = "_acme-challenge." + domain
	tests := []struct {
		name  string
		of    string // domain unless said
		zone  []string
		plan  func(*Plan)
		not   string // record that must not be printed
		print string // record that is printed
		says  []string
	}{
		{name: "TXT at the challenge", zone: []string{challenge + ` TXT "old"`}, not: challenge + ". CNAME", says: []string{"TXT stands at " + challenge, "remove"}},
		{name: "MX at the challenge", zone: []string{challenge + " MX 10 mx.example.com."}, not: challenge + ". CNAME", says: []string{"MX stands at"}},
		{name: "CAA and A at the challenge", zone: []string{challenge + ` CAA 0 issue ";"`, challenge + " A 192.0.2.1"}, not: challenge + ". CNAME", says: []string{"CAA and A stand at"}},
		{name: "TXT of a wildcard at the challenge", zone: []string{"svc.example.com A 192.0.2.1", `*.svc.example.com TXT "x"`}, print: challenge + ". CNAME"},
		{name: "another CNAME at the challenge", zone: []string{challenge + " CNAME old.example.net."}, print: challenge + ". CNAME", says: []string{"old.example.net", "replace"}},

		{name: "TXT at the name", plan: gateway, zone: []string{`svc.example.com TXT "v=spf1 -all"`}, not: domain + ". CNAME", print: caaLine, says: []string{"TXT stands at " + domain, "ALIAS"}},
		{name: "MX at the name", plan: gateway, zone: []string{"svc.example.com MX 10 mx.example.com."}, not: domain + ". CNAME", says: []string{"MX stands at " + domain}},
		{name: "CAA at the name", plan: gateway, zone: []string{caaRR}, not: domain + ". CNAME", says: []string{"CAA stands at " + domain}},
		{name: "MX at the wildcard", of: "*." + domain, plan: gateway, zone: []string{"*.svc.example.com MX 10 mx.example.com."}, not: "*." + domain + ". CNAME", says: []string{"MX stands at *." + domain}},
		{name: "TXT of the wildcard above", of: "*." + domain, plan: gateway, zone: []string{`*.example.com TXT "x"`}, print: "*." + domain + ". CNAME"},
		{name: "a CNAME that is to be", plan: gateway, not: domain + ". CAA", print: domain + ". CNAME", says: []string{"the CAA record: once its CNAME is there, " + domain + " is a CNAME"}},
		{name: "the gateway itself", plan: func(p *Plan) { p.Gateway = domain }, not: domain + ". CNAME", print: caaLine, says: []string{"the gateway itself"}},

		{name: "CNAME at the routing TXT", plan: routing, zone: []string{"_app.svc.example.com CNAME x.example.org."}, not: "_app." + domain, says: []string{"_app." + domain + " is a CNAME to x.example.org", "--txt-name"}},
		{name: "CNAME of a wildcard at the routing TXT", plan: routing, zone: []string{"svc.example.com A 192.0.2.1", "*.svc.example.com CNAME x.example.org."}, print: "_app." + domain + ". TXT"},

		{name: "CAA at a wildcard", of: "*." + domain, zone: []string{`*.svc.example.com CAA 0 issue ";"`}, print: caaLine, says: []string{"*." + domain + " does not count", "RFC 8659"}},
		{name: "no address under tls-alpn-01", plan: func(p *Plan) { p.Method = TLSALPN01 }, says: []string{"has no address", "--alias-target"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			for _, rr := range tt.zone {
				s.Add("example.com", rr)
			}
			name := tt.of
			if name == "" {
				name = domain
			}
			p := plan(t, name)
			if tt.plan != nil {
				tt.plan(&p)
			}
			list := s.Prescribe(t.Context(), []Plan{p})
			printed := ""
			for _, r := range list[0].Records {
				printed += r.Line() + "\n"
			}
			if tt.not != "" && strings.Contains("\n"+printed, "\n"+tt.not) {
				t.Errorf("printed:\n%s", printed)
			}
			if !strings.Contains(printed, tt.print) {
				t.Errorf("%q is not printed:\n%s", tt.print, printed)
			}
			said := strings.Join(append(list[0].LeftOut, list[0].Notes...), "\n")
			for _, text := range tt.says {
				if !strings.Contains(said, text) {
					t.Errorf("%q is not said: %s", text, said)
				}
			}
			if tt.not != "" && !p.isGateway() && len(list[0].LeftOut) != 1 {
				t.Errorf("left out: %q", list[0].LeftOut)
			}
			for _, f := range s.Check(t.Context(), []Plan{p})[0].Findings {
				for _, r := range f.Records {
					if f.Kind != ChallengeCNAME && tt.not != "" && strings.HasPrefix(r.Line(), tt.not) {
						t.Errorf("a check asks for %s", r.Line())
					}
				}
			}
		})
	}
}

// Whoever imports a file that is not complete sees it at once, in one place for all names.
func TestZoneFileSaysWhatIsLeftOut(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	without := func(p *Plan) { p.CAA.Accounts, p.CAA.Problem = nil, "run certbot register" }
	list := s.Prescribe(t.Context(), []Plan{plan(t, domain, without), plan(t, "*."+domain, without)})
	var zone bytes.Buffer
	WriteZoneFile(&zone, list)
	first, rest, _ := strings.Cut(zone.String(), "\n")
	second, _, _ := strings.Cut(rest, "\n")
	if !strings.HasPrefix(first, "; THIS FILE IS NOT COMPLETE") || !strings.Contains(second, domain+", *."+domain+": the CAA record: run certbot register") {
		t.Errorf("zone file\n%s", &zone)
	}
	if got := LeftOut(list); len(got) != 1 {
		t.Errorf("left out: %q", got)
	}
	if parse(t, zone.String()); strings.Count(zone.String(), "left out") != 1 {
		t.Errorf("zone file\n%s", &zone)
	}
}

// Under tls-alpn-01 the CA connects to the name, whether a gateway is named or not.
func TestAddress(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		zone []string
		plan func(*Plan)
		want Status
	}{
		{name: "none", want: Missing},
		{name: "one", zone: []string{"svc.example.com AAAA 2001:db8::1"}, want: OK},
		{name: "behind a CNAME", zone: []string{"svc.example.com CNAME x.example.com", "x.example.com A 192.0.2.1"}, want: OK},
		{name: "a CNAME to nothing", zone: []string{"svc.example.com CNAME x.example.com"}, want: Wrong},
		{name: "a circle", zone: []string{"svc.example.com CNAME x.example.com", "x.example.com CNAME svc.example.com"}, want: Wrong},
		{name: "the gateway itself, dns-01", plan: func(p *Plan) { p.Method, p.Gateway = DNS01, domain }, want: Missing},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			for _, rr := range tt.zone {
				s.Add("example.com", rr)
			}
			p := plan(t, domain, func(p *Plan) { p.Method = TLSALPN01 })
			if tt.plan != nil {
				tt.plan(&p)
			}
			f := finding(t, s.Check(t.Context(), []Plan{p}), CNAME)
			if f.Status != tt.want || f.Status != OK && f.Advice == "" {
				t.Errorf("%+v, want %s", f, tt.want)
			}
		})
	}
}

// An account of another server is told of wherever the lock is.
func TestDoubtfulAccount(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.create()
	p := plan(t, domain, func(p *Plan) { p.CAA.Doubt = "an account of elsewhere" })
	if notes := s.Prescribe(t.Context(), []Plan{p})[0].Notes; len(notes) != 1 || notes[0] != p.CAA.Doubt {
		t.Errorf("notes %q", notes)
	}
	if f := finding(t, s.Check(t.Context(), []Plan{p}), CAA); f.Status != OK || len(f.Notes) != 1 || f.Notes[0] != p.CAA.Doubt {
		t.Errorf("%+v", f)
	}
}

// Names that share records, a wildcard and its base say, have them printed once.
func TestTextHasEachRecordOnce(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	var text bytes.Buffer
	WriteText(&text, s.Prescribe(t.Context(), []Plan{plan(t, domain), plan(t, "*."+domain)}))
	if got := parse(t, strings.ReplaceAll(text.String(), "#", ";")); len(got) != 2 || !strings.Contains(text.String(), "# *."+domain+"\n# takes the CNAME at _acme-challenge."+domain+" above\n") {
		t.Errorf("text\n%s", &text)
	}
}

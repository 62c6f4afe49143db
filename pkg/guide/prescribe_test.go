package guide

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

func TestPrescribe(t *testing.T) {
	t.Parallel()
	const cname = "_acme-challenge.svc.example.com. CNAME _acme-challenge.svc.example.com.deleg.example.net."
	wildLine := strings.Replace(caaLine, "issue", "issuewild", 1)
	gateway := func(p *Plan) { p.Gateway = "gw.example.org" }
	tests := []struct {
		name  string
		of    string // domain unless said
		zone  []string
		plan  func(*Plan)
		want  []string
		notes string // what they have to say
	}{
		{name: "plain", want: []string{cname, caaLine}},
		{name: "wildcard alone", of: "*." + domain, want: []string{cname, caaLine}},
		{name: "issuewild above", zone: []string{`example.com CAA 0 issuewild ";"`}, want: []string{cname, caaLine, wildLine}},
		{name: "issuewild asked for", plan: func(p *Plan) { p.CAA.Wild = true }, want: []string{cname, caaLine, wildLine}},
		{name: "no account", plan: func(p *Plan) { p.CAA.Accounts, p.CAA.Problem = nil, "run certbot register" }, want: []string{cname}, notes: "run certbot register"},
		{name: "several accounts", plan: func(p *Plan) { p.CAA.Accounts = []string{account, other} }, want: []string{cname}, notes: "--account-uri"},
		{name: "CAA above", plan: func(p *Plan) { p.CAAOwner = "example.com" }, want: []string{cname, strings.Replace(caaLine, "svc.", "", 1)}},
		{name: "whole value", plan: func(p *Plan) { p.CAA.Value = "letsencrypt.org" }, want: []string{cname, `svc.example.com. CAA 0 issue "letsencrypt.org"`}},
		{name: "without delegation", plan: func(p *Plan) { p.Target.Alias = "" }, want: []string{caaLine}, notes: "ACME_CHALLENGE_ALIAS"},
		{name: "only the CAA", plan: func(p *Plan) { p.Include = map[Kind]bool{CAA: true} }, want: []string{caaLine}},
		{name: "no CAA", plan: func(p *Plan) { p.Include = map[Kind]bool{ChallengeCNAME: true} }, want: []string{cname}},
		{name: "tls-alpn-01", zone: []string{"svc.example.com A 192.0.2.1"}, plan: func(p *Plan) { p.Method = TLSALPN01 }, want: []string{strings.Replace(caaLine, "dns-01", "tls-alpn-01", 1)}},

		{name: "a CNAME stands there", zone: []string{"svc.example.com CNAME cdn.example.org"}, want: []string{cname}, notes: "svc.example.com is a CNAME"},
		{name: "a CNAME is to stand there", plan: gateway, want: []string{cname, "svc.example.com. CNAME gw.example.org."}, notes: "svc.example.com is a CNAME"},
		{name: "addresses lead there", zone: []string{"svc.example.com A 192.0.2.9"}, plan: gateway, want: []string{cname, caaLine}, notes: "ALIAS"},
		{
			name: "apex", of: "example.com", plan: gateway, notes: "ALIAS",
			want: []string{strings.ReplaceAll(cname, "svc.", ""), strings.Replace(caaLine, "svc.", "", 1)},
		},
		{
			name: "a wildcard leads to the gateway", of: "*." + domain, plan: gateway,
			want: []string{cname, caaLine, "*.svc.example.com. CNAME gw.example.org."},
		},
		{
			name: "routing TXT", plan: func(p *Plan) { p.TXTName, p.TXTValue = "_app."+domain, `id:443 "x"` },
			want: []string{cname, caaLine, `_app.svc.example.com. TXT "id:443 \"x\""`},
		},
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
			var got []string
			for _, r := range list[0].Records {
				got = append(got, r.Line())
				if r.Note == "" {
					t.Errorf("nothing is said about %s", r.Line())
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
			notes := strings.Join(append(list[0].LeftOut, list[0].Notes...), "\n")
			if !strings.Contains(notes, tt.notes) || tt.notes == "" && notes != "" {
				t.Errorf("notes %q, want %q in them", notes, tt.notes)
			}

			// Text and zone file have the same records, and any DNS software reads them.
			var text, zone bytes.Buffer
			WriteText(&text, list)
			WriteZoneFile(&zone, list)
			if fromText := parse(t, strings.ReplaceAll(text.String(), "#", ";")); !slices.Equal(fromText, parse(t, zone.String())) || len(fromText) != len(got) {
				t.Errorf("text\n%s\nzone file\n%s", &text, &zone)
			}
		})
	}
}

// A CNAME is alone at its name, whichever plan asks for it and whatever is known of it.
func TestNoImpossiblePair(t *testing.T) {
	t.Parallel()
	gateway := func(p *Plan) { p.Gateway = "gw.example.org" }
	tests := []struct {
		name  string
		zone  []string
		set   func(*scene)
		plans []func(t *testing.T) Plan
	}{
		{name: "base and wildcard at once", plans: []func(t *testing.T) Plan{
			func(t *testing.T) Plan { return plan(t, domain, gateway) },
			func(t *testing.T) Plan { return plan(t, "*."+domain, gateway) },
		}},
		{name: "a CNAME to where nobody answers", zone: []string{"svc.example.com CNAME x.dead.example.net"}, set: func(s *scene) {
			dead := s.AddServer("ns1.dead.example.net")
			s.AddZone("dead.example.net", dead)
			dead.SetDead(true)
			s.resolvers[0].SetRcodeFor(domain, dns.RcodeServerFailure)
			s.resolvers[1].SetRcodeFor(domain, dns.RcodeServerFailure)
		}, plans: []func(t *testing.T) Plan{func(t *testing.T) Plan { return plan(t, domain) }}},
		{name: "the CAA is to stand above, at a CNAME", zone: []string{"b.example.com CNAME cdn.example.net"}, plans: []func(t *testing.T) Plan{
			func(t *testing.T) Plan {
				return plan(t, "a.b.example.com", func(p *Plan) { p.CAAOwner = "b.example.com" })
			},
		}},
		{name: "an apex", zone: []string{"example.com A 192.0.2.66"}, plans: []func(t *testing.T) Plan{
			func(t *testing.T) Plan { return plan(t, "example.com", gateway) },
		}},
		{name: "other addresses", zone: []string{"svc.example.com A 192.0.2.66"}, plans: []func(t *testing.T) Plan{
			func(t *testing.T) Plan { return plan(t, domain, gateway) },
		}},
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
			var plans []Plan
			for _, p := range tt.plans {
				plans = append(plans, p(t))
			}
			alone, others := map[string]bool{}, map[string]bool{}
			for _, rr := range tt.zone {
				if owner, _, found := strings.Cut(rr, " CNAME "); found {
					alone[owner] = true
				}
			}
			note := func(owner, kind string) {
				if kind == "CNAME" {
					alone[owner] = true
				} else {
					others[owner] = true
				}
			}
			for _, list := range s.Prescribe(t.Context(), plans) {
				for _, r := range list.Records {
					note(r.Name, r.Type)
				}
			}
			for _, result := range s.Check(t.Context(), plans) {
				for _, f := range result.Findings {
					for _, r := range f.Records {
						note(r.Name, r.Type)
					}
					for _, kind := range []string{"CAA", "CNAME"} {
						for part := range strings.SplitSeq(f.Advice, "add ") {
							if owner, _, found := strings.Cut(part, ". "+kind+" "); found && !strings.Contains(owner, " ") {
								note(owner, kind)
							}
						}
					}
				}
			}
			for owner := range alone {
				if others[owner] {
					t.Errorf("a CNAME and something else at %s", owner)
				}
			}
		})
	}
}

// A name that only a wildcard answers for loses that answer; whoever creates the records is told before.
func TestWildcardStops(t *testing.T) {
	t.Parallel()
	for _, rr := range []string{"*.example.com A 192.0.2.7", "*.example.com CNAME www.example.org"} {
		s := newScene(t)
		s.Add("example.com", rr)
		list := s.Prescribe(t.Context(), []Plan{plan(t, domain)})
		if notes := strings.Join(list[0].Notes, "\n"); !strings.Contains(notes, "*.example.com") || len(list[0].Records) != 2 {
			t.Errorf("%s: %+v", rr, list)
		}
	}
}

// parse reads a zone file and returns its records, sorted, without TTLs.
func parse(t *testing.T, text string) []string {
	t.Helper()
	var lines []string
	p := dns.NewZoneParser(strings.NewReader(text), "", "")
	p.SetDefaultTTL(1)
	for rr, ok := p.Next(); ok; rr, ok = p.Next() {
		rr.Header().Ttl = 1
		lines = append(lines, rr.String())
	}
	if err := p.Err(); err != nil {
		t.Errorf("%v in\n%s", err, text)
	}
	slices.Sort(lines)
	return lines
}

// Where nobody tells which CAA records govern a name the record is printed all the same, and the doubt with it.
func TestPrescribeInTheDark(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.block()
	for _, r := range s.resolvers {
		r.Close()
	}
	list := s.Prescribe(t.Context(), []Plan{plan(t, domain)})
	if n := len(list[0].Records); n != 2 || list[0].Records[1].Line() != caaLine {
		t.Errorf("records %+v", list[0].Records)
	}
	if len(list[0].Notes) == 0 {
		t.Error("the doubt is not told")
	}
	var zone bytes.Buffer
	WriteZoneFile(&zone, list)
	if got := parse(t, zone.String()); len(got) != 2 {
		t.Errorf("zone file\n%s", &zone)
	}
}

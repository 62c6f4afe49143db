package guide

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/fault"
)

// Whom to believe: for each way in which servers can fail or lie, what is found and what the verdict is.
func TestVerdict(t *testing.T) {
	const challenge = "_acme-challenge.svc.example.com"
	oldCAA := `svc.example.com CAA 0 issue "letsencrypt.org;validationmethods=dns-01;accounturi=` + other + `"`
	stale := func(s *scene, i int) { // from before the records existed
		s.resolvers[i].SetAnswer(domain, dns.TypeCAA)
		s.resolvers[i].SetAnswer(challenge, dns.TypeCNAME)
	}
	tests := []struct {
		name       string
		bare       bool // nothing has been created
		set        func(*scene)
		cname, caa Status
		lagging    []int // resolvers named for either
		kind       fault.Kind
		ok         bool
	}{
		{name: "all is well", cname: OK, caa: OK, ok: true},
		{name: "nothing stands", bare: true, cname: Missing, caa: Open, kind: fault.Verdict},

		{name: "a resolver lags", set: func(s *scene) { stale(s, 0) }, cname: OK, caa: OK, lagging: []int{0}, ok: true},
		{name: "both lag", set: func(s *scene) { stale(s, 0); stale(s, 1) }, cname: OK, caa: OK, lagging: []int{0, 1}, ok: true},
		{name: "a resolver is dead", set: func(s *scene) { s.resolvers[0].SetDead(true) }, cname: OK, caa: OK, ok: true},
		{name: "both are dead", set: func(s *scene) { s.resolvers[0].Close(); s.resolvers[1].Close() }, cname: OK, caa: OK, ok: true},
		{name: "a resolver says the old account", set: func(s *scene) { s.resolvers[1].SetAnswer(domain, dns.TypeCAA, oldCAA) }, cname: OK, caa: OK, lagging: []int{1}, ok: true},
		{name: "a resolver fails", set: func(s *scene) { s.resolvers[0].SetRcode(dns.RcodeServerFailure) }, cname: OK, caa: OK, ok: true},
		{name: "a resolver lies where nothing stands", bare: true, set: func(s *scene) {
			s.resolvers[0].SetAnswer(domain, dns.TypeCAA, caaRR)
			s.resolvers[0].SetAnswer(challenge, dns.TypeCNAME, cnameRR)
		}, cname: Missing, caa: Open, kind: fault.Verdict},
		{name: "one authoritative server is dead", set: func(s *scene) { s.production[0].SetDead(true) }, cname: OK, caa: OK, ok: true},
		{name: "one is dead and nothing stands", bare: true, set: func(s *scene) { s.production[0].SetDead(true) }, cname: Missing, caa: Open, kind: fault.Verdict},

		{name: "one fails and nothing stands", bare: true, set: func(s *scene) { s.production[0].SetRcodeFor(challenge, dns.RcodeServerFailure) }, cname: Missing, caa: Open, kind: fault.Verdict},
		{name: "one is lame", set: func(s *scene) { s.production[0].SetLame(true) }, cname: OK, caa: OK, ok: true},

		// A CA may ask any authoritative server, and nobody can tell a record that comes from one that goes.
		{name: "one has nothing, as before it was made", bare: true, set: func(s *scene) {
			s.production[1].SetLag(time.Hour)
			s.create()
		}, cname: Unknown, caa: Unknown, kind: fault.Unknown},
		{name: "one alone has it, as before it was removed", set: func(s *scene) {
			s.production[1].SetLag(time.Hour)
			s.Remove("example.com", cnameRR)
			s.Remove("example.com", caaRR)
		}, cname: Unknown, caa: Unknown, kind: fault.Unknown},
		{name: "one ties it to another account", set: func(s *scene) {
			s.production[1].SetLag(time.Hour)
			s.Remove("example.com", caaRR)
			s.Add("example.com", oldCAA)
		}, cname: OK, caa: Unknown, kind: fault.Unknown},
		{name: "each ties it to another account", bare: true, set: func(s *scene) {
			s.create()
			s.Remove("example.com", caaRR)
			s.Add("example.com", oldCAA)
			s.production[1].SetLag(time.Hour)
			s.Remove("example.com", oldCAA)
			s.Add("example.com", strings.Replace(oldCAA, "acct", "a", 1))
		}, cname: OK, caa: Wrong, kind: fault.Verdict},
		{name: "each leads elsewhere", set: func(s *scene) {
			s.Remove("example.com", cnameRR)
			s.Add("example.com", challenge+" CNAME old.example.com")
			s.production[1].SetLag(time.Hour)
			s.Remove("example.com", challenge+" CNAME old.example.com")
			s.Add("example.com", challenge+" CNAME older.example.com")
		}, cname: Wrong, caa: OK, kind: fault.Verdict},
		{name: "one has no CAA, and the one above does as well", set: func(s *scene) {
			s.Add("example.com", strings.Replace(caaRR, domain, "example.com", 1))
			s.production[1].SetLag(time.Hour)
			s.Remove("example.com", caaRR)
		}, cname: OK, caa: OK, ok: true},

		// What no resolver can make out a CA's will not either.
		{name: "all resolvers fail", set: func(s *scene) {
			s.resolvers[0].SetRcode(dns.RcodeServerFailure)
			s.resolvers[1].SetRcode(dns.RcodeServerFailure)
		}, cname: Unknown, caa: Unknown, kind: fault.Unknown},
		{name: "all resolvers fail at the CAA", set: func(s *scene) {
			s.resolvers[0].SetRcodeFor(domain, dns.RcodeServerFailure)
			s.resolvers[1].SetRcodeFor(domain, dns.RcodeServerFailure)
		}, cname: OK, caa: Unknown, kind: fault.Unknown},
		{name: "one resolver fails, the other is dead", set: func(s *scene) {
			s.resolvers[0].SetRcode(dns.RcodeServerFailure)
			s.resolvers[1].Close()
		}, cname: OK, caa: OK, ok: true},
		{name: "all resolvers refuse us", set: func(s *scene) {
			s.resolvers[0].SetRcode(dns.RcodeRefused)
			s.resolvers[1].SetRcode(dns.RcodeRefused)
		}, cname: OK, caa: OK, ok: true},
		{name: "all resolvers fail and nothing stands", bare: true, set: func(s *scene) {
			s.resolvers[0].SetRcode(dns.RcodeServerFailure)
			s.resolvers[1].SetRcode(dns.RcodeServerFailure)
		}, cname: Missing, caa: Unknown, kind: fault.Verdict}, // what stands at the top-level name decides

		// The alias zone has to have room for the TXT.
		{name: "the record is a CNAME itself", set: func(s *scene) {
			s.Add("deleg.example.net", challenge+".deleg.example.net CNAME elsewhere.example.net")
		}, cname: Wrong, caa: OK, kind: fault.Verdict},
		{name: "the alias zone's server fails", set: func(s *scene) {
			s.alias.SetRcodeFor(challenge+".deleg.example.net", dns.RcodeServerFailure)
		}, cname: Unknown, caa: OK, kind: fault.Unknown},

		{name: "unreachable, both resolvers see it", set: (*scene).block, cname: OK, caa: OK, ok: true},
		{name: "unreachable, both truncate", set: func(s *scene) {
			s.block()
			s.resolvers[0].SetTruncate(true)
			s.resolvers[1].SetTruncate(true)
		}, cname: OK, caa: OK, ok: true},
		{name: "unreachable, both are slow", set: func(s *scene) {
			s.block()
			s.resolvers[0].SetDelay(200 * time.Millisecond)
			s.resolvers[1].SetDelay(100 * time.Millisecond)
		}, cname: OK, caa: OK, ok: true},
		{name: "unreachable, one lags", set: func(s *scene) { s.block(); stale(s, 0) }, cname: OK, caa: OK, lagging: []int{0}, ok: true},
		{name: "unreachable, one sees it and one is dead", set: func(s *scene) { s.block(); s.resolvers[0].Close() }, cname: Unknown, caa: Unknown, kind: fault.Unknown},
		{name: "unreachable, both dead", set: func(s *scene) { s.block(); s.resolvers[0].Close(); s.resolvers[1].Close() }, cname: Unknown, caa: Unknown, kind: fault.Unknown},
		{name: "unreachable, both fail", set: func(s *scene) {
			s.block()
			s.resolvers[0].SetRcode(dns.RcodeServerFailure)
			s.resolvers[1].SetRcode(dns.RcodeServerFailure)
		}, cname: Unknown, caa: Unknown, kind: fault.Unknown},
		{name: "unreachable, one denies and one is dead", bare: true, set: func(s *scene) { s.block(); s.resolvers[0].Close() }, cname: Unknown, caa: Unknown, kind: fault.Unknown},
		{name: "unreachable, both deny", bare: true, set: (*scene).block, cname: Missing, caa: Open, kind: fault.Verdict},
		{name: "unreachable, one says the old account", set: func(s *scene) {
			s.block()
			s.resolvers[1].SetAnswer(domain, dns.TypeCAA, oldCAA)
		}, cname: OK, caa: Open, lagging: []int{0, 1}, kind: fault.Verdict},

		// A definite no is not drowned by what cannot be told.
		{name: "the CAA forbids it, the CNAME cannot be told", set: func(s *scene) {
			s.Add("example.com", "sub.example.com A 192.0.2.1")
			s.Remove("example.com", caaRR)
			s.Add("example.com", `svc.example.com CAA 0 issue "other.example"`)
			for _, server := range s.production {
				server.SetRcodeFor(challenge, dns.RcodeServerFailure)
			}
			s.resolvers[0].Close()
		}, cname: Unknown, caa: Wrong, kind: fault.Verdict},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			if !tt.bare {
				s.create()
			}
			if tt.set != nil {
				tt.set(s)
			}
			results := s.Check(t.Context(), []Plan{plan(t, domain)})
			cname, lock := finding(t, results, ChallengeCNAME), finding(t, results, CAA)
			if cname.Status != tt.cname {
				t.Errorf("challenge: %+v, want %s", cname, tt.cname)
			}
			if lock.Status != tt.caa {
				t.Errorf("CAA: %+v, want %s", lock, tt.caa)
			}
			var want []string
			for _, i := range tt.lagging {
				want = append(want, s.resolvers[i].URL())
			}
			slices.Sort(want)
			got := slices.DeleteFunc(laggards(lock), func(s string) bool { return !strings.HasPrefix(s, "udp:") })
			if !slices.Equal(got, want) {
				t.Errorf("lagging with the CAA: %q, want %q", got, want)
			}
			err := Err(results)
			if (err == nil) != tt.ok || err != nil && fault.KindOf(err) != tt.kind {
				t.Errorf("verdict %v of kind %v", err, fault.KindOf(err))
			}
		})
	}
}

// What the authoritative servers do not have no resolver hears of.
func TestNothingIsPlanted(t *testing.T) {
	s := newScene(t)
	s.Check(t.Context(), []Plan{plan(t, domain), plan(t, "new.sub.example.com")})
	for _, r := range s.resolvers {
		for _, q := range r.Queries() {
			if q.Name != "com" {
				t.Errorf("%s was asked: %v", r.URL(), q)
			}
		}
	}
	for _, q := range s.Queries() {
		if q.Recursive && (q.Name == domain || q.Name == "sub.example.com" || q.Name == "new.sub.example.com") {
			t.Errorf("a resolver was asked: %v", q)
		}
	}
}

// Where servers disagree it says which has what, and not whether it comes or goes.
func TestDisagreement(t *testing.T) {
	s := newScene(t)
	s.Add("example.com", "svc.example.com A 192.0.2.1")
	s.production[1].SetLag(time.Hour)
	s.Add("example.com", cnameRR)
	s.Add("example.com", caaRR)
	results := s.Check(t.Context(), []Plan{plan(t, domain)})
	for _, kind := range []Kind{ChallengeCNAME, CAA} {
		f := finding(t, results, kind)
		if f.Status != Unknown || !strings.Contains(f.Detail, "ns1.example.com") || !strings.Contains(f.Detail, "ns2.example.com") || strings.Contains(f.Detail, "yet") || len(f.Lagging) > 0 {
			t.Errorf("%+v", f)
		}
	}
}

// Who does not tell while others do is named, and why a resolver fails.
func TestSilenceIsNamed(t *testing.T) {
	s := newScene(t)
	s.create()
	s.production[1].SetLame(true)
	s.resolvers[0].SetRcode(dns.RcodeServerFailure)
	results := s.Check(t.Context(), []Plan{plan(t, domain)})
	for _, kind := range []Kind{ChallengeCNAME, CAA} {
		f := finding(t, results, kind)
		notes := strings.Join(f.Notes, "\n")
		if f.Status != OK || !strings.Contains(notes, "ns2.example.com") || !strings.Contains(notes, s.resolvers[0].URL()) {
			t.Errorf("%+v", f)
		}
	}
}

// Several accounts: that one of them is locked in says nothing of the one that certbot will use.
func TestSeveralAccounts(t *testing.T) {
	s := newScene(t)
	s.create()
	results := s.Check(t.Context(), []Plan{plan(t, domain, func(p *Plan) { p.CAA.Accounts = []string{other, account} })})
	if f := finding(t, results, CAA); f.Status != Unknown || !strings.Contains(f.Advice, "--account-uri") {
		t.Errorf("%+v", f)
	}
}

// What lets one account issue and not another is no leave for an account that nobody knows, whatever the settings
// accept and in whatever order the accounts stand.
func TestUnknownAccount(t *testing.T) {
	const another = `svc.example.com CAA 0 issue "letsencrypt.org;accounturi=https://ca.example/999"`
	unknown := func(p *Plan) { p.CAA.Accounts, p.CAA.Problem = nil, "run certbot register" }
	bare := func(p *Plan) { delete(p.Include, CAA) }
	tests := []struct {
		name string
		zone []string
		plan []func(*Plan)
		want Status
	}{
		{name: "tied to somebody, account unknown", zone: []string{another, `svc.example.com CAA 0 issue "ca.example"`}, plan: []func(*Plan){unknown}, want: Unknown},
		{name: "the same, unasked", zone: []string{another}, plan: []func(*Plan){unknown, bare}, want: Unknown},
		{name: "open, account unknown", zone: []string{`svc.example.com CAA 0 issue "letsencrypt.org"`}, plan: []func(*Plan){unknown}, want: Open},
		{name: "another CA, account unknown", zone: []string{`svc.example.com CAA 0 issue "ca.example"`}, plan: []func(*Plan){unknown}, want: Wrong},
		{name: "tied to one of two", zone: []string{caaRR, `svc.example.com CAA 0 issue "ca.example"`}, plan: []func(*Plan){func(p *Plan) { p.CAA.Accounts = []string{account, other} }}, want: Unknown},
		{name: "the other way round", zone: []string{caaRR, `svc.example.com CAA 0 issue "ca.example"`}, plan: []func(*Plan){func(p *Plan) { p.CAA.Accounts = []string{other, account} }}, want: Unknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.AllowMissingCAA = true
			s.Add("example.com", "svc.example.com A 192.0.2.1")
			for _, rr := range tt.zone {
				s.Add("example.com", rr)
			}
			f := finding(t, s.Check(t.Context(), []Plan{plan(t, domain, tt.plan...)}), CAA)
			if f.Status != tt.want || f.Accepted != (tt.want == Open) {
				t.Errorf("%+v, want %s", f, tt.want)
			}
		})
	}
}

package guide

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/persist"
)

const (
	persistOwner = "_validation-persist.svc.example.com"
	persistValue = "letsencrypt.org; accounturi=" + account
	persistLine  = persistOwner + `. TXT "` + persistValue + `"`
	persistCAA   = `svc.example.com CAA 0 issue "letsencrypt.org;validationmethods=dns-persist-01;accounturi=` + account + `"`
)

// persistent makes a plan one of dns-persist-01 alone.
func persistent(change ...func(*Plan)) func(*Plan) {
	return func(p *Plan) {
		p.Method = DNSPersist01
		p.Validation = &Validation{Draft: persist.Draft01, Issuers: []string{"letsencrypt.org"}, Wildcard: p.Wildcard}
		for _, f := range change {
			f(p)
		}
	}
}

// alsoDNS01 makes it one that certbot renews by dns-01 besides.
func alsoDNS01(p *Plan) { p.CAA.Methods = []Method{DNS01} }

func TestPrescribeValidation(t *testing.T) {
	t.Parallel()
	caaLine := strings.Replace(persistCAA, "com CAA", "com. CAA", 1)
	thumb := strings.Repeat("t", 43)
	hash := persist.HashedAccount("https://ca.example/h/", domain, thumb, account)
	soonEnd := time.Now().Add(10*24*time.Hour + time.Hour)
	tests := []struct {
		name  string
		of    string // domain unless said
		plan  func(*Plan)
		want  []string
		zone  []string
		notes string
		left  string
	}{
		{name: "plain", want: []string{persistLine, caaLine}, notes: "draft -01 of dns-persist-01, which is experimental"},
		{name: "a wildcard", of: "*." + domain, want: []string{persistOwner + `. TXT "` + persistValue + `; policy=wildcard"`, caaLine}},
		{name: "a base whose wildcard is asked for, too", plan: func(p *Plan) { p.Validation.Wildcard = true }, want: []string{persistOwner + `. TXT "` + persistValue + `; policy=wildcard"`, caaLine}},
		{name: "an end", plan: func(p *Plan) { p.Validation.Until = time.Unix(4102444800, 0) }, want: []string{persistOwner + `. TXT "` + persistValue + `; persistUntil=4102444800"`, caaLine}},
		{name: "an end that is near", plan: func(p *Plan) { p.Validation.Until = soonEnd }, want: []string{fmt.Sprintf(`%s. TXT "%s; persistUntil=%d"`, persistOwner, persistValue, soonEnd.Unix()), caaLine}, notes: "in 10 days"},
		{name: "both methods", plan: alsoDNS01, want: []string{persistLine, strings.Replace(caaLine, "dns-persist-01", "dns-01,dns-persist-01", 1)}},
		{name: "no account", plan: func(p *Plan) { p.CAA.Accounts, p.CAA.Problem = nil, "run certbot register" }, left: "the TXT of dns-persist-01: run certbot register"},
		{name: "several accounts", plan: func(p *Plan) { p.CAA.Accounts = []string{account, other} }, left: "--account-uri"},
		{name: "a CNAME at its name", zone: []string{persistOwner + " CNAME p.example.com"}, want: []string{caaLine}, left: `add p.example.com. TXT "` + persistValue + `"`},
		{name: "a wildcard above its name", zone: []string{"*.svc.example.com CNAME gw.example.com", "svc.example.com A 192.0.2.1"}, want: []string{persistLine, caaLine}},
		{name: "only the record", plan: func(p *Plan) { p.Include = map[Kind]bool{ValidationTXT: true} }, want: []string{persistLine}},
		{name: "only the CAA", plan: func(p *Plan) { p.Include = map[Kind]bool{CAA: true} }, want: []string{caaLine}},
		{
			name: "draft 02",
			plan: func(p *Plan) {
				p.Validation.Draft, p.Validation.Prefix, p.Validation.Thumbprints = persist.Draft02, "https://ca.example/h/", map[string]string{account: thumb}
			},
			want: []string{persistOwner + `. TXT "letsencrypt.org; accounturi=` + hash + `"`, caaLine}, notes: "draft -02",
		},
		{
			name: "draft 02 without the key", plan: func(p *Plan) { p.Validation.Draft, p.Validation.Problem = persist.Draft02, "give --account-thumbprint" },
			want: []string{caaLine}, left: "give --account-thumbprint",
		},
		{name: "an account that no record can hold", plan: func(p *Plan) { p.CAA.Accounts = []string{"https://ca.example/a<b>"} }, want: []string{strings.Replace(caaLine, account, "https://ca.example/a<b>", 1)}, left: "cannot hold"},
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
			change := []func(*Plan){persistent()}
			if tt.plan != nil {
				change = append(change, tt.plan)
			}
			list := s.Prescribe(t.Context(), []Plan{plan(t, name, change...)})
			var got []string
			for _, r := range list[0].Records {
				got = append(got, r.Line())
				if r.Kind == ValidationTXT && !(strings.Contains(r.Note, "draft -0") && strings.Contains(r.Note, "experimental")) {
					t.Errorf("the note on the record is %q", r.Note)
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
			if notes := strings.Join(list[0].Notes, "\n"); !strings.Contains(notes, tt.notes) {
				t.Errorf("notes %q, want %q", notes, tt.notes)
			}
			if left := strings.Join(list[0].LeftOut, "\n"); !strings.Contains(left, tt.left) {
				t.Errorf("left out %q, want %q", left, tt.left)
			}
			for _, q := range s.Queries() {
				if q.Recursive && q.Name == persistOwner {
					t.Errorf("a resolver was asked: %v", q)
				}
			}
		})
	}
}

func TestCheckValidation(t *testing.T) {
	t.Parallel()
	txt := func(value string) string { return persistOwner + ` TXT "` + value + `"` }
	until := func(d time.Duration) string {
		return fmt.Sprintf("%s; persistUntil=%d", persistValue, time.Now().Add(d).Unix())
	}
	tests := []struct {
		name      string
		of        string // domain unless said
		zone      []string
		prepare   func(*scene)
		plan      func(*Plan)
		status    Status
		detail    string
		advice    string
		notes     string
		warning   string
		lagging   []string
		quiet     bool // no resolver hears of the record
		unwritten bool // there is none to be created
	}{
		{name: "there", zone: []string{txt(persistValue)}, status: OK, notes: "draft -01 of dns-persist-01, which is experimental"},
		{name: "not there", status: Missing, detail: "there is no TXT of letsencrypt.org", advice: "add " + persistLine, quiet: true},
		{name: "of another CA", zone: []string{txt("pki.goog; accounturi=https://pki.example/1")}, status: Missing, advice: "add " + persistLine, quiet: true},
		{name: "for another account", zone: []string{txt("letsencrypt.org; accounturi=" + other)}, status: Wrong, detail: "it is for another account (expected " + account + ", it has " + other + ")", advice: "add " + persistLine, quiet: true},
		{name: "malformed", zone: []string{txt(persistValue + ";")}, status: Wrong, detail: "trailing semicolon", quiet: true},
		{name: "a wildcard that it does not cover", of: "*." + domain, zone: []string{txt(persistValue)}, status: Wrong, detail: "does not cover the wildcard", advice: "policy=wildcard", quiet: true},
		{name: "a wildcard that it covers", of: "*." + domain, zone: []string{txt(persistValue + "; policy=wildcard")}, status: OK},
		{name: "a wildcard's counts for the base", zone: []string{txt(persistValue + "; policy=wildcard")}, status: OK},
		{name: "expired", zone: []string{txt(until(-time.Hour))}, status: Wrong, detail: "expired", quiet: true},
		{name: "ends soon", zone: []string{txt(until(5*24*time.Hour + time.Hour))}, status: OK, warning: "in 5 days"},
		{name: "ends in hours", zone: []string{txt(until(5*time.Hour + time.Minute))}, status: OK, warning: "in 5 hours"},
		{
			name: "new ones have ended", zone: []string{txt(persistValue)}, status: OK, unwritten: true,
			plan: func(p *Plan) { p.Validation.Until = time.Now().Add(-time.Hour) },
		},
		{
			name: "not there, and new ones have ended", status: Missing, advice: "PERSIST_UNTIL", quiet: true, unwritten: true,
			plan: func(p *Plan) { p.Validation.Until = time.Now().Add(-time.Hour) },
		},
		{name: "one ends soon, another does not", zone: []string{txt(until(time.Hour)), txt(persistValue)}, status: OK},
		{name: "hashed for an older draft", zone: []string{txt("letsencrypt.org; accounturi=https://ca.example/h/sha-256/" + strings.Repeat("a", 43))}, status: Wrong, detail: "draft -02", quiet: true},
		{
			name: "in the clear for a newer draft", zone: []string{txt(persistValue)}, quiet: true,
			plan: func(p *Plan) {
				p.Validation.Draft, p.Validation.Prefix, p.Validation.Thumbprints = persist.Draft02, "https://ca.example/h/", map[string]string{account: strings.Repeat("t", 43)}
			},
			status: Wrong, detail: "not hashed, as draft -02",
		},
		{name: "others beside it", zone: []string{txt(persistValue), txt("letsencrypt.org; accounturi=" + other), txt("pki.goog; accounturi=https://pki.example/1")}, status: OK, notes: other},
		{name: "by a CNAME", zone: []string{persistOwner + " CNAME p.example.com", `p.example.com TXT "` + persistValue + `"`}, status: OK},
		{name: "a CNAME to nothing", zone: []string{persistOwner + " CNAME p.example.com"}, status: Missing, advice: `add p.example.com. TXT "` + persistValue + `", or else remove the CNAME`, quiet: true},
		{name: "a wildcard's CNAME in its place", zone: []string{"*.svc.example.com CNAME p.example.com"}, status: Missing, advice: "add " + persistLine, quiet: true},
		{name: "a circle", zone: []string{persistOwner + " CNAME " + persistOwner}, status: Wrong, detail: "circle", quiet: true},
		{
			name: "not everywhere yet", prepare: func(s *scene) { s.production[1].SetLag(time.Hour); s.Add("example.com", txt(persistValue)) },
			status: Unknown, detail: "ns2.example.com: there is no TXT", advice: "have all servers say the same", quiet: true,
		},
		{
			name: "all resolvers fail", zone: []string{txt(persistValue)}, status: Unknown, detail: "every resolver fails",
			prepare: func(s *scene) {
				for _, r := range s.resolvers {
					r.SetRcodeFor(persistOwner, dns.RcodeServerFailure)
				}
			},
		},
		{
			name: "a resolver that does not show it", zone: []string{txt(persistValue)}, prepare: func(s *scene) { s.resolvers[0].SetAnswer(persistOwner, dns.TypeTXT) },
			status: OK, lagging: []string{"R0"},
		},
		{name: "a server is dead", zone: []string{txt(persistValue)}, prepare: func(s *scene) { s.production[0].SetDead(true) }, status: OK, notes: "ns1.example.com does not answer"},
		{name: "resolvers alone", zone: []string{txt(persistValue)}, prepare: (*scene).block, status: OK},
		{name: "nobody", zone: []string{txt(persistValue)}, prepare: func(s *scene) { s.block(); s.resolvers[0].Close() }, status: Unknown},
		{name: "no account, and none there", plan: func(p *Plan) { p.CAA.Accounts, p.CAA.Problem = nil, "run certbot register" }, status: Missing, advice: "run certbot register", quiet: true, unwritten: true},
		{name: "no account, and one there", zone: []string{txt(persistValue)}, plan: func(p *Plan) { p.CAA.Accounts, p.CAA.Problem = nil, "run certbot register" }, status: Unknown, advice: "run certbot register", quiet: true, unwritten: true},
		{name: "one of several accounts", zone: []string{txt(persistValue)}, plan: func(p *Plan) { p.CAA.Accounts = []string{other, account} }, status: OK, unwritten: true},
		{name: "another name of the CA", zone: []string{txt("ca.example; accounturi=" + account)}, plan: func(p *Plan) { p.Validation.Issuers = []string{"letsencrypt.org", "ca.example"} }, status: OK},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.Add("example.com", domain+" A 192.0.2.1")
			for _, rr := range tt.zone {
				s.Add("example.com", rr)
			}
			if tt.prepare != nil {
				tt.prepare(s)
			}
			name := tt.of
			if name == "" {
				name = domain
			}
			change := []func(*Plan){persistent()}
			if tt.plan != nil {
				change = append(change, tt.plan)
			}
			f := finding(t, s.Check(t.Context(), []Plan{plan(t, name, change...)}), ValidationTXT)
			if f.Status != tt.status || !strings.Contains(f.Detail, tt.detail) || !strings.Contains(f.Advice, tt.advice) {
				t.Errorf("got %+v", f)
			}
			notes := strings.Join(f.Notes, "\n")
			if !strings.Contains(notes, tt.notes) || !strings.Contains(f.Warning, tt.warning) || (f.Warning == "") != (tt.warning == "") {
				t.Errorf("notes %q, warning %q", notes, f.Warning)
			}
			// The webhook is told what to create, whatever stands there.
			if (len(f.Records) == 0) != tt.unwritten {
				t.Errorf("records %+v", f.Records)
			}
			var lagging []string
			for _, l := range laggards(f) {
				lagging = append(lagging, strings.NewReplacer(s.resolvers[0].URL(), "R0", s.resolvers[1].URL(), "R1").Replace(l))
			}
			if !slices.Equal(lagging, tt.lagging) {
				t.Errorf("lagging %q", lagging)
			}
			for _, q := range s.Queries() {
				if tt.quiet && q.Recursive && q.Name == persistOwner {
					t.Errorf("a resolver was asked: %v", q)
				}
			}
		})
	}
}

// A CAA that is pinned to one method refuses the orders by the other; one that names both is for a name that uses both.
func TestCAAForMethods(t *testing.T) {
	t.Parallel()
	pinned := func(methods string) string {
		return `svc.example.com CAA 0 issue "letsencrypt.org;validationmethods=` + methods + `;accounturi=` + account + `"`
	}
	both := func(p *Plan) { persistent()(p); p.Method, p.CAA.Methods = DNS01, []Method{DNSPersist01} }
	tests := []struct {
		name   string
		zone   []string
		plan   func(*Plan)
		status Status
		detail string
		advice string
	}{
		{name: "persist, pinned to dns-01", zone: []string{pinned("dns-01")}, plan: persistent(), status: Wrong, detail: "by dns-01 it is allowed", advice: "add " + strings.Replace(persistCAA, "com CAA", "com. CAA", 1)},
		{name: "dns-01, pinned to persist", zone: []string{pinned("dns-persist-01")}, status: Wrong, detail: "by dns-persist-01 it is allowed", advice: "validationmethods=dns-01;"},
		{name: "persist, pinned to it", zone: []string{pinned("dns-persist-01")}, plan: persistent(), status: OK},
		{name: "persist, no pin", zone: []string{strings.Replace(pinned("x"), "validationmethods=x;", "", 1)}, plan: persistent(), status: OK},
		{name: "both, pinned to dns-01", zone: []string{pinned("dns-01")}, plan: both, status: Wrong, detail: "validationmethods=dns-01,dns-persist-01", advice: "validationmethods=dns-01,dns-persist-01;"},
		{name: "both, pinned to persist", zone: []string{pinned("dns-persist-01")}, plan: both, status: Wrong, detail: "by dns-persist-01 it is allowed", advice: "validationmethods=dns-01,dns-persist-01;"},
		{name: "both, pinned to both", zone: []string{pinned("dns-01,dns-persist-01")}, plan: both, status: OK},
		{name: "both, a record for each", zone: []string{pinned("dns-01"), pinned("dns-persist-01")}, plan: both, status: OK},
		{name: "persist, and certbot has the name too", zone: []string{pinned("dns-persist-01")}, plan: persistent(alsoDNS01), status: Wrong, advice: "validationmethods=dns-01,dns-persist-01;"},
		{
			name: "persist, and certbot with an account of its own", zone: []string{strings.Replace(pinned("dns-01"), account, other, 1), pinned("dns-persist-01")},
			plan: persistent(func(p *Plan) { p.CAA.Others = []string{other} }), status: OK,
		},
		{
			name: "certbot's account alone", zone: []string{strings.Replace(pinned("dns-01"), account, other, 1)},
			plan: persistent(func(p *Plan) { p.CAA.Others = []string{other} }), status: Wrong, advice: "add " + strings.Replace(persistCAA, "com CAA", "com. CAA", 1),
		},
		{name: "another account", zone: []string{strings.Replace(pinned("dns-01"), account, other, 1)}, plan: persistent(), status: Wrong, detail: "another account"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			for _, rr := range tt.zone {
				s.Add("example.com", rr)
			}
			var change []func(*Plan)
			if tt.plan != nil {
				change = append(change, tt.plan)
			}
			f := finding(t, s.Check(t.Context(), []Plan{plan(t, domain, change...)}), CAA)
			if f.Status != tt.status || !strings.Contains(f.Detail, tt.detail) || !strings.Contains(f.Advice, tt.advice) {
				t.Errorf("got %+v", f)
			}
		})
	}
}

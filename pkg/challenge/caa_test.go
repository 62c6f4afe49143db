package challenge

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/certhook/certhook/pkg/certbot"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/resolver"
)

const acmeServer = "https://acme-v02.api.letsencrypt.org/directory"

func acct(n int) string { return fmt.Sprintf("https://acme-v02.api.letsencrypt.org/acme/acct/%d", n) }

// lockOf is the record that locks a domain to account 1.
func lockOf(domain string) string {
	return fmt.Sprintf(`%s. CAA 0 issue "letsencrypt.org;validationmethods=dns-01;accounturi=%s"`, domain, acct(1))
}

// newCAALab is a lab in which Let's Encrypt is to issue to certbot's accounts with these numbers.
func newCAALab(t *testing.T, accounts ...int) *lab {
	t.Helper()
	l := newLab(t)
	l.Issuance = Issuance{Server: acmeServer, CertbotDir: t.TempDir(), Issuers: called("letsencrypt.org")}
	for _, n := range accounts {
		l.regr(t, fmt.Sprint(n), fmt.Sprintf(`{"body": {}, "uri": %q}`, acct(n)))
	}
	return l
}

// called has CAA records call the CA by these names.
func called(names ...string) func(context.Context) ([]string, error) {
	return func(context.Context) ([]string, error) { return names, nil }
}

func (l *lab) regr(t *testing.T, id, text string) {
	t.Helper()
	dir := filepath.Join(l.Issuance.CertbotDir, "accounts/acme-v02.api.letsencrypt.org/directory", id)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "regr.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (l *lab) add(records ...string) {
	for _, r := range records {
		l.world.Add("example.com", r)
	}
}

// warnings returns the lines of the log that are warnings.
func (l *lab) warnings() []string {
	var found []string
	for line := range strings.Lines(l.log.String()) {
		if strings.Contains(line, "level=WARN") {
			found = append(found, strings.ReplaceAll(line, `\"`, `"`))
		}
	}
	return found
}

// presentAll makes the calls of an order and returns the errors joined to one text.
func (l *lab) presentAll(t *testing.T, calls []certbot.Challenge) (errs []error) {
	t.Helper()
	by := caller(t)
	for _, c := range calls {
		_, err := l.Present(t.Context(), c, by)
		errs = append(errs, err)
	}
	return errs
}

func TestCAAForbids(t *testing.T) {
	const domain = "a.example.com"
	tests := map[string]struct {
		records []string
		names   []string // of the order; domain alone unless said
		fault   string   // in the record that is named; "" means that the value is written
		warns   string   // in the only warning; "" means none
	}{
		"locked to us":               {records: []string{lockOf(domain)}},
		"locked above":               {records: []string{lockOf("example.com")}},
		"another CA":                 {records: []string{domain + `. CAA 0 issue "other.example"`}, fault: `a.example.com. CAA 0 issue "other.example"`},
		"another CA above":           {records: []string{`example.com. CAA 0 issue "other.example"`}, fault: `example.com. CAA 0 issue "other.example"`},
		"nobody":                     {records: []string{domain + `. CAA 0 issue ";"`}, fault: `a.example.com. CAA 0 issue ";"`},
		"another account":            {records: []string{strings.Replace(lockOf(domain), "acct/1", "acct/12", 1)}, fault: "acct/12"},
		"another method":             {records: []string{strings.Replace(lockOf(domain), "dns-01", "http-01", 1)}, fault: "http-01"},
		"a critical tag":             {records: []string{lockOf(domain), domain + `. CAA 128 foo "x"`}, fault: "CAA 128 foo"},
		"the name, if it is not for": {records: []string{domain + `. CAA 0 issue ";"`, domain + `. CAA 0 issuewild "letsencrypt.org"`}, warns: `CAA 0 issue ";"`},
		"the name beside the wildcard": {
			records: []string{domain + `. CAA 0 issue ";"`, domain + `. CAA 0 issuewild "letsencrypt.org"`}, names: []string{domain, domain}, fault: `issue ";"`,
		},
		"the wildcard, if it is for": {records: []string{lockOf(domain), domain + `. CAA 0 issuewild ";"`}},
		"the wildcard beside the name": {
			records: []string{lockOf(domain), domain + `. CAA 0 issuewild ";"`}, names: []string{domain, domain}, fault: `issuewild ";"`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			l := newCAALab(t, 1)
			l.add(tt.records...)
			if tt.names == nil {
				tt.names = []string{domain}
			}
			for _, err := range l.presentAll(t, order(1, tt.names...)) {
				if tt.fault == "" {
					if err != nil {
						t.Fatal(err)
					}
					continue
				}
				words := []string{tt.fault}
				if !strings.Contains(tt.fault, "128") && !strings.Contains(tt.fault, "issuewild") {
					words = append(words, "add "+lockOf(domain))
				}
				wantKind(t, err, fault.Verdict, words...)
			}
			if written := len(l.provider.called("add")) > 0; written != (tt.fault == "") {
				t.Errorf("written: %v", written)
			}
			w := l.warnings()
			if tt.warns == "" && len(w) > 0 || tt.warns != "" && (len(w) != 1 || !strings.Contains(w[0], tt.warns)) {
				t.Errorf("warnings: %q", w)
			}
		})
	}
}

// What only resolvers say, or servers that disagree, may be old: it is a warning.
func TestCAAWithoutProof(t *testing.T) {
	l := newCAALab(t, 1)
	l.add(`a.example.com. CAA 0 issue "other.example"`)
	l.DNS.Port = 9 // where no authoritative server answers
	var endpoints []resolver.Endpoint
	for range resolver.Quorum {
		e, err := resolver.ParseEndpoint(l.world.AddResolver().URL())
		if err != nil {
			t.Fatal(err)
		}
		endpoints = append(endpoints, e)
	}
	l.Panel = resolver.NewPanel(endpoints)
	l.Propagation.Mode = "none"
	l.presentAll(t, order(1, "a.example.com")) // which fails for want of the alias zone's servers
	w := slices.DeleteFunc(l.warnings(), func(s string) bool { return !strings.Contains(s, "CAA") })
	if len(w) != 1 || !strings.Contains(w[0], `a.example.com. CAA 0 issue "other.example"`) {
		t.Errorf("warnings: %q", w)
	}
	refused := slices.ContainsFunc(l.steps, func(s Step) bool { return s.Name == StepCAA && s.Err != nil })
	if refused {
		t.Error("refused without proof")
	}
}

// Servers that disagree are no proof: a CA may ask the one that lets it issue. That it may ask the other is told.
func TestCAAOnOneServerOnly(t *testing.T) {
	for name, tt := range map[string]struct {
		record string
		said   string
	}{
		"one forbids": {`a.example.com. CAA 0 issue "other.example"`, "CAA may forbid it"},
		"one locks":   {lockOf("a.example.com"), "no CAA record locks a.example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newCAALab(t, 1)
			second := l.world.AddServer("ns2.a.example.com")
			l.world.AddZone("a.example.com", l.production, second)
			l.world.Add("a.example.com", fmt.Sprintf("_acme-challenge.a.example.com 300 CNAME %s", record("a.example.com")))
			second.SetLag(time.Hour)
			l.world.Add("a.example.com", tt.record)
			for _, err := range l.presentAll(t, order(1, "a.example.com")) {
				if err != nil {
					t.Error(err)
				}
			}
			if w := l.warnings(); !strings.Contains(strings.Join(w, "\n"), tt.said) {
				t.Errorf("warnings: %q", w)
			}
		})
	}
}

// Nothing can be told where no server can be reached: that is no reason to stop, nor to raise the voice.
func TestCAAThatCannotBeTold(t *testing.T) {
	l := newCAALab(t, 1)
	l.production.Close()
	for _, err := range l.presentAll(t, order(1, "a.example.com")) {
		if err != nil {
			t.Fatal(err)
		}
	}
	l.wantValues(t, "a.example.com", val(1))
	for _, w := range l.warnings() {
		if strings.Contains(w, "CAA") {
			t.Errorf("warning: %s", w)
		}
	}
	if !slices.ContainsFunc(l.steps, func(s Step) bool { return s.Name == StepCAA && s.Warn && s.Err == nil }) {
		t.Error("a rehearsal would not show that CAA is unknown")
	}
}

// Of an order's names that are not locked one warning tells, with the last call.
func TestUnlockedIsToldOnceAnOrder(t *testing.T) {
	l := newCAALab(t, 1)
	l.add(`b.example.com. CAA 0 issue "letsencrypt.org"`, lockOf("c.example.com"))
	calls := order(1, "a.example.com", "example.com", "example.com", "b.example.com", "c.example.com")
	by := caller(t)
	for _, c := range calls {
		if w := l.warnings(); len(w) > 0 {
			t.Fatalf("warned before the last call: %q", w)
		}
		if _, err := l.Present(t.Context(), c, by); err != nil {
			t.Fatal(err)
		}
	}
	w := l.warnings()
	if len(w) != 1 {
		t.Fatalf("%d warnings: %q", len(w), w)
	}
	for _, want := range []string{
		"add " + lockOf("a.example.com"), "add " + lockOf("example.com"), "add " + lockOf("b.example.com") + ", then remove that record",
		`b.example.com. CAA 0 issue "letsencrypt.org" lets every account`,
	} {
		if strings.Count(w[0], want) != 1 {
			t.Errorf("%q is not told once: %s", want, w[0])
		}
	}
	if strings.Contains(w[0], "c.example.com") {
		t.Errorf("the name that is locked is told of: %s", w[0])
	}

	// The next order of the run is told of by itself.
	if _, err := l.CleanUp(t.Context(), calls[0], by); err != nil {
		t.Fatal(err)
	}
	l.log.Reset()
	for _, name := range []string{"c.example.com", "a.example.com"} {
		if _, err := l.Present(t.Context(), order(9, name)[0], by); err != nil {
			t.Fatal(err)
		}
		if w := l.warnings(); (name[0] == 'a') != (len(w) == 1 && !strings.Contains(w[0], "b.example.com")) {
			t.Errorf("%s: warnings %q", name, w)
		}
	}
}

func TestManyUnlocked(t *testing.T) {
	l := newCAALab(t, 1)
	var names []string
	for i := range 5 {
		names = append(names, fmt.Sprintf("n%d.example.com", i))
		l.delegate(names[i])
	}
	l.presentAll(t, order(1, names...))
	w := l.warnings()
	if len(w) != 1 || !strings.Contains(w[0], "add "+lockOf(names[0])) || !strings.Contains(w[0], "2 more names") {
		t.Fatalf("warnings: %q", w)
	}
	for _, n := range names {
		if log := strings.ReplaceAll(l.log.String(), `\"`, `"`); !strings.Contains(log, lockOf(n)) {
			t.Errorf("the log lacks the record of %s", n)
		}
	}
}

// Without an account there is nothing to lock to, and nothing to compare with.
func TestUnlockedWithoutAccount(t *testing.T) {
	const domain = "a.example.com"
	tests := map[string]struct {
		accounts []int
		prepare  func(*testing.T, *lab)
		says     []string // in one warning
		warnings int
	}{
		"none": {says: []string{"certbot register", acmeServer}, warnings: 1},
		"none, locked to somebody": {
			prepare: func(_ *testing.T, l *lab) { l.add(lockOf(domain)) },
		},
		"none, open": {
			prepare: func(_ *testing.T, l *lab) { l.add(`example.com. CAA 0 issue "letsencrypt.org"`) },
			says:    []string{`example.com. CAA 0 issue "letsencrypt.org"`, "certbot register"}, warnings: 1,
		},
		"unreadable": {
			prepare: func(t *testing.T, l *lab) { l.regr(t, "1", "{") },
			says:    []string{"regr.json"}, warnings: 1,
		},
		"several": {
			accounts: []int{1, 2},
			says:     []string{acct(1), acct(2), `accounturi=ACCOUNT"`}, warnings: 2,
		},
		"several, locked to one": {
			accounts: []int{1, 2},
			prepare:  func(_ *testing.T, l *lab) { l.add(lockOf(domain)) },
			says:     []string{"several accounts"}, warnings: 1,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			l := newCAALab(t, tt.accounts...)
			if tt.prepare != nil {
				tt.prepare(t, l)
			}
			for _, err := range l.presentAll(t, order(1, domain)) {
				if err != nil {
					t.Fatal(err)
				}
			}
			w := l.warnings()
			told := tt.says == nil || slices.ContainsFunc(w, func(line string) bool {
				return !slices.ContainsFunc(tt.says, func(s string) bool { return !strings.Contains(line, s) })
			})
			if len(w) != tt.warnings || !told {
				t.Errorf("warnings: %q", w)
			}
		})
	}
}

// A domain that is a CNAME cannot have a CAA, so that no line for it is printed.
func TestUnlockedCNAME(t *testing.T) {
	l := newCAALab(t, 1)
	l.add("www.example.com. CNAME a.example.com.", "a.example.com. A 192.0.2.1")
	l.delegate("www.example.com")
	l.presentAll(t, order(1, "www.example.com"))
	w := l.warnings()
	if len(w) != 1 || strings.Contains(w[0], lockOf("www.example.com")) || !strings.Contains(w[0], lockOf("a.example.com")) || !strings.Contains(w[0], "CNAME") {
		t.Errorf("warnings: %q", w)
	}
}

// A CA that does not tell its name stops nothing.
func TestUnknownIssuer(t *testing.T) {
	l := newCAALab(t, 1)
	l.Issuance.Issuers = func(ctx context.Context) ([]string, error) {
		if _, bounded := ctx.Deadline(); !bounded {
			t.Error("the CA may take for ever")
		}
		return nil, errors.New("the CA is silent")
	}
	l.add(`example.com. CAA 0 issue "other.example"`)
	for _, err := range l.presentAll(t, order(1, "a.example.com", "b.example.com")) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if w := l.warnings(); len(w) != 1 || !strings.Contains(w[0], "ISSUER_DOMAIN_NAME") || !strings.Contains(w[0], "the CA is silent") {
		t.Errorf("warnings: %q", w)
	}
}

// A CA may have several names; the record to add has the first.
func TestSeveralIssuers(t *testing.T) {
	l := newCAALab(t, 1)
	l.Issuance.Issuers = called("ca.example", "also.example")
	lock := func(issuer string) string {
		return strings.Replace(lockOf("a.example.com"), "letsencrypt.org", issuer, 1)
	}
	l.add(lock("also.example"))
	for _, err := range l.presentAll(t, order(1, "a.example.com", "b.example.com")) {
		if err != nil {
			t.Fatal(err)
		}
	}
	w := l.warnings()
	add := strings.ReplaceAll(lock("ca.example"), "a.example.com", "b.example.com")
	if len(w) != 1 || !strings.Contains(w[0], add) || strings.Contains(w[0], "a.example.com.") {
		t.Errorf("warnings: %q", w)
	}
}

// Every record that opens a domain is named.
func TestAllGapsAreNamed(t *testing.T) {
	l := newCAALab(t, 1)
	open := []string{`a.example.com. CAA 0 issue "letsencrypt.org"`, `a.example.com. CAA 0 issue "other.example"`}
	l.add(lockOf("a.example.com"), open[0], open[1])
	l.presentAll(t, order(1, "a.example.com"))
	w := l.warnings()
	if len(w) != 1 {
		t.Fatalf("warnings: %q", w)
	}
	for _, part := range []string{open[0] + " lets every account", open[1] + " lets another CA", "; remove " + open[0] + " and " + open[1]} {
		if !strings.Contains(w[0], part) {
			t.Errorf("no %q in %s", part, w[0])
		}
	}
}

// Whoever has several things to mend hears of all of them at once.
func TestCAAAndCNAMEWrong(t *testing.T) {
	l := newCAALab(t, 1)
	l.add(`example.com. CAA 0 issue "other.example"`)
	err := l.presentAll(t, order(1, "undelegated.example.com"))[0]
	wantKind(t, err, fault.Verdict, "CNAME", `CAA 0 issue "other.example"`)
}

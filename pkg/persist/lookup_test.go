package persist

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/resolver"
	"github.com/certhook/certhook/tests/dnstest"
)

func (v View) String() string {
	text := fmt.Sprintf("%q", v.TXT)
	if v.Err != nil {
		text = "failure"
	}
	if v.Target != "" {
		text = v.Target + " " + text
	}
	return text + " of " + strings.Join(v.Servers, ",")
}

func TestLookup(t *testing.T) {
	const txt, cname, here = owner + ` TXT "a"`, owner + " CNAME t.cdn.example.net", "one.example.com,two.example.com"
	deafen := func(l *lab) { l.client.Port = 9 } // where nobody answers
	tests := map[string]struct {
		records   []string
		prepare   func(*lab)
		want      []string
		failing   string // a server
		resolvers bool
	}{
		"none":                     {want: []string{"[] of " + here}},
		"another type":             {records: []string{owner + " A 192.0.2.1"}, want: []string{"[] of " + here}},
		"one":                      {records: []string{txt}, want: []string{`["a"] of ` + here}},
		"several, sorted":          {records: []string{owner + ` TXT "b"`, txt}, want: []string{`["a" "b"] of ` + here}},
		"strings are joined":       {records: []string{owner + ` TXT "a" "b;" "c"`}, want: []string{`["ab;c"] of ` + here}},
		"escapes stay":             {records: []string{owner + ` TXT "a\009b\"c\\"`}, want: []string{`["a\\009b\\\"c\\\\"] of ` + here}},
		"not of the parent":        {records: []string{`_validation-persist.example.com TXT "a"`}, want: []string{"[] of " + here}},
		"made up by a wildcard":    {records: []string{`*.svc.example.com TXT "w"`}, want: []string{`["w"] of ` + here}},
		"a CNAME":                  {records: []string{cname, `t.cdn.example.net TXT "a"`}, want: []string{`t.cdn.example.net ["a"] of ns.cdn.example.net`}},
		"a CNAME into nothing":     {records: []string{cname}, want: []string{"t.cdn.example.net [] of ns.cdn.example.net"}},
		"a CNAME to the root":      {records: []string{owner + " CNAME ."}, want: []string{". [] of " + here}},
		"several CNAMEs":           {records: []string{cname, "t.cdn.example.net CNAME u.example.com", `u.example.com TXT "a"`}, want: []string{`u.example.com ["a"] of ` + here}},
		"a zone of its own":        {prepare: func(l *lab) { l.AddZone(owner, l.cdn); l.Add(owner, txt) }, want: []string{`["a"] of ns.cdn.example.net`}},
		"the domain's own zone":    {prepare: func(l *lab) { l.AddZone(domain, l.cdn); l.Add(domain, txt) }, want: []string{`["a"] of ns.cdn.example.net`}},
		"one server dead":          {records: []string{txt}, prepare: func(l *lab) { l.one.SetDead(true) }, failing: "one.example.com", want: []string{`["a"] of two.example.com`}},
		"one server lame":          {records: []string{txt}, prepare: func(l *lab) { l.one.SetLame(true) }, failing: "one.example.com", want: []string{`["a"] of two.example.com`}},
		"one server tells of more": {records: []string{cname, `t.cdn.example.net TXT "a"`}, prepare: func(l *lab) { l.one.SetChase(true) }, want: []string{`t.cdn.example.net ["a"] of ns.cdn.example.net`}},
		"a server lags": {
			prepare: func(l *lab) { l.two.SetLag(time.Hour); l.add(txt) },
			want:    []string{`["a"] of one.example.com`, "[] of two.example.com"},
		},
		"a server lags at the target": {
			records: []string{owner + " CNAME t.example.com"},
			prepare: func(l *lab) { l.two.SetLag(time.Hour); l.add(`t.example.com TXT "a"`) },
			want:    []string{`t.example.com ["a"] of one.example.com`, "t.example.com [] of two.example.com"},
		},
		"a server has no CNAME yet": {
			records: []string{`t.cdn.example.net TXT "a"`},
			prepare: func(l *lab) { l.two.SetLag(time.Hour); l.add(cname) },
			want:    []string{`t.cdn.example.net ["a"] of one.example.com`, "[] of two.example.com"},
		},
		"a server has a CNAME to nowhere": {
			records: []string{txt},
			prepare: func(l *lab) {
				l.two.SetLag(time.Hour)
				l.Remove("example.com", txt)
				l.add(owner + " CNAME t.cdn.example.net")
				l.cdn.SetRcodeFor("t.cdn.example.net", dns.RcodeServerFailure)
			},
			want: []string{"t.cdn.example.net failure of one.example.com", `["a"] of two.example.com`},
		},
		"a server has a circle": {
			records: []string{txt},
			prepare: func(l *lab) { l.two.SetLag(time.Hour); l.Remove("example.com", txt); l.add(owner + " CNAME " + owner) },
			want:    []string{owner + " failure of one.example.com", `["a"] of two.example.com`},
		},
		"a zone that one server does not know of": {
			records: []string{txt},
			prepare: func(l *lab) {
				l.two.SetLag(time.Hour)
				l.AddZone(domain, l.cdn)
				l.Add(domain, owner+` TXT "b"`)
			},
			want: []string{`["b"] of ns.cdn.example.net`, `["a"] of two.example.com`},
		},
		"nobody can be asked, resolvers know":            {records: []string{txt}, prepare: deafen, want: []string{`["a"] of R1,R2`}, resolvers: true},
		"nobody can be asked, resolvers know of a CNAME": {records: []string{cname, `t.cdn.example.net TXT "a"`}, prepare: deafen, want: []string{`t.cdn.example.net ["a"] of R1,R2`}, resolvers: true},
		"nobody can be asked, resolvers know of none":    {prepare: deafen, want: []string{"[] of R1,R2"}, resolvers: true},
		"nobody can be asked, resolvers differ":          {prepare: func(l *lab) { deafen(l); l.r1.SetAnswer(owner, dns.TypeTXT, txt) }, want: []string{`["a"] of R1`, "[] of R2"}, resolvers: true},
		"servers fail at the name, and resolvers do not": {
			prepare: func(l *lab) {
				l.one.SetRcodeFor(owner, dns.RcodeServerFailure)
				l.two.SetDead(true)
				l.r1.SetAnswer(owner, dns.TypeTXT)
				l.r2.SetAnswer(owner, dns.TypeTXT)
			},
			want: []string{"[] of R1,R2"}, resolvers: true,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.add(tt.records...)
			if tt.prepare != nil {
				tt.prepare(l)
			}
			s, err := Lookup(t.Context(), l.client, l.panel, domain)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, v := range s.Views {
				got = append(got, strings.NewReplacer(l.r1.URL(), "R1", l.r2.URL(), "R2").Replace(v.String()))
			}
			slices.Sort(got)
			slices.Sort(tt.want)
			if s.Owner != owner || !slices.Equal(got, tt.want) || s.Resolvers != tt.resolvers || s.Plain != tt.resolvers {
				t.Errorf("got %q, want %q (%+v)", got, tt.want, s)
			}
			failing := ""
			for _, f := range s.Failing {
				failing += f.Server
			}
			if failing != tt.failing {
				t.Errorf("failing %+v", s.Failing)
			}
			if asked := l.panelAsked() > 0; asked != tt.resolvers {
				t.Errorf("the panel heard %d questions", l.panelAsked())
			}
		})
	}
}

func TestLookupFailure(t *testing.T) {
	tests := map[string]struct {
		prepare func(*lab)
		kind    fault.Kind
	}{
		"nobody answers":            {func(l *lab) { l.client.Port = 9; l.r1.Close(); l.r2.Close() }, fault.Unknown},
		"one resolver is no quorum": {func(l *lab) { l.client.Port = 9; l.r1.Close() }, fault.Unknown},
		"no panel":                  {func(l *lab) { l.client.Port = 9; l.panel = resolver.Panel{} }, fault.Unknown},
		"all fail": {func(l *lab) {
			l.one.SetRcodeFor(owner, dns.RcodeServerFailure)
			l.two.SetRcodeFor(owner, dns.RcodeRefused)
		}, fault.Unknown},
		"the zone is not found":           {func(l *lab) { l.FailAsk("example.com", dnstest.ServFail); l.panel = resolver.Panel{} }, fault.Unknown},
		"the CNAME's target is not known": {func(l *lab) { l.add(owner + " CNAME t.cdn.example.net"); l.cdn.SetDead(true); l.r1.SetDead(true) }, fault.Unknown},
		"a circle":                        {func(l *lab) { l.add(owner+" CNAME a.example.com", "a.example.com CNAME "+owner) }, fault.Verdict},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			tt.prepare(l)
			s, err := Lookup(t.Context(), l.client, l.panel, domain)
			if fault.KindOf(err) != tt.kind || len(s.Views) > 0 {
				t.Errorf("got %+v, %v", s, err)
			}
		})
	}
	long := strings.Repeat("a.", 120) + "com"
	if _, err := Lookup(t.Context(), nil, resolver.Panel{}, long); fault.KindOf(err) != fault.Usage {
		t.Errorf("a name too long: %v", err)
	}
}

// A record that does not stand yet is asked about at authoritative servers only, each of which hears of it once.
func TestLookupAsksLittle(t *testing.T) {
	l := newLab(t)
	if _, err := Lookup(t.Context(), l.client, l.panel, "*."+domain); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, q := range l.Queries() {
		if q.Type == dns.TypeTXT {
			n++
		}
		if q.Recursive && strings.HasPrefix(q.Name, "_") {
			t.Errorf("asked %v", q)
		}
	}
	if n != 2 {
		t.Errorf("%d questions for TXT", n)
	}
}

// Resolvers hear of a record only where every authoritative server shows one.
func TestHeard(t *testing.T) {
	const txt = owner + ` TXT "a"`
	for name, tt := range map[string]struct {
		prepare          func(*lab)
		lagging, failing int
		asked            bool
	}{
		"all show it":          {prepare: func(l *lab) { l.add(txt) }, asked: true},
		"none is there":        {},
		"a server lags":        {prepare: func(l *lab) { l.two.SetLag(time.Hour); l.add(txt) }},
		"a server has another": {prepare: func(l *lab) { l.add(txt); l.two.SetLag(time.Hour); l.add(owner + ` TXT "b"`) }, asked: true},
		"a resolver has none":  {prepare: func(l *lab) { l.add(txt); l.r1.SetAnswer(owner, dns.TypeTXT) }, asked: true, lagging: 1},
		"a resolver has an older one": {
			prepare: func(l *lab) { l.add(txt); l.r1.SetAnswer(owner, dns.TypeTXT, owner+` TXT "old"`) }, asked: true, lagging: 1,
		},
		"a resolver fails":   {prepare: func(l *lab) { l.add(txt); l.r1.SetRcodeFor(owner, dns.RcodeServerFailure) }, asked: true, failing: 1},
		"resolvers told all": {prepare: func(l *lab) { l.add(txt); l.client.Port = 9 }, asked: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			if tt.prepare != nil {
				tt.prepare(l)
			}
			s, err := Lookup(t.Context(), l.client, l.panel, domain)
			if err != nil {
				t.Fatal(err)
			}
			e := Heard(t.Context(), l.panel, s)
			if len(e.Lagging) != tt.lagging || len(e.Failing) != tt.failing || l.panelAsked() > 0 != tt.asked {
				t.Errorf("%+v, of %+v; the panel heard %d questions", e, s, l.panelAsked())
			}
		})
	}
}

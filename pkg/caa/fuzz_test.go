package caa

import (
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// FuzzParse holds what is understood to be what was written.
func FuzzParse(f *testing.F) {
	for _, v := range []string{
		"", ";", us, us + ";", us + ";;", " " + us + "\t; accounturi = " + acct + " ;validationmethods=dns-01,http-01",
		us + ";a-b=c=d", us + ";=1", us + ";flag", us + ";x=\xff", "\x00;a=b",
	} {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, value string) {
		p, err := Parse(value)
		if err != nil {
			return
		}
		text := p.Issuer
		for _, param := range p.Params {
			if !isTag(param.Tag) || strings.ContainsAny(param.Value, "; \t") {
				t.Errorf("%q has the parameter %q", value, param)
			}
			text += ";" + param.Tag + "=" + param.Value
		}
		again, err := Parse(text)
		if err != nil || again.Issuer != p.Issuer || len(again.Params) != len(p.Params) {
			t.Errorf("%q is read as %+v, and %q as %+v, %v", value, p, text, again, err)
		}
	})
}

// FuzzEvaluate has whatever can come off the wire beside the record that we ask for: nothing but a critical
// one or an issuewild can keep the CA from issuing, and what opens the lock is told.
func FuzzEvaluate(f *testing.F) {
	for _, v := range []string{"", us, us + ";accounturi=" + acct, "other.example", us + ";validationmethods=http-01"} {
		f.Add(byte(0), "issue", v)
		f.Add(byte(128), "issuewild", v)
		f.Add(byte(1), "foo", v)
	}
	f.Fuzz(func(t *testing.T, flag byte, tag, value string) {
		if len(tag) > 255 || len(value) > 60000 {
			return
		}
		wire := append([]byte{0, 1, 1, 0, 1, 0, 0, 0, 0, 0, 0}, flag, byte(len(tag)))
		wire = append(append(wire, tag...), value...)
		length := 2 + len(tag) + len(value)
		wire[9], wire[10] = byte(length>>8), byte(length)
		rr, _, err := dns.UnpackRR(wire, 0)
		if err != nil {
			return
		}
		odd, ok := rr.(*dns.CAA)
		if !ok {
			t.Fatalf("%v is a %T", rr, rr)
		}
		q := Question{Domain: "svc.example.com", Issuer: us, Method: "dns-01", Account: acct}
		s := Set{Owner: q.Domain, Records: []*dns.CAA{odd, q.locking("issue")}}
		r := Evaluate(q, s)
		if !r.Allowed && !criticalUnknown(odd) {
			t.Errorf("%q forbids: %v", Text("x", odd), r.Fault)
		}
		if r.Lock == Open && (len(r.Gaps) != 1 || r.Gaps[0].Record != Text(q.Domain, odd)) {
			t.Errorf("open by %v, not by %q", r.Gaps, Text(q.Domain, odd))
		}
		if text := Text("x", odd); strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("the text %q cannot be shown", text)
		}
		alone := Set{Owner: q.Domain, Records: []*dns.CAA{odd}}
		mended := Set{Owner: q.Domain}
		if len(q.Surplus(alone)) == 0 {
			mended.Records = alone.Records
		}
		for _, line := range q.Missing(alone, false) {
			mended.Records = append(mended.Records, record(t, line))
		}
		for _, q.Wildcard = range []bool{false, true} {
			if r := Evaluate(q, mended); !r.Allowed || r.Lock != Locked {
				t.Errorf("mended, %v is %+v", mended.Records, r)
			}
		}
		Evaluate(q, Set{Owner: q.Domain, Records: []*dns.CAA{odd}})
		q.Advice(s, r)
	})
}

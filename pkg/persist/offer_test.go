package persist

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestParseOffer(t *testing.T) {
	const (
		plain = `{"newNonce": "https://ca.test/nonce", "meta": {"caaIdentities": ["ca.test"]}}`
		meta  = `{"meta": {"issuerDomainNames": ["ca.test"], "accountHashPrefix": "https://ca.test/h/"}}`
		half  = `{"meta": {"issuerDomainNames": ["ca.test"]}}`
		old   = `{"type": "dns-persist-01", "url": "https://ca.test/1", "status": "pending", "issuer-domain-names": ["ca.test", "CA.example.", "ca.test"], "accounturi": "https://ca.test/acct/1"}`
		older = `{"type": "dns-persist-01", "issuer-domain-names": ["ca.test"]}`
		newer = `{"type": "dns-persist-01", "issuerDomainNames": ["ca.test"]}`
	)
	many := `"` + strings.Repeat(`a","`, maxIssuers) + `a"`
	for _, tt := range []struct {
		name, directory, challenge string
		want                       Offer
		wrong                      string
	}{
		{name: "draft 01", directory: plain, challenge: old, want: Offer{Issuers: []string{"ca.test", "ca.example"}, Account: "https://ca.test/acct/1", Draft: Draft01}},
		{name: "draft 00", directory: plain, challenge: older, want: Offer{Issuers: []string{"ca.test"}, Draft: Draft01}},
		{name: "no directory", challenge: older, want: Offer{Issuers: []string{"ca.test"}, Draft: Draft01}},
		{name: "a server of both, asked for the older", directory: meta, challenge: older, want: Offer{Issuers: []string{"ca.test"}, Draft: Draft01, Prefix: "https://ca.test/h/"}},
		{name: "draft 02", directory: meta, challenge: newer, want: Offer{Issuers: []string{"ca.test"}, Draft: Draft02, Prefix: "https://ca.test/h/"}},
		{name: "a directory of draft 02 alone", directory: meta, want: Offer{Issuers: []string{"ca.test"}, Draft: Draft02, Prefix: "https://ca.test/h/"}},
		{name: "a directory that does not tell", directory: plain},
		{name: "a directory with half of it", directory: half},
		{name: "nothing at all"},

		{name: "draft 02 without a prefix", directory: half, challenge: newer, wrong: "accountHashPrefix"},
		{name: "a challenge that does not tell", directory: plain, challenge: `{"type": "dns-persist-01"}`, wrong: "neither"},
		{name: "no issuers", directory: plain, challenge: `{"type": "dns-persist-01", "issuer-domain-names": []}`, wrong: "neither"},
		{name: "another challenge", directory: plain, challenge: `{"type": "dns-01", "token": "x"}`, wrong: `"dns-01"`},
		{name: "an issuer that is none", directory: plain, challenge: `{"issuer-domain-names": ["ca.test", "ca_.test"]}`, wrong: "underscore"},
		{name: "too many issuers", directory: plain, challenge: `{"issuer-domain-names": [` + many + `]}`, wrong: "11 issuer"},
		{name: "an account that no record can hold", directory: plain, challenge: `{"issuer-domain-names": ["ca.test"], "accounturi": "https://ca.test/a;b"}`, wrong: "cannot hold"},
		{name: "no JSON", directory: "<html>", challenge: old, wrong: "read the directory"},
		{name: "another type", directory: plain, challenge: `{"issuer-domain-names": "ca.test"}`, wrong: "read the challenge"},
		{name: "too large", directory: strings.Repeat(" ", maxJSON+1), challenge: old, wrong: "octets"},
	} {
		raw := func(s string) []byte {
			if s == "" {
				return nil
			}
			return []byte(s)
		}
		got, err := ParseOffer(raw(tt.directory), raw(tt.challenge))
		switch {
		case tt.wrong != "" && (err == nil || !strings.Contains(err.Error(), tt.wrong)):
			t.Errorf("%s: %+v, %v, want an error with %q", tt.name, got, err, tt.wrong)
		case tt.wrong == "" && (err != nil || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", tt.want)):
			t.Errorf("%s: %+v, %v, want %+v", tt.name, got, err, tt.want)
		}
	}
}

// FuzzParseOffer holds what a CA says to be fit for records: whatever it is, it cannot make one that says something
// else than it should.
func FuzzParseOffer(f *testing.F) {
	f.Add([]byte(`{"meta":{"issuerDomainNames":["ca.test"],"accountHashPrefix":"https://ca.test/h/"}}`), []byte(`{"type":"dns-persist-01","issuerDomainNames":["ca.test"]}`))
	f.Add([]byte(`{}`), []byte(`{"issuer-domain-names":["CA.test."],"accounturi":"https://ca.test/acct/1"}`))
	f.Add([]byte(`null`), []byte(`[]`))
	f.Fuzz(func(t *testing.T, directory, challenge []byte) {
		o, err := ParseOffer(directory, challenge)
		if err != nil {
			return
		}
		if len(o.Issuers) > maxIssuers {
			t.Errorf("%d issuers", len(o.Issuers))
		}
		for _, name := range o.Issuers {
			r := Record{Issuer: name, Account: o.Account, Draft: Draft01}
			if o.Draft == Draft02 {
				r.Account, r.Draft = HashedAccount(o.Prefix, domain, strings.Repeat("t", 43), acct), Draft02
			} else if o.Account == "" {
				r.Account = acct
			}
			value, err := r.Value()
			if err != nil {
				t.Fatalf("%+v: %v", o, err)
			}
			if strings.Count(value, ";") != 1 || !slices.Contains(Drafts, o.Draft) {
				t.Errorf("%+v: %q", o, value)
			}
		}
	})
}

// FuzzParse holds a record to be what Boulder would take it for: what is read, written down again, is read the same.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"", ";", good, good + ";", "LETSENCRYPT.ORG. ;\tACCOUNTURI\t= " + acct + " ;policy=WildCard;persistUntil=+007",
		issuer + ";foo=a=b;foo=;accounturi=x", issuer + ";accounturi=\xff", "Bu\u0308cher.example;accounturi=x", issuer + ";persistUntil=-62135596800;accounturi=x",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, record string) {
		p, err := parse(record)
		if err != nil {
			return
		}
		again := p.issuer + ";accounturi=" + p.account + ";policy=" + p.policy
		if !p.until.IsZero() {
			again += fmt.Sprint(";persistuntil=", p.until.Unix())
		}
		if q, err := parse(again); err != nil || q != p {
			t.Errorf("%q is read as %+v, and %q as %+v, %v", record, p, again, q, err)
		}
		q := Question{Issuer: p.issuer, Account: p.account, Now: now}
		expired := !p.until.IsZero() && now.After(p.until)
		if v := Evaluate(q, []string{record}); p.issuer != "" && v.OK == expired {
			t.Errorf("%q: %+v", record, v)
		}
	})
}

package lab_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/tests/lab"
)

// Each of the two finds things out by itself, remembers them, absence as well, and notes what it was asked.
func TestResolvers(t *testing.T) {
	l := lab.New(t, lab.Options{})
	l.Delegate("svc.example.com")
	challenge, target := "_acme-challenge.svc.example.com", lab.Target("svc.example.com", lab.AliasZone)
	unbound, bind := l.StartResolvers()
	askedBy := func(s *lab.RecursiveServer, name string, qtype uint16) int {
		n := 0
		for _, q := range l.World.Matching(name, qtype) {
			if q.From.String() == s.Addr {
				n++
			}
		}
		return n
	}
	for _, s := range []*lab.RecursiveServer{unbound, bind} {
		if m := s.Ask("svc.example.com", dns.TypeCAA); m.Rcode != dns.RcodeSuccess || len(m.Answer) != 0 {
			t.Fatalf("%s before there is a record: %v", s.Addr, m)
		}
	}
	l.AddCAA("svc.example.com", "issue", "letsencrypt.org")
	if err := l.World.AddTXT(lab.AliasZone, target, "hello", 60); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*lab.RecursiveServer{unbound, bind} {
		if m := s.Ask("svc.example.com", dns.TypeCAA); len(m.Answer) != 0 {
			t.Errorf("%s has forgotten that there was no record: %v", s.Addr, m)
		}
		for range 2 {
			if m := s.Ask(challenge, dns.TypeTXT); m.Rcode != dns.RcodeSuccess || len(m.Answer) != 2 {
				t.Errorf("%s along the CNAME: %v", s.Addr, m)
			}
		}
		if n := askedBy(s, target, dns.TypeTXT); n != 1 {
			t.Errorf("%s asked the alias zone's servers %d times", s.Addr, n)
		}
		for _, want := range []struct {
			name  string
			qtype uint16
			lines int
		}{
			{"svc.example.com", dns.TypeCAA, 2},
			{challenge, dns.TypeTXT, 2},
			{challenge, dns.TypeCAA, 0},
			{target, dns.TypeTXT, 0}, // nobody has asked it that
		} {
			if got := s.Asked(want.name, want.qtype); len(got) != want.lines {
				t.Errorf("%s was asked for %s %s: %q, want %d lines", s.Addr, want.name, dns.TypeToString[want.qtype], got, want.lines)
			}
		}
		s.Flush()
		if n := len(s.Asked("svc.example.com", dns.TypeCAA)); n != 0 {
			t.Errorf("%s still tells of %d questions", s.Addr, n)
		}
		if m := s.Ask("svc.example.com", dns.TypeCAA); len(m.Answer) != 1 {
			t.Errorf("%s, with an empty cache: %v", s.Addr, m)
		}
		s.Stop()
		client := dns.Client{Timeout: time.Second}
		if _, _, err := client.Exchange(new(dns.Msg).SetQuestion("svc.example.com.", dns.TypeCAA), s.Addr+":53"); err == nil {
			t.Errorf("%s answers although it was stopped", s.Addr)
		}
	}
}

func TestOtherCA(t *testing.T) {
	l := lab.New(t, lab.Options{})
	ca := l.StartOtherCA()
	if uri := ca.Register(); !strings.HasPrefix(uri, "https://"+lab.OtherCAHost+"/") {
		t.Errorf("account %q", uri)
	}
	roots := x509.NewCertPool() // this process may have read the trust store of an earlier lab
	roots.AppendCertsFromPEM(ca.TLSRoot)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	defer client.CloseIdleConnections()
	resp, err := client.Get(ca.DirectoryURL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var directory struct {
		Meta struct{ CAAIdentities []string }
	}
	if err := json.NewDecoder(resp.Body).Decode(&directory); err != nil || !slices.Equal(directory.Meta.CAAIdentities, []string{lab.OtherIssuer}) {
		t.Errorf("identities %q, %v", directory.Meta.CAAIdentities, err)
	}
}

package delegation

import (
	"strings"
	"testing"

	"github.com/certhook/certhook/pkg/fault"
)

func TestTarget(t *testing.T) {
	one := Settings{Aliases: []string{"deleg.example.net"}}
	hashed := Settings{Aliases: []string{"deleg.example.net"}, Hashed: true}
	mapped := Settings{
		Aliases: []string{"deleg.example.net", "second.example.net"},
		Zones:   map[string]string{"example.org": "third.example.net", "b.example.org": "second.example.net"},
		Pins:    map[string]string{"pin.example.org": "anything.x.third.example.net"},
	}
	tests := []struct {
		name           string
		settings       Settings
		domain         string
		record, zone   string
		challengeOwner string
	}{
		{"nested", one, "svc.example.com", "_acme-challenge.svc.example.com.deleg.example.net", "deleg.example.net", "svc.example.com"},
		{"normalised", one, "SVC.Bücher.example.", "_acme-challenge.svc.xn--bcher-kva.example.deleg.example.net", "deleg.example.net", "svc.xn--bcher-kva.example"},
		// printf svc.example.com | openssl dgst -sha256 -binary | base32 -w0 | tr -d = | tr A-Z a-z
		{"hashed", hashed, "svc.example.com", "rgr2csdbaq3yfn54h66gzdebygtw3tvs2xbp3qbw3uuxajz4adqq.deleg.example.net", "deleg.example.net", "svc.example.com"},
		{"hashed, normalised", hashed, "SVC.example.com.", "rgr2csdbaq3yfn54h66gzdebygtw3tvs2xbp3qbw3uuxajz4adqq.deleg.example.net", "deleg.example.net", "svc.example.com"},
		{"no delegation", Settings{}, "svc.example.com", "_acme-challenge.svc.example.com", "", "svc.example.com"},
		{"no delegation, hashed", Settings{Hashed: true}, "svc.example.com", "_acme-challenge.svc.example.com", "", "svc.example.com"},
		{"first alias", mapped, "svc.example.com", "_acme-challenge.svc.example.com.deleg.example.net", "deleg.example.net", "svc.example.com"},
		{"mapped domain", mapped, "example.org", "_acme-challenge.example.org.third.example.net", "third.example.net", "example.org"},
		{"below a mapped domain", mapped, "a.example.org", "_acme-challenge.a.example.org.third.example.net", "third.example.net", "a.example.org"},
		{"longest domain wins", mapped, "x.b.example.org", "_acme-challenge.x.b.example.org.second.example.net", "second.example.net", "x.b.example.org"},
		{"only whole labels match", mapped, "notexample.org", "_acme-challenge.notexample.org.deleg.example.net", "deleg.example.net", "notexample.org"},
		{"pinned", mapped, "pin.example.org", "anything.x.third.example.net", "third.example.net", "pin.example.org"},
		{"a pin is for its domain alone", mapped, "x.pin.example.org", "_acme-challenge.x.pin.example.org.third.example.net", "third.example.net", "x.pin.example.org"},
		{"mapped without a default", Settings{Zones: map[string]string{"example.org": "third.example.net"}}, "example.com", "_acme-challenge.example.com", "", "example.com"},
		{"alias below the domain", Settings{Aliases: []string{"acme.example.com"}}, "example.com", "_acme-challenge.example.com.acme.example.com", "acme.example.com", "example.com"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.settings.Target(tt.domain)
			want := Target{Domain: tt.challengeOwner, Challenge: "_acme-challenge." + tt.challengeOwner, Record: tt.record, Alias: tt.zone}
			if err != nil || got != want {
				t.Errorf("Target = %+v, %v, want %+v", got, err, want)
			}
		})
	}
}

func TestTargetLine(t *testing.T) {
	target, err := Settings{Aliases: []string{"deleg.example.net"}}.Target("svc.example.com")
	if want := "_acme-challenge.svc.example.com. CNAME _acme-challenge.svc.example.com.deleg.example.net."; err != nil || target.Line() != want {
		t.Errorf("Line = %q, %v, want %q", target.Line(), err, want)
	}
	target, err = Settings{}.Target("svc.example.com")
	if err != nil || target.Line() != "" {
		t.Errorf("Line = %q, %v, want none", target.Line(), err)
	}
}

func TestTargetRefuses(t *testing.T) {
	label := strings.Repeat("a", 63)
	long := label + "." + label + "." + label + ".example.com" // 203 octets
	one := func(alias string) Settings { return Settings{Aliases: []string{alias}} }
	tests := []struct {
		name     string
		settings Settings
		domain   string
		says     string // in the message or the hint
	}{
		{"no name", one("deleg.example.net"), "", "domain name"},
		{"IP address", one("deleg.example.net"), "192.0.2.1", "IP address"},
		{"underscore", one("deleg.example.net"), "_acme-challenge.example.com", "underscore"},
		{"wildcard", one("deleg.example.net"), "*.example.com", "wildcard"},
		{"too long nested", one("deleg.example.net" + strings.Repeat(".example", 3)), long, "ACME_CHALLENGE_LABEL=hashed"},
		{"too long hashed", Settings{Aliases: []string{long}, Hashed: true}, "svc.example.com", "253"},
		{"too long for dns-01", Settings{}, label + "." + label + "." + label + "." + strings.Repeat("b", 50), "253"},
		{"alias is the domain", one("example.com"), "example.com", "example.com"},
		{"alias above the domain", one("example.com"), "a.svc.example.com", "example.com"},
		{"alias above the domain, by the map", Settings{Aliases: []string{"deleg.example.net"}, Zones: map[string]string{"svc.example.com": "example.com"}}, "svc.example.com", "example.com"},
		{"pin outside", Settings{Aliases: []string{"deleg.example.net"}, Pins: map[string]string{"svc.example.com": "x.notdeleg.example.net"}}, "svc.example.com", "x.notdeleg.example.net"},
		{"pin at an apex", Settings{Aliases: []string{"deleg.example.net"}, Pins: map[string]string{"svc.example.com": "deleg.example.net"}}, "svc.example.com", "deleg.example.net"},
		{"pin at the apex of a map's zone", Settings{Aliases: []string{"example.net"}, Zones: map[string]string{"example.org": "deleg.example.net"}, Pins: map[string]string{"svc.example.com": "deleg.example.net"}}, "svc.example.com", "deleg.example.net"},
		{"pin in the domain", Settings{Aliases: []string{"example.com"}, Pins: map[string]string{"svc.example.com": "x.example.com"}}, "svc.example.com", "example.com"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.settings.Target(tt.domain)
			if fault.KindOf(err) != fault.Usage {
				t.Fatalf("Target = %+v, %v, want an error of kind Usage", got, err)
			}
			if text := err.Error() + " " + fault.HintOf(err); !strings.Contains(text, tt.says) {
				t.Errorf("error %q does not say %q", text, tt.says)
			}
		})
	}
}

// TestHashedFitsWhereNestedDoesNot holds hashed against the name that nested refuses.
func TestHashedFitsWhereNestedDoesNot(t *testing.T) {
	label := strings.Repeat("a", 63)
	domain := label + "." + label + "." + label + ".example.com"
	s := Settings{Aliases: []string{"deleg" + strings.Repeat(".example", 4)}}
	if _, err := s.Target(domain); err == nil {
		t.Fatal("the nested name fits")
	}
	s.Hashed = true
	got, err := s.Target(domain)
	if err != nil || len(got.Record) != 52+1+len(got.Alias) || strings.ContainsAny(got.Record, "_=") || got.Record != strings.ToLower(got.Record) {
		t.Errorf("Target = %+v, %v", got, err)
	}
}

package rfc2136_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/provider"
	"github.com/certhook/certhook/pkg/provider/rfc2136"
	"github.com/certhook/certhook/tests/bindtest"
)

// What BIND refuses, each told apart from the others, with what to do about it. Nothing is written.
func TestRefused(t *testing.T) {
	closed := bindtest.Zone{
		Name: "closed.example.org", Policy: []string{"grant certhook-key. zonesub TXT"},
		Extra: `journal "/proc/nowhere.jnl";`,
	}
	l := newLab(t, closed)
	other := bindtest.NewKey("certhook-key")
	at := func(name string) provider.TXT { return provider.TXT{Name: name, Value: value, TTL: time.Minute} }

	for name, tc := range map[string]struct {
		change     func(*rfc2136.Config)
		zone       string
		rec        provider.TXT
		text, hint string
	}{
		"unknown key": {
			change: func(c *rfc2136.Config) { c.KeyName = "another-key" },
			text:   `knows no key "another-key" with hmac-sha256`, hint: "RFC2136_TSIG_NAME",
		},
		"wrong algorithm": {
			change: func(c *rfc2136.Config) { c.KeyAlgorithm = "hmac-sha512" },
			text:   `knows no key "certhook-key" with hmac-sha512`, hint: "RFC2136_TSIG_ALGORITHM",
		},
		"wrong secret": {
			change: func(c *rfc2136.Config) { c.KeySecret = other.Secret },
			text:   `"certhook-key" has another secret`, hint: "RFC2136_TSIG_SECRET",
		},
		"clock ahead": {
			change: func(c *rfc2136.Config) { c.Now = func() time.Time { return time.Now().Add(time.Hour) } },
			text:   "so this one is 1h0m", hint: "clock",
		},
		"clock behind": {
			change: func(c *rfc2136.Config) { c.Now = func() time.Time { return time.Now().Add(-10 * time.Minute) } },
			text:   " behind", hint: "clock",
		},
		"no key": {
			change: func(c *rfc2136.Config) { c.KeyName, c.KeySecret = "", "" },
			text:   "REFUSED: this machine, without a key, may not change the TXT at", hint: "RFC2136_TSIG_NAME",
		},
		"name not in the policy": {
			rec:  at("_acme-challenge.other.example.com." + zone),
			text: `the key "certhook-key" may not change the TXT at "_acme-challenge.other.example.com.deleg.example.net"`,
			hint: "update-policy { grant certhook-key. name _acme-challenge.other.example.com.deleg.example.net. TXT; };",
		},
		"journal cannot be written": {
			zone: closed.Name, rec: at("_acme-challenge." + closed.Name),
			text: "SERVFAIL", hint: "/var/lib/bind",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, z, rec := l.provider(tc.change), aliasZone, challenge
			if tc.zone != "" {
				z = provider.Zone{Name: tc.zone}
			}
			if tc.rec.Name != "" {
				rec = tc.rec
			}
			refused(t, l.config().KeySecret, p.Add(t.Context(), z, rec), tc.text, tc.hint)
			l.wantValues("")
		})
	}
}

// A removal is refused, too, and never taken for done.
func TestRemovalRefused(t *testing.T) {
	l := newLab(t)
	rec := provider.TXT{Name: "_acme-challenge.other.example.com." + zone, Value: value}
	l.Add(zone, rec.Name+` 60 TXT "`+value+`"`)
	removed, err := l.provider(nil).Remove(t.Context(), aliasZone, rec)
	refused(t, l.key.Secret, err, "REFUSED", "update-policy { grant certhook-key. name "+rec.Name+". TXT; };")
	if got := l.TXT(zone, rec.Name); removed || len(got) != 1 {
		t.Errorf("removed = %v, the zone has %q", removed, got)
	}
}

func TestZones(t *testing.T) {
	l := newLab(t, bindtest.Zone{Name: "private.example.org", Extra: "allow-query { key bindtest-admin; };"})
	p := l.provider(nil)
	for _, name := range []string{zone, parent} {
		if got, err := p.Zone(t.Context(), name); err != nil || got != (provider.Zone{Name: name}) {
			t.Errorf("Zone(%q) = %+v, %v", name, got, err)
		}
	}
	asked := len(l.relay.Messages())
	if _, err := p.Zone(t.Context(), zone); err != nil || len(l.relay.Messages()) != asked {
		t.Errorf("%v; a zone that is known was asked for again", err)
	}
	for _, name := range []string{owner, "net", "example.com", "private.example.org"} {
		if got, err := p.Zone(t.Context(), name); !errors.Is(err, provider.ErrNoZone) {
			t.Errorf("Zone(%q) = %+v, %v; want ErrNoZone", name, got, err)
		}
	}
	// Delegated by a zone of this server to others.
	l.Add(parent, "elsewhere.example.net 60 NS ns.example.org")
	if got, err := p.Zone(t.Context(), "elsewhere.example.net"); !errors.Is(err, provider.ErrNoZone) {
		t.Errorf("Zone of a delegated name = %+v, %v; want ErrNoZone", got, err)
	}
	// What is wrong with the key says nothing about zones.
	wrong := l.provider(func(c *rfc2136.Config) { c.KeyName = "another-key" })
	for _, name := range []string{zone, "example.com"} {
		_, err := wrong.Zone(t.Context(), name)
		refused(t, l.key.Secret, err, "BADKEY", "RFC2136_TSIG_NAME")
		if errors.Is(err, provider.ErrNoZone) {
			t.Errorf("Zone(%q) with a wrong key: %v", name, err)
		}
	}
}

// RFC2136_ZONE is the only zone to be looked up or written to.
func TestOnlyZone(t *testing.T) {
	l := newLab(t)
	p := l.provider(func(c *rfc2136.Config) { c.Zone = "Deleg.Example.NET." })
	if _, err := p.Zone(t.Context(), zone); err != nil {
		t.Error(err)
	}
	if _, err := p.Zone(t.Context(), parent); !errors.Is(err, provider.ErrNoZone) {
		t.Errorf("%v, want ErrNoZone", err)
	}
	if err := p.Add(t.Context(), provider.Zone{Name: parent}, challenge); err == nil {
		t.Error("a record was added to another zone")
	}
	if n := l.updates(); n != 0 {
		t.Errorf("%d updates", n)
	}
}

// Without a key the server goes by the address.
func TestNoKey(t *testing.T) {
	l := newLab(t, bindtest.Zone{Name: "open.example.org", Open: true})
	p := l.provider(func(c *rfc2136.Config) { c.KeyName, c.KeySecret = "", "" })
	z := provider.Zone{Name: "open.example.org"}
	rec := provider.TXT{Name: "_acme-challenge.open.example.org", Value: value, TTL: time.Minute}
	if err := p.Add(t.Context(), z, rec); err != nil {
		t.Error(err)
	}
	if removed, err := p.Remove(t.Context(), z, rec); err != nil || !removed {
		t.Errorf("removed = %v, %v", removed, err)
	}
	l.relay.Break(bindtest.DropAA, bindtest.Question(dns.TypeTXT), -1)
	_, err := p.Remove(t.Context(), z, rec)
	refused(t, "", err, "not authoritative", "RFC2136_SERVER")
	l.relay.Break(bindtest.DropAA, bindtest.Question(dns.TypeSOA), -1)
	_, err = p.Zone(t.Context(), zone)
	refused(t, "", err, "not authoritative", "RFC2136_SERVER")
	if errors.Is(err, provider.ErrNoZone) {
		t.Errorf("what a cache says was taken for a server's own word: %v", err)
	}
}

// A reply without a valid signature proves nothing.
func TestSignatureRequired(t *testing.T) {
	for name, tc := range map[string]struct {
		kind       bindtest.Fault
		text, hint string
	}{
		"unsigned": {bindtest.Unsign, "not signed", "certhook-key"},
		"forged":   {bindtest.Forge, "signature does not hold", "RFC2136_SERVER"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			p := l.provider(nil)
			if err := p.Add(t.Context(), aliasZone, challenge); err != nil {
				t.Fatal(err)
			}
			l.relay.Break(tc.kind, bindtest.Always, -1)
			_, err := p.Zone(t.Context(), parent)
			refused(t, l.key.Secret, err, tc.text, tc.hint)
			if errors.Is(err, provider.ErrNoZone) {
				t.Error("a zone was said to be absent")
			}
			second := challenge
			second.Value = "another-value-another-value-another-value-0"
			refused(t, l.key.Secret, p.Add(t.Context(), aliasZone, second), tc.text, tc.hint)
			for _, rec := range []provider.TXT{challenge, second} {
				removed, err := p.Remove(t.Context(), aliasZone, rec)
				refused(t, l.key.Secret, err, tc.text, tc.hint)
				if removed {
					t.Error("removed on the word of anybody")
				}
			}

			// The update's reply alone does not matter where a signed look-up shows what it did.
			l.relay.Mend()
			l.relay.Break(tc.kind, bindtest.IsUpdate, -1)
			if err := p.Add(t.Context(), aliasZone, second); err != nil {
				t.Error(err)
			}
			if removed, err := p.Remove(t.Context(), aliasZone, second); err != nil || !removed {
				t.Errorf("removed = %v, %v", removed, err)
			}
			l.wantValues(value)
		})
	}
}

func TestServerDown(t *testing.T) {
	l := newLab(t)
	p := l.provider(func(c *rfc2136.Config) { c.Server = l.Addr.String() })
	if _, err := p.Zone(t.Context(), zone); err != nil {
		t.Fatal(err)
	}
	l.Stop()
	refused(t, l.key.Secret, p.Add(t.Context(), aliasZone, challenge), "connection refused", "RFC2136_SERVER")
	_, err := p.Remove(t.Context(), aliasZone, challenge)
	refused(t, l.key.Secret, err, "connection refused", "RFC2136_SERVER")
	_, err = p.Zone(t.Context(), parent)
	refused(t, l.key.Secret, err, "connection refused", "RFC2136_SERVER")
	if errors.Is(err, provider.ErrNoZone) {
		t.Errorf("a server that is down was taken for one without the zone: %v", err)
	}
}

// A server that has lost the zone is not one that has lost the record.
func TestZoneGone(t *testing.T) {
	l := newLab(t)
	p := l.provider(nil)
	if err := p.Add(t.Context(), aliasZone, challenge); err != nil {
		t.Fatal(err)
	}
	l.relay.To(bindtest.New(t, bindtest.Options{Keys: []bindtest.Key{l.key}, Zones: []bindtest.Zone{{Name: "example.org"}}}))
	for name, fault := range map[string]bindtest.Fault{"signed": -1, "unsigned": bindtest.Unsign} { // as BIND, as Knot DNS
		t.Run(name, func(t *testing.T) {
			if fault >= 0 {
				l.relay.Break(fault, bindtest.Always, -1)
			}
			refused(t, l.key.Secret, p.Add(t.Context(), aliasZone, challenge), "it does not hold the zone", "primary server of the zone")
			removed, err := p.Remove(t.Context(), aliasZone, challenge)
			refused(t, l.key.Secret, err, "REFUSED", "BIND: allow-query")
			if removed {
				t.Error("removed from nowhere")
			}
			l.relay.Mend()
		})
	}
	refused(t, l.key.Secret, l.provider(nil).Add(t.Context(), aliasZone, challenge), "refuses questions", "primary server")
}

// A connection that breaks is made again; one that stays silent costs the caller no more than its time.
func TestConnectionLost(t *testing.T) {
	l := newLab(t)
	p := l.provider(nil)
	l.relay.Break(bindtest.LoseReply, bindtest.Question(dns.TypeSOA), 2)
	if err := p.Add(t.Context(), aliasZone, challenge); err != nil {
		t.Error(err)
	}
	l.relay.Break(bindtest.LoseReply, bindtest.IsUpdate, -1)
	l.relay.Break(bindtest.LoseReply, bindtest.Question(dns.TypeTXT), -1)
	removed, err := p.Remove(t.Context(), aliasZone, challenge)
	refused(t, l.key.Secret, err, "EOF", "does not answer")
	if removed {
		t.Error("removed, without a reply")
	}
	l.relay.Mend()
	l.relay.Break(bindtest.Stall, bindtest.IsUpdate, -1)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err = p.Remove(ctx, aliasZone, challenge)
	refused(t, l.key.Secret, err, "cannot be told", "does not answer")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want it to be the deadline's", err)
	}
	l.wantValues(value)
}

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/certhook/certhook/tests/bindtest"
	"github.com/certhook/certhook/tests/cloudflaretest"
	"github.com/certhook/certhook/tests/scripttest"
)

const scopeToken = "Zx8-TEST_token-Zx8-TEST_token-Zx8-TEST_0"

// The scripts have a Cloudflare account of their own, with a token for the alias zone. Their own commands:
//
//	zones NAME...                         add zones to the account
//	token [all|blind|expired|NAME...]     take another token: for all zones, without Zone:Read, expired, for these zones
//	list filtered|refused                 what the list of all zones shows to a token for some
//	api down                              make the API fail
//	dns [RULE]                            a DNS server with a key, and production at it, with a rule of its update-policy
//	unchanged                             fail if the API was asked to change anything
func TestScope(t *testing.T) {
	scripttest.RunInTurn(t, "testdata/scope", map[string]scripttest.Command{
		"zones": scopeZones, "token": scopeTokenCommand, "list": scopeList, "api": scopeAPI, "dns": scopeDNS, "unchanged": scopeUnchanged,
	}, func(t *testing.T, env *testscript.Env) {
		api := cloudflaretest.New(t, nil)
		for _, zone := range []string{"deleg.example.net", "example.com"} {
			api.AddZone(zone)
		}
		api.SetQuirks(cloudflaretest.Quirks{FilteredList: true})
		api.AddToken(cloudflaretest.Token{Secret: scopeToken, Zones: []string{"deleg.example.net"}, ZoneRead: true, DNSEdit: true})
		env.Values[scopeKey{}] = &scopeLab{api, t}
		env.Setenv("CLOUDFLARE_API_URL", api.URL)
		env.Setenv("CLOUDFLARE_API_TOKEN", scopeToken)
		env.Setenv("ACME_CHALLENGE_ALIAS", "deleg.example.net")
		env.Setenv("CERTBOT_CONFIG_DIR", env.WorkDir+"/letsencrypt")
	})
}

type scopeKey struct{}

type scopeLab struct {
	*cloudflaretest.Server
	t *testing.T
}

func scopeOf(ts *testscript.TestScript) *scopeLab { return ts.Value(scopeKey{}).(*scopeLab) }

func scopeZones(ts *testscript.TestScript, _ bool, args []string) {
	for _, zone := range args {
		scopeOf(ts).AddZone(zone)
	}
}

func scopeTokenCommand(ts *testscript.TestScript, _ bool, args []string) {
	token := cloudflaretest.Token{Secret: scopeToken, ZoneRead: true, DNSEdit: true}
	for _, arg := range args {
		switch arg {
		case "all":
			token.AllZones = true
		case "blind":
			token.ZoneRead, token.AllZones = false, true
		case "expired":
			token.Expires = time.Now().Add(-time.Hour)
		case "expires":
			token.Expires = time.Now().Add(73 * time.Hour)
		default:
			token.Zones = append(token.Zones, arg)
		}
	}
	scopeOf(ts).AddToken(token)
}

func scopeList(ts *testscript.TestScript, _ bool, args []string) {
	scopeOf(ts).SetQuirks(cloudflaretest.Quirks{FilteredList: args[0] == "filtered"})
}

func scopeAPI(ts *testscript.TestScript, _ bool, _ []string) {
	scopeOf(ts).Break(cloudflaretest.HTML502)
}

func scopeDNS(ts *testscript.TestScript, _ bool, args []string) {
	key := bindtest.NewKey("certhook-key")
	server := bindtest.New(scopeOf(ts).t, bindtest.Options{Keys: []bindtest.Key{key}, Zones: []bindtest.Zone{
		{Name: "deleg.example.net", Policy: []string{"grant certhook-key. subdomain deleg.example.net. TXT"}},
		{Name: "example.com", Policy: args},
	}})
	for name, value := range map[string]string{
		"CLOUDFLARE_API_TOKEN": "", "CLOUDFLARE_API_URL": "",
		"RFC2136_SERVER": server.Addr.String(), "RFC2136_TSIG_NAME": key.Name, "RFC2136_TSIG_SECRET": key.Secret,
	} {
		ts.Setenv(name, value)
	}
}

func scopeUnchanged(ts *testscript.TestScript, _ bool, _ []string) {
	for _, c := range scopeOf(ts).Calls() {
		if c.Method != "GET" {
			ts.Fatalf("%s %s", c.Method, c.Path)
		}
	}
	for _, file := range []string{"stdout", "stderr"} {
		if text := ts.ReadFile(file); strings.Contains(text, scopeToken[5:20]) {
			ts.Fatalf("the token is in %s", file)
		}
	}
}

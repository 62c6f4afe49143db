package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/certhook/certhook/tests/cloudflaretest"
	"github.com/certhook/certhook/tests/lab"
	"github.com/certhook/certhook/tests/scripttest"
)

// The scripts call the hooks as certbot does, one lab each, and see what the caller sees: exit codes and
// messages. Their own commands:
//
//	challenge DOMAIN VALUE                              be certbot with a challenge for that single name
//	delegate DOMAIN...                                  add the operator's CNAME
//	api FAULT [METHOD]                                  make the API fail; "api mend" ends all faults
//	account ID                                          be certbot with that account besides any other; see lock
//	caa OWNER TAG VALUE                                 add a CAA record to production
//	lock DOMAIN                                         add the one that locks a domain to the last account
//	lag DURATION                                        how late one server of the alias zone shows changes
//	production RCODE                                    what production's servers answer; 0 mends them
//	txt DOMAIN [VALUE...]                               fail unless the alias zone has exactly these values
//	inflight N                                          fail unless the journal takes N records for existing
//	settings [KEY=VALUE...]                             write the settings file
//	token edit-only|edit-only-everywhere                take other permissions from the token
//	nothing-outside                                     fail if any other zone has a TXT
func TestScripts(t *testing.T) {
	scripttest.RunInTurn(t, "testdata", map[string]scripttest.Command{
		"challenge": challenge, "delegate": delegate, "api": api, "lag": lag, "account": account, "caa": caa, "lock": lock, "production": production,
		"txt": txt, "inflight": inflight, "settings": settings,
		"token": token, "nothing-outside": nothingOutside,
	}, func(t *testing.T, env *testscript.Env) {
		env.Values[labKey{}] = &labScript{Lab: lab.New(t, lab.Options{}), t: t}
		env.Setenv("ZONE_ID", cloudflaretest.ZoneID(lab.AliasZone))
		env.Setenv("OTHER_ZONE_ID", cloudflaretest.ZoneID(lab.ProductionZone))
		env.Setenv("PATH", filepath.Dir(lab.Hook("auth-hook"))+string(os.PathListSeparator)+env.Getenv("PATH"))
	})
}

type labKey struct{}

type labScript struct {
	*lab.Lab
	t    *testing.T
	mend []func()

	account string // URI
}

func of(ts *testscript.TestScript) *labScript { return ts.Value(labKey{}).(*labScript) }

// value makes a well-formed validation of a short word.
func value(word string) string { return word + strings.Repeat("0", 43-len(word)) }

func challenge(ts *testscript.TestScript, _ bool, args []string) {
	ts.Setenv("CERTBOT_DOMAIN", args[0])
	ts.Setenv("CERTBOT_ALL_DOMAINS", args[0])
	ts.Setenv("CERTBOT_VALIDATION", value(args[1]))
	ts.Setenv("CERTBOT_REMAINING_CHALLENGES", "0")
}

func delegate(ts *testscript.TestScript, _ bool, args []string) { of(ts).Delegate(args...) }

func api(ts *testscript.TestScript, _ bool, args []string) {
	s := of(ts)
	if args[0] == "mend" {
		for _, f := range s.mend {
			f()
		}
		return
	}
	fault, ok := map[string]cloudflaretest.Fault{
		"forbidden": cloudflaretest.Forbidden, "html": cloudflaretest.HTML502, "null": cloudflaretest.NullResult,
		"unsuccessful": cloudflaretest.Unsuccessful, "hang": {Delay: time.Hour},
	}[args[0]]
	if !ok {
		ts.Fatalf("no fault %q", args[0])
	}
	if len(args) > 1 {
		fault.Method = args[1]
	}
	s.mend = append(s.mend, s.API.Break(fault))
}

func account(ts *testscript.TestScript, _ bool, args []string) {
	of(ts).account = of(ts).PutAccount(args[0])
}

func caa(ts *testscript.TestScript, _ bool, args []string) { of(ts).AddCAA(args[0], args[1], args[2]) }

func lock(ts *testscript.TestScript, _ bool, args []string) { of(ts).Lock(args[0], of(ts).account) }

func lag(ts *testscript.TestScript, _ bool, args []string) {
	d, err := time.ParseDuration(args[0])
	ts.Check(err)
	of(ts).Alias[0].SetLag(d)
}

func production(ts *testscript.TestScript, _ bool, args []string) {
	var rcode int
	_, err := fmt.Sscan(args[0], &rcode)
	ts.Check(err)
	for _, server := range of(ts).Production {
		server.SetRcode(rcode)
	}
}

func txt(ts *testscript.TestScript, _ bool, args []string) {
	got := of(ts).World.TXT(lab.AliasZone, lab.Target(args[0], lab.AliasZone))
	var want []string
	for _, word := range args[1:] {
		want = append(want, value(word))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		ts.Fatalf("the values are %q, want %q", got, want)
	}
}

func inflight(ts *testscript.TestScript, _ bool, args []string) {
	if live := inFlight(of(ts).t); fmt.Sprint(len(live)) != args[0] {
		ts.Fatalf("in flight: %q, want %s", live, args[0])
	}
}

func settings(ts *testscript.TestScript, _ bool, args []string) {
	values := make(map[string]string)
	for _, arg := range args {
		key, v, _ := strings.Cut(arg, "=")
		values[key] = v
	}
	of(ts).Configure(values)
}

func token(ts *testscript.TestScript, _ bool, args []string) {
	of(ts).API.AddToken(cloudflaretest.Token{
		Secret: lab.Token, Zones: []string{lab.AliasZone}, DNSEdit: true, AllZones: args[0] == "edit-only-everywhere",
	})
}

func nothingOutside(ts *testscript.TestScript, _ bool, _ []string) {
	for _, zone := range lab.Zones() {
		if got := of(ts).World.AllTXT(zone); zone != lab.AliasZone && len(got) > 0 {
			ts.Fatalf("zone %s has %q", zone, got)
		}
	}
}

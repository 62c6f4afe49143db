package certbot

import (
	"reflect"
	"strings"
	"testing"

	"github.com/certhook/certhook/pkg/fault"
)

// TestLineagesOfCertbot reads what certbot 2.1.0 wrote (but for the names of directories, and one of a lineage).
func TestLineagesOfCertbot(t *testing.T) {
	const server, account = "https://127.0.0.1:14000/directory", "522f120e32a59f5195914931684a9cfa"
	got, errs := Lineages("testdata/certbot-2.1")
	want := []Lineage{
		{
			Name: "books", Names: []string{"xn--bcher-kva.example", "a.example.com"}, Server: server, AccountID: account,
			Authenticator: "manual", AuthHook: `/usr/local/bin/auth-hook --config 'it' "a" #x`, PrefChallenges: []string{"dns-01"},
		},
		{
			Name: "svc.example.com", Names: []string{"svc.example.com", "*.svc.example.com"}, Server: server, AccountID: account,
			Authenticator: "manual", AuthHook: `/usr/local/bin/auth-hook --config "/etc/certhook/a, b.env" # x`, PrefChallenges: []string{"dns-01"},
		},
		{
			Name: "www.example.com", Names: []string{"www.example.com"}, Server: server, AccountID: account,
			Authenticator: "manual", AuthHook: "/usr/local/bin/auth-hook", PrefChallenges: []string{"dns-01", "http-01"},
		},
	}
	if !reflect.DeepEqual(got, want) || len(errs) > 0 {
		t.Errorf("got  %+v, %q\nwant %+v", got, errs, want)
	}
}

func TestLineages(t *testing.T) {
	c := newConfigDir(t)
	if got, errs := Lineages(c.path); got != nil || errs != nil {
		t.Errorf("without a directory: %v, %v", got, errs)
	}
	c.lineage("b", production, "x", "B.example.com", "*.B.example.com", "a.example.com")
	c.lineage("ip", production, "x")
	c.lineage("hookless", production, "x", "c.example.com")
	c.write("renewal/hookless.conf", "[renewalparams]\nauthenticator = webroot\nmanual_auth_hook = None\npref_challs = ,\n")
	c.write("renewal/README", "no lineage")
	c.write("renewal/gone.conf", "[renewalparams]\n")
	c.write("renewal/half.conf", "[renewalparams\n")
	c.write("renewal/no-pem.conf", "[renewalparams]\n")
	c.write("live/no-pem/cert.pem", "nonsense")
	c.link("/nowhere", "renewal/astray.conf")
	got, errs := Lineages(c.path)
	want := []Lineage{
		{
			Name: "b", Names: []string{"b.example.com", "*.b.example.com", "a.example.com"}, Server: production, AccountID: "x",
			Authenticator: "manual", AuthHook: `/usr/local/bin/auth-hook -v "a=b"`, PrefChallenges: []string{"dns-01"},
		},
		{Name: "hookless", Names: []string{"c.example.com"}, Authenticator: "webroot"},
		{
			Name: "ip", Server: production, AccountID: "x",
			Authenticator: "manual", AuthHook: `/usr/local/bin/auth-hook -v "a=b"`, PrefChallenges: []string{"dns-01"},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	broken := []string{`"astray"`, `"gone"`, `"half"`, `"no-pem"`}
	if len(errs) != len(broken) {
		t.Fatalf("errors %q, want one each for %q", errs, broken)
	}
	for i, name := range broken {
		if !strings.Contains(errs[i].Error(), name) || fault.KindOf(errs[i]) != fault.Usage {
			t.Errorf("error %q of kind %v does not name %s", errs[i], fault.KindOf(errs[i]), name)
		}
	}
}

func TestLineagesOfRoot(t *testing.T) {
	c := newConfigDir(t)
	c.lineage("svc", production, "a", "svc.example.com")
	unprivileged(t, c.path+"/renewal", func() {
		got, errs := Lineages(c.path)
		if len(got) > 0 || len(errs) != 1 || !strings.Contains(fault.HintOf(errs[0]), "root") {
			t.Errorf("got %v, %q, hint %q", got, errs, fault.HintOf(errs[0]))
		}
	})
}

package certbot

import (
	"errors"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/certhook/certhook/pkg/fault"
)

func TestAccounts(t *testing.T) {
	c := newConfigDir(t)
	c.account(v02, "a", 1)
	c.account(v02, "b", 2)
	c.account(v02, "c", 1)
	c.account(stg, "d", 3)
	c.write("accounts/"+v02+"/e/regr.json", "{")
	found, unreadable := Accounts(c.path, production)
	if want := []Account{{"a", uri(1)}, {"b", uri(2)}}; !slices.Equal(found, want) {
		t.Errorf("found %v, want %v", found, want)
	}
	if len(unreadable) != 1 || !strings.HasSuffix(unreadable[0].Path, "/e") {
		t.Errorf("unreadable: %v", unreadable)
	}
}

func TestAccountForName(t *testing.T) {
	c := newConfigDir(t)
	for i, id := range []string{"a", "b", "c", "d"} {
		c.account(v02, id, i+1)
	}
	c.account(stg, "s", 9)
	c.write("accounts/"+v02+"/broken/regr.json", "{")
	c.lineage("base", production, "a", "svc.example.com", "other.example.com")
	c.lineage("wild", production, "b", "*.wild.example.com")
	c.lineage("one", production, "c", "both.example.com")
	c.lineage("two", production, "d", "*.both.example.com")
	c.lineage("same", production, "a", "*.svc.example.com")
	c.lineage("elsewhere", staging, "b", "svc.example.com")
	c.lineage("unusable", production, "broken", "broken.example.com")
	c.lineage("addresses", production, "a")

	book := ReadBook(c.path, production)
	for name, want := range map[string][]int{
		"svc.example.com":      {1},
		"SVC.example.com.":     {1},
		"*.svc.example.com":    {1},
		"*.other.example.com":  {1},
		"wild.example.com":     {2},
		"*.wild.example.com":   {2},
		"both.example.com":     {3, 4},
		"*.both.example.com":   {3, 4},
		"a.wild.example.com":   {1, 2, 3, 4},
		"unknown.example.com":  {1, 2, 3, 4},
		"notsvc.example.com":   {1, 2, 3, 4},
		"*.broken.example.com": nil,
	} {
		for _, lookUp := range []func() (Account, error){
			func() (Account, error) { return ReadBook(c.path, production).ForName(name) },
			func() (Account, error) { return book.ForName(name) },
		} {
			got, err := lookUp()
			several, _ := errors.AsType[SeveralAccounts](err)
			unreadable, _ := errors.AsType[*UnreadableAccount](err)
			switch len(want) {
			case 0:
				if unreadable == nil || !strings.HasSuffix(unreadable.Path, "/broken") {
					t.Errorf("%s: got %v, %v", name, got, err)
				}
			case 1:
				if err != nil || got.URI != uri(want[0]) {
					t.Errorf("%s: got %v, %v, want number %d", name, got, err, want[0])
				}
			default:
				var uris []string
				for _, n := range want {
					uris = append(uris, uri(n))
				}
				if !slices.Equal(several.URIs(), uris) {
					t.Errorf("%s: got %v, %v, want one of %q", name, got, err, uris)
				}
			}
		}
	}
	if got, err := ReadBook(c.path, staging).ForName("new.example.com"); err != nil || got.URI != uri(9) {
		t.Errorf("the only one: %v, %v", got, err)
	}
	if got, err := AccountFor(c.path, production, nil); err == nil {
		t.Errorf("for no name: %v", got)
	}
}

// TestNoAccount wants an operator to be told where the accounts are instead, and what to run.
func TestNoAccount(t *testing.T) {
	const other = "https://127.0.0.1:14000/dir"
	for _, tt := range []struct {
		what      string
		prepare   func(configDir)
		server    string
		elsewhere []string
		text      []string // parts of the error
		hint      []string // parts of the hint
	}{
		{
			what: "nothing", server: production,
			text: []string{"no account", "Let's Encrypt's production server"},
			hint: []string{"certbot register --server " + production + " ", "--agree-tos -m you@example.com"},
		},
		{
			what: "nothing at staging", server: staging,
			text: []string{"no account", "Let's Encrypt's staging server"}, hint: []string{"certbot register --staging "},
		},
		{what: "nothing at a lab", server: lab, text: []string{lab}, hint: []string{"certbot register --server " + lab}},
		{
			what: "staging instead", server: production, prepare: func(c configDir) { c.account(stg, "a", 1) }, elsewhere: []string{staging},
			text: []string{"an account at Let's Encrypt's staging server, none at its production server"},
			hint: []string{"ACME_SERVER", "ACME_STAGING=true", "certbot register --server " + production},
		},
		{
			what: "production instead", server: staging, prepare: func(c configDir) { c.account(v02, "a", 1) }, elsewhere: []string{production},
			text: []string{"an account at Let's Encrypt's production server, none at its staging server"},
			hint: []string{"ACME_SERVER", "ACME_STAGING", "certbot register --staging"},
		},
		{
			what: "a lab instead", server: production, prepare: func(c configDir) { c.account("127.0.0.1:14000/dir", "a", 1) }, elsewhere: []string{other},
			text: []string{"an account at " + other + ", none at Let's Encrypt's production server"},
			hint: []string{"ACME_SERVER=" + other, "certbot register"},
		},
		{
			what: "two instead, one by a link", server: "https://ca.example/acme/v2/directory",
			prepare: func(c configDir) {
				c.account("ca.example/acme/directory", "a", 1)
				c.account(v01, "a", 2)
				c.link("../"+v01, "accounts/"+v02)
				c.link("..", "accounts/loop.example")
				c.write("accounts/"+stg+"/broken/regr.json", "{")
				c.write("accounts/empty.example/directory/.keep", "")
				c.account("", "nowhere", 3)
			},
			elsewhere: []string{"https://acme-v01.api.letsencrypt.org/directory", production, "https://ca.example/acme/directory"},
			text:      []string{"Let's Encrypt's production server", "https://ca.example/acme/directory", "none at https://ca.example/acme/v2/directory"},
			hint:      []string{"ACME_SERVER", "certbot register --server https://ca.example/acme/v2/directory"},
		},
	} {
		t.Run(tt.what, func(t *testing.T) {
			c := newConfigDir(t)
			if tt.prepare != nil {
				tt.prepare(c)
			}
			_, err := ReadBook(c.path, tt.server).ForName("svc.example.com")
			none, ok := errors.AsType[*NoAccount](err)
			if !ok || !errors.Is(err, ErrNoAccount) || fault.KindOf(err) != fault.Usage {
				t.Fatalf("got %v", err)
			}
			if none.Server != tt.server || !slices.Equal(none.Elsewhere, tt.elsewhere) {
				t.Errorf("server %q, elsewhere %q, want %q", none.Server, none.Elsewhere, tt.elsewhere)
			}
			for _, part := range tt.text {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
			for _, part := range append(tt.hint, "--config-dir "+c.path) {
				if !strings.Contains(fault.HintOf(err), part) {
					t.Errorf("hint %q does not say %q", fault.HintOf(err), part)
				}
			}
		})
	}
	if hint := (&NoAccount{ConfigDir: "/etc/letsencrypt", Server: production}).hint(); strings.Contains(hint, "--config-dir") {
		t.Errorf("%q names the directory that certbot uses by itself", hint)
	}
}

// TestUnreadableAccount wants a permission that is missing and a file that is broken told apart.
func TestUnreadableAccount(t *testing.T) {
	c := newConfigDir(t)
	c.write("accounts/"+v02+"/a/regr.json", "{")
	_, err := AccountFor(c.path, production, []string{"svc.example.com"})
	if !strings.Contains(err.Error(), v02+"/a/regr.json") || !strings.Contains(fault.HintOf(err), "backup") {
		t.Errorf("broken: %v, hint %q", err, fault.HintOf(err))
	}
	c.account(v02, "a", 1)
	unprivileged(t, c.path+"/accounts", func() {
		_, err := AccountFor(c.path, production, []string{"svc.example.com"})
		if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), v02) || !strings.Contains(fault.HintOf(err), "root") {
			t.Errorf("forbidden: %v, hint %q", err, fault.HintOf(err))
		}
		if found, unreadable := Accounts(c.path, production); len(found) > 0 || len(unreadable) != 1 {
			t.Errorf("found %v, unreadable %v", found, unreadable)
		}
	})
}

// unprivileged runs f as somebody who may not read dir.
func unprivileged(t *testing.T, dir string, f func()) {
	t.Helper()
	if err := os.Chmod(dir, 0); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir, 0o700)
	if os.Getuid() == 0 {
		// Of this thread alone, and f runs on no other.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := syscall.Setfsuid(65534); err != nil {
			t.Fatal(err)
		}
		defer syscall.Setfsuid(0)
	}
	f()
}

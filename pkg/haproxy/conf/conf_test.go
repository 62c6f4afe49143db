package conf

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/certhook/certhook/pkg/fault"
)

// read reads a single text.
func read(t *testing.T, text string) Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "haproxy.cfg")
	write(t, "", map[string]string{path: text})
	c, err := Reader{Lookup: lookup, Dir: "/work"}.Read([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAddresses(t *testing.T) {
	for text, want := range map[string][]string{
		"*:443":                         {"127.0.0.1:443"},
		":443":                          {"127.0.0.1:443"},
		"0.0.0.0:443":                   {"127.0.0.1:443"},
		"192.0.2.1:443":                 {"192.0.2.1:443"},
		"localhost:443":                 {"localhost:443"},
		":::443":                        {"[::1]:443"},
		"[::]:443 v4v6":                 {"[::1]:443"},
		"[2001:db8::1]:443":             {"[2001:db8::1]:443"},
		"2001:db8::1:443":               {"[2001:db8::1]:443"},
		"127.0.0.1:8443,127.0.0.1:8444": {"127.0.0.1:8443", "127.0.0.1:8444"},
		":443-445":                      {"127.0.0.1:443"},
		"ipv4@:443,ipv6@:443,ip@:443":   {"127.0.0.1:443", "[::1]:443", "127.0.0.1:443"},
		"tcp@:1,tcp4@*:2,tcp6@*:3":      {"127.0.0.1:1", "127.0.0.1:2", "[::1]:3"},
		"stream+ipv4@127.0.0.2:5":       {"127.0.0.2:5"},
		"/run/a@b:1.sock":               {"/run/a@b:1.sock"},
		"unix@/run/x,uxst@/run/y":       {"/run/x", "/run/y"},
		"unix@x.sock":                   {"/work/x.sock"},
		"abns@x":                        {"abns@x"},
		"127.0.0.1:${X}4,${X}.test:$X":  {"127.0.0.1:y4", "y.test:y"},
		`"127.0.0.1:${PORT-44}3"`:       {"127.0.0.1:443"},
		":443 interface lo":             {"127.0.0.1:443"},
	} {
		c := read(t, "frontend f\n\tbind "+text+" ssl crt x\n")
		if len(c.Binds) != 1 || !slices.Equal(c.Binds[0].Addresses, want) || len(c.Binds[0].Unseen) != 0 {
			t.Errorf("%s: %+v, want %q", text, c.Binds, want)
		}
	}
}

// What cannot be reached from here is named with its reason, beside what can be.
func TestUnseen(t *testing.T) {
	for text, want := range map[string]string{
		"quic4@:443,:443": "quic4@:443 (", "fd@${FD},:443": "fd@${FD} (", "abnsz@x,:443": "abnsz@x (", ":80,udp4@:53": "udp4@:53 (",
		":443 interface eth0": ":443 (only from eth0)", ":443 namespace blue": ":443 (", ":443 accept-netscaler-cip 5": ":443 (", "rhttp@x,:1": "rhttp@x (",
	} {
		c := read(t, "frontend f\n\tbind "+text+" ssl crt x\n")
		if len(c.Binds) != 1 || len(c.Binds[0].Unseen) != 1 || !strings.HasPrefix(c.Binds[0].Unseen[0], want) {
			t.Errorf("%s: %+v, want %q", text, c.Binds, want)
			continue
		}
		if many := strings.Contains(text, ","); many != (len(c.Binds[0].Addresses) == 1) {
			t.Errorf("%s: %q", text, c.Binds[0].Addresses)
		}
	}
}

func TestBindOptions(t *testing.T) {
	c := read(t, `global
	crt-base /etc/ssl
listen l
	bind :1 name ssl # no TLS
	bind :2 ssl crt a crt /b/ crt a crt-list l.txt verify required ca-file ssl strict-sni accept-proxy alpn h2
	bind :3 ssl default-crt @store/c crt "d e"
	bind :4 ssl "$EMPTY" crt after
	bind quic4@:5 crt q
backend b
	server s 127.0.0.1:6 ssl crt client.pem verify none
`)
	var got []string
	for _, b := range c.Binds {
		got = append(got, strings.Join(b.Certs, " "))
	}
	if want := []string{"/etc/ssl/a /b/", "@store/c /etc/ssl/d e", "", "/etc/ssl/q"}; !slices.Equal(got, want) {
		t.Fatalf("%q, want %q", got, want)
	}
	b := c.Binds[0]
	if b.Line != 5 || b.Proxy != "l" || !b.AcceptProxy || !b.StrictSNI || b.Verify != "required" || !slices.Equal(b.CrtLists, []string{"l.txt"}) || b.Conditional {
		t.Errorf("%+v", b)
	}
	if b := c.Binds[1]; b.AcceptProxy || b.StrictSNI || b.Verify != "" {
		t.Errorf("%+v", b)
	}
}

func TestGlobal(t *testing.T) {
	c := read(t, `global
	user "$X"
	user second
	group g
	chroot '/var/lib/haproxy'
	pidfile /run/pid
	master-worker no-exit-on-failure
	crt-base /c
	stats socket /run/a.sock mode 660 level admin expose-fd listeners
	stats socket ipv4@127.0.0.1:9999 user level level user
	stats socket /run/b.sock,unix@/run/c.sock
	stats timeout 2m
	unix-bind mode 770 prefix /jail
	stats socket /run/d.sock level admin
	.if defined(NONE)
	stats socket /run/e.sock level admin
	.endif
	stats socket fd@3 level admin
defaults
	stats socket /run/f.sock level admin
frontend f
	bind /u.sock,unix@/v.sock ssl crt x
`)
	if c.User != "y" || c.Group != "g" || c.Chroot != "/var/lib/haproxy" || c.PIDFile != "/run/pid" || !c.MasterWorker || c.CrtBase != "/c" {
		t.Errorf("%+v", c)
	}
	want := []Socket{
		{Path: "/run/a.sock", Level: "admin"},
		{Path: "127.0.0.1:9999", Level: "user"},
		{Path: "/run/b.sock", Level: "operator"},
		{Path: "/run/c.sock", Level: "operator"},
		{Path: "/run/d.sock", Level: "admin"},
		{Path: "/run/e.sock", Level: "admin", Conditional: true},
	}
	if !slices.Equal(c.StatsSockets, want) {
		t.Errorf("%+v", c.StatsSockets)
	}
	if len(c.Binds) != 1 || !slices.Equal(c.Binds[0].Addresses, []string{"/jail/u.sock", "/jail/v.sock"}) {
		t.Errorf("%+v", c.Binds)
	}
}

func TestConditional(t *testing.T) {
	c := read(t, `frontend f
	bind :1 ssl crt a
	.if defined(X)
		.if 0
	bind :2 ssl crt b
		.endif
	bind :3 ssl crt c
	.elif 1
	disabled
	.else
	bind :4 ssl crt d
	.endif
	bind :5 ssl crt e
`)
	var got []bool
	for _, b := range c.Binds {
		got = append(got, b.Conditional)
		if len(b.Unseen) > 0 {
			t.Errorf("%s: %q", b, b.Unseen)
		}
	}
	if want := []bool{false, true, true, true, false}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestExpectProxy(t *testing.T) {
	c := read(t, `frontend a
	bind :1 ssl crt a
	tcp-request connection expect-proxy layer4
	bind :2 ssl crt a
frontend b
	tcp-request connection expect-proxy layer4 if { src 192.0.2.0/24 }
	bind :3 ssl crt a
`)
	if len(c.Binds) != 3 || !c.Binds[0].AcceptProxy || !c.Binds[1].AcceptProxy || c.Binds[2].AcceptProxy {
		t.Errorf("%+v", c.Binds)
	}
}

func TestNewerSyntax(t *testing.T) {
	c := read(t, `global
	crt-base /c
frontend a
	ssl-f-use crt one.pem sigalgs crt
	bind :1 ssl
	bind :80
	ssl-f-use crt two.pem key three.pem
frontend b
	bind :2 ssl crt x ktls on
`)
	if len(c.Binds) != 2 || !slices.Equal(c.Binds[0].Certs, []string{"/c/one.pem", "/c/two.pem"}) || !slices.Equal(c.Binds[1].Certs, []string{"/c/x"}) {
		t.Errorf("%+v", c.Binds)
	}
}

func TestUnreadable(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"x.cfg/y": "", "d/a.cfg": "", "crt.cfg": "frontend f\n bind :1 ssl crt-list none.txt\n"})
	if err := os.Symlink("none", filepath.Join(dir, "d/b.cfg")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"none", "d"} {
		_, err := Reader{}.Read([]string{filepath.Join(dir, path)})
		if fault.KindOf(err) != fault.Usage || !errors.Is(err, fs.ErrNotExist) || fault.HintOf(err) == "" {
			t.Errorf("%s: error %v", path, err)
		}
	}
	c, err := Reader{Dir: dir}.Read([]string{"crt.cfg"})
	if err != nil || len(c.Binds) != 1 || !slices.Equal(c.Binds[0].Unread, []string{"none.txt"}) {
		t.Errorf("%+v, error %v", c.Binds, err)
	}
}

// A frontend in a file does not go on in the next one.
func TestSectionsEndWithTheirFile(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"1.cfg": "frontend f\n", "2.cfg": "bind :1 ssl crt a\n", "3.cfg": "global\n\tcrt-base /c\n", "4.cfg": "frontend g\n bind :2 ssl crt b"})
	c, err := Reader{}.Read([]string{dir})
	if err != nil || len(c.Binds) != 1 || c.Binds[0].Proxy != "g" || !slices.Equal(c.Binds[0].Certs, []string{"/c/b"}) {
		t.Errorf("%+v, error %v", c.Binds, err)
	}
}

// Our environment says nothing of HAProxy's.
func TestEnvironment(t *testing.T) {
	t.Setenv("OURS", "/ours.pem")
	const text = "global\n\tsetenv MADE /m\n\tlocalpeer \"$HAPROXY_LOCALPEER\"\nfrontend f\n\tbind ${GONE}:1 ssl crt \"$OURS\" crt \"$MADE\" crt \"$ONE\" crt \"$OURS\"\n"
	c := read(t, text)
	if len(c.Binds) != 1 || slices.Contains(c.Binds[0].Certs, "/ours.pem") || !slices.Equal(c.Unset, []string{"OURS", "GONE"}) {
		t.Errorf("%+v", c)
	}
	dir := t.TempDir()
	write(t, dir, map[string]string{"x.cfg": text})
	if c, err := (Reader{Dir: dir}).Read([]string{"x.cfg"}); err != nil || !slices.Equal(c.Unset, []string{"OURS", "ONE", "GONE"}) {
		t.Errorf("without an environment: %+v, error %v", c, err)
	}
}

func TestExtraFiles(t *testing.T) {
	for text, want := range map[string]string{"": "bundle sctl ocsp issuer key", "none": "none", "ocsp bundle": "ocsp bundle", "none\n\tssl-load-extra-files all": "bundle sctl ocsp issuer key"} {
		if text != "" {
			text = "global\n\tssl-load-extra-files " + text + "\n"
		}
		if c := read(t, text); strings.Join(c.Extra, " ") != want {
			t.Errorf("%q: %q, want %q", text, c.Extra, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("global\n\tcrt-base /c\n\tsetenv A \"$A$A\"\n\tstats socket /s level admin\nfrontend f\n\tbind \"[::]:44${X}\",quic4@:1,${X} ssl crt 'a' verify none\n.if 1\n.endif\n")
	f.Add("peers p\n\tdefault-bind ssl crt a\ndefaults d from e\n\tdisabled\nlisten l from d\nbind :\\x31 ssl crt-list /dev/null \"${ONE[*]-z}\"\nglobal\n\tresetenv A\n\tdefault-path origin /\n\tunix-bind prefix p\n")
	path := filepath.Join(f.TempDir(), "x.cfg")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "crt-list") {
			return // would open files of all kinds
		}
		p := parser{Reader: Reader{Lookup: lookup}, env: map[string]variable{}, defaults: map[string]bool{}, lists: map[string][]Listed{}}
		p.read(path, text)
		for _, b := range p.c.Binds {
			if b.Line < 1 || b.Line > strings.Count(text, "\n")+1 {
				t.Errorf("line %d", b.Line)
			}
			for _, a := range b.Addresses {
				if _, _, err := net.SplitHostPort(a); err != nil && !strings.HasPrefix(a, "/") && !strings.HasPrefix(a, "abns@") && !strings.Contains(text, "unix") && !strings.Contains(text, "uxst") {
					t.Errorf("address %q", a)
				}
			}
		}
	})
}

// What bears on certificates can be put into another configuration and means the same there.
func TestLinesAboutTLS(t *testing.T) {
	text := "global\n\tssl-default-bind-ciphers \"${X}LL:@SECLEVEL=0\" # low\n\tssl-default-server-options no-sslv3\n\tmaxconn 5\n" +
		"\tssl-load-extra-files\tbundle\n\tissuers-chain-path it\\'s\\ here\nfrontend f\n\tssl-x\n"
	c := read(t, text)
	want := []string{"'ssl-default-bind-ciphers' 'yLL:@SECLEVEL=0'", "'ssl-load-extra-files' 'bundle'", `'issuers-chain-path' 'it'\''s here'`}
	if !slices.Equal(c.TLS, want) {
		t.Errorf("%q", c.TLS)
	}
	if again := read(t, "global\n"+strings.Join(c.TLS, "\n")+"\n"); !slices.Equal(again.TLS, want) || !slices.Equal(again.Extra, []string{"bundle"}) {
		t.Errorf("%q", again.TLS)
	}
}

package conf

import (
	"errors"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/certhook/certhook/pkg/haproxy/wire"
	"github.com/certhook/certhook/tests/haproxytest"
)

// stores are the names that HAProxy's memory must have for what binds load.
func stores(t *testing.T, c Config) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, b := range c.Binds {
		certs := slices.Clone(b.Certs)
		for _, l := range b.Listed {
			certs = append(certs, l.Cert)
		}
		for _, cert := range certs {
			entries, err := os.ReadDir(b.Path(cert))
			switch {
			case err == nil:
				for _, e := range entries {
					if !strings.HasPrefix(e.Name(), ".") && e.Type().IsRegular() {
						names[strings.TrimRight(cert, "/")+"/"+e.Name()] = true
					}
				}
			case errors.Is(err, fs.ErrNotExist):
				names[cert+".rsa"], names[cert+".ecdsa"] = true, true
			default:
				names[cert] = true
			}
		}
	}
	return names
}

// Everything that HAProxy has in memory is what was read from its configuration, by the same name, and where the
// configuration says that it listens it does, with one of these certificates.
func TestAgainstHAProxy(t *testing.T) {
	dir := folder(t, "certs/a.pem", "certs/b.pem", "certs/c.pem", "all/1.pem", "all/.2.pem", "all/3.pem.rsa", "all/3.pem.ecdsa", "sp ace.pem",
		"listed/l.pem", "listed/m.pem", "certs/both.pem.rsa", "certs/both.pem.ecdsa", "off.pem", "logs.pem", "peers.pem", "certs/n.pem")
	const other = "frontend other\n\tbind 127.0.0.1:1 ssl crt none.pem\n" // is not read
	files := map[string]string{
		"list.txt":    "# a list\n\n  \n" + dir + "/listed/l.pem [alpn h2 ssl-min-ver TLSv1.2] *.l.test !x.l.test\r\na.pem\n" + dir + "/listed/m.pem m.test\nboth.pem lost[alpn h2]both.test\n",
		"conf/.9.cfg": other, "conf/x.cfg.bak": other, "conf/a.cfg.cfg": other, "conf/sub.cfg/a.cfg": other,
		"conf/2.cfg": "defaults\n\tmode http\n\ttimeout client 1s\n\ttimeout server 1s\n\ttimeout connect 1s\n",
		"0.cfg": `global
	stats socket {dir}/admin.sock mode 600 level admin
	stats socket ipv4@{0} level user
	crt-base "{dir}/"ce'rts' # as one word
	setenv NAME n.pem
	presetenv NAME other
	localpeer self
	setenv PORT {port}
	unix-bind prefix {dir}/
`,
		"conf/10.cfg": `defaults off
	mode http
	timeout client 1s
	timeout server 1s
	timeout connect 1s
	disabled
defaults off2 from off
defaults on from off
	enabled
[scope]
frontend one from on # comment
	bind {1},{2} name ssl ssl crt a.pem crt "$NAME" alpn h2,http/1.1 crt "$FILE"
	bind {3} name ssl
	bind	ipv4@*:${PORT}	ssl  crt {dir}//certs/c.pem accept-proxy
	bind {5} ssl crt {dir}/all strict-sni crt {dir}/sp\ ace.pem
	bind /t.sock ssl crt {dir}/all/
	bind unix@u.sock ssl crt-list {dir}/list.txt
	bind abns@{abns} ssl crt both.pem verify none "$EMPTY" crt none.pem
	"${NONE-bind}" {6} ssl crt "{dir}/certs/./a.pem"
listen hidden from off2
	bind {7} ssl crt {dir}/off.pem
listen hidden2 from on
	bind {8} ssl crt {dir}/off.pem
	disabled
peers p
	default-bind ssl crt {dir}/peers.pem
	bind {9}
	server self
log-forward l
	bind {10} ssl crt {dir}/logs.pem
`,
	}
	ports := make([]string, 11)
	for i := range ports {
		ports[i] = haproxytest.FreePort(t)
	}
	_, port, _ := net.SplitHostPort(haproxytest.FreePort(t))
	old := []string{"{dir}", dir, "{port}", port, "{abns}", filepath.Base(dir)}
	for i, address := range ports {
		old = append(old, "{"+strconv.Itoa(i)+"}", address)
	}
	for name, text := range files {
		files[name] = strings.NewReplacer(old...).Replace(text)
	}
	write(t, dir, files)
	start(t, dir, filepath.Join(dir, "admin.sock"), "0.cfg", "conf")

	c, err := Reader{Dir: dir, Lookup: lookup}.Read([]string{"0.cfg", "conf"})
	if err != nil {
		t.Fatal(err)
	}
	got, want := stores(t, c), map[string]bool{}
	for _, name := range ask(t, filepath.Join(dir, "admin.sock"), "show ssl cert") {
		want[name] = true
	}
	if !maps.Equal(got, want) {
		t.Errorf("of the configuration: %q\nin HAProxy's memory:  %q", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
	if want := []Socket{{Path: dir + "/admin.sock", Level: "admin"}, {Path: ports[0], Level: "user"}}; !slices.Equal(c.StatsSockets, want) {
		t.Errorf("%+v", c.StatsSockets)
	}
	var addresses, unseen []string
	for _, b := range c.Binds {
		addresses, unseen = append(addresses, b.Addresses...), append(unseen, b.Unseen...)
		for _, address := range b.Addresses {
			name := ""
			if b.StrictSNI {
				name = "all.1.pem.test"
			}
			if _, err := wire.Probe(t.Context(), wire.Target{Address: address, AcceptProxy: b.AcceptProxy}, name, wire.Any); err != nil {
				t.Errorf("%s: %v", b, err)
			}
		}
	}
	if want := []string{ports[1], ports[2], "127.0.0.1:" + port, ports[5], dir + "//t.sock", dir + "/u.sock", "abns@" + filepath.Base(dir), ports[6], ports[9], ports[10]}; !slices.Equal(addresses, want) {
		t.Errorf("addresses %q\nwant %q", addresses, want)
	}
	if len(unseen) != 2 || !strings.HasPrefix(unseen[0], ports[7]+" (") || !strings.HasPrefix(unseen[1], ports[8]+" (") {
		t.Errorf("unseen %q", unseen)
	}
	for _, b := range c.Binds {
		for _, list := range b.CrtLists {
			compareList(t, dir, list, b.Listed)
		}
	}
}

// compareList compares the lines of a crt-list with what HAProxy has of it.
func compareList(t *testing.T, dir, list string, lines []Listed) {
	t.Helper()
	var got, want []string
	for _, line := range lines {
		certs := []string{line.Cert}
		if strings.HasSuffix(line.Cert, "both.pem") {
			certs = []string{line.Cert + ".ecdsa", line.Cert + ".rsa"}
		}
		for _, cert := range certs {
			got = append(got, strings.Join(append([]string{cert}, line.Filters...), " "))
		}
	}
	options := regexp.MustCompile(` *\[.*\] *| +`)
	for _, line := range ask(t, filepath.Join(dir, "admin.sock"), "show ssl crt-list "+list) {
		want = append(want, strings.TrimSpace(options.ReplaceAllString(line, " ")))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) || len(want) < 4 {
		t.Errorf("%s: %q, HAProxy has %q", list, got, want)
	}
}

// Relative names lead from where default-path says, in HAProxy's memory to the letter.
func TestDefaultPath(t *testing.T) {
	for mode, where := range map[string]string{"current": ".", "config": "more/conf", "parent": "more", "origin elsewhere": "elsewhere"} {
		dir := folder(t, where+"/certs/a.pem", where+"/certs/b.pem")
		admin := filepath.Join(dir, "admin.sock")
		write(t, dir, map[string]string{
			where + "/list.txt": "certs/b.pem\n",
			"etc/conf/0.cfg":    "global\n\tstats socket " + admin + " level admin\n\tdefault-path " + mode + "\n",
			"more/conf/1.cfg": "defaults\n\ttimeout client 1s\n\ttimeout server 1s\n\ttimeout connect 1s\n" +
				"frontend f\n\tbind " + haproxytest.FreePort(t) + " ssl crt certs/a.pem crt-list list.txt\n",
			"elsewhere/x": "",
		})
		start(t, dir, admin, "etc/conf", "more/conf/1.cfg")
		c, err := Reader{Dir: dir, Lookup: lookup}.Read([]string{"etc/conf", "more/conf/1.cfg"})
		if err != nil {
			t.Fatal(err)
		}
		got, want := slices.Sorted(maps.Keys(stores(t, c))), ask(t, admin, "show ssl cert")
		slices.Sort(want)
		if !slices.Equal(got, want) || len(want) != 2 {
			t.Errorf("%s: %q, HAProxy has %q", mode, got, want)
		}
		if len(c.Binds) != 1 {
			t.Fatalf("%s: %+v", mode, c.Binds)
		}
		if _, err := os.Stat(c.Binds[0].Path("certs/a.pem")); err != nil {
			t.Errorf("%s: %v", mode, err)
		}
	}
}

package master

import (
	"errors"
	"net"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/certhook/certhook/pkg/fault"
)

func TestProc(t *testing.T) {
	h := newHAProxy(t).start()
	for _, path := range []string{h.socket(), "unix@" + h.socket(), h.socket() + ",mode,600,level,admin"} {
		p, err := (&CLI{Path: path}).Proc(t.Context())
		if err != nil || p.Master != h.pid() || p.Reloads != 0 || p.Failed != 0 || p.Uptime < 0 || len(p.Workers) != 1 || len(p.Old) != 0 || p.Version == "" {
			t.Errorf("%q: %+v, %v", path, p, err)
		}
	}
	if state, settled := h.find().state(); !settled || state.Master != h.pid() || state.Workers[0].PID != h.proc().Workers[0].PID {
		t.Errorf("procfs: %+v, %v", state, settled)
	}
}

func TestOldWorker(t *testing.T) {
	h := newHAProxy(t).start()
	conn, err := net.Dial("tcp", "127.0.0.1:"+port(h))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// It is in the worker's hands once that has answered.
	conn.Write([]byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n"))
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	conn2, err := net.Dial("tcp", "127.0.0.1:"+port(h))
	if err != nil {
		t.Fatal(err)
	}
	defer conn2.Close()
	conn2.Write([]byte("GET / HTTP/1.1\r\n"))
	first := h.proc().Workers[0].PID
	p := h.find()
	if o, err := Reload(t.Context(), How{CLI: h.cli()}); err != nil || o.Worker == first {
		t.Fatalf("%+v, %v", o, err)
	}
	// As long as its client is there.
	now := h.proc()
	state, ok := p.state()
	if len(now.Workers) != 1 || len(now.Old) != 1 || now.Old[0].PID != first || now.Old[0].Reloads != 1 {
		t.Errorf("show proc: %+v", now)
	}
	if !ok || len(state.Workers) != 1 || len(state.Old) != 1 || state.Workers[0].PID != now.Workers[0].PID {
		t.Errorf("procfs: %+v, %v", state, ok)
	}
	if o, err := Reload(t.Context(), How{Process: &p}); err != nil || o.Doubt != "" || o.Worker == now.Workers[0].PID {
		t.Errorf("by signal, beside an old worker: %+v, %v", o, err)
	}
}

func TestParseProcesses(t *testing.T) {
	for list, want := range map[string]Proc{
		"|type=m;fd=-1;pid=12;reloads=0;failedreloads=0;timestamp=5;id=;version=(null)|type=w;fd=3;pid=13;reloads=0;failedreloads=0;timestamp=5;id=;version=2.6": {
			Master: 12, Workers: []Worker{{13, 0, "2.6"}},
		},
		"|type=w;fd=4;pid=14;reloads=2;failedreloads=2;id=;version=2.6|type=m;fd=-1;pid=12;reloads=3;failedreloads=2|type=w;fd=3;pid=13;reloads=3;version=2.6": {
			Master: 12, Reloads: 3, Failed: 2, Workers: []Worker{{14, 2, "2.6"}}, Old: []Worker{{13, 3, "2.6"}},
		},
	} {
		want.Uptime = -1
		if p, ok := parseProcesses(list); !ok || !reflect.DeepEqual(p, want) {
			t.Errorf("%s: %+v, want %+v", list, p, want)
		}
	}
	if p, ok := parseProcesses("|type=w;pid=13;reloads=0"); ok {
		t.Errorf("no master: %+v", p)
	}
}

func port(h *haproxy) string {
	_, p, _ := net.SplitHostPort((&net.TCPAddr{Port: h.port}).String())
	return p
}

func TestNoMasterSocket(t *testing.T) {
	h := newHAProxy(t)
	h.write("h.cfg", "global\n    stats socket "+h.path("stats.sock")+" level admin\n"+read(t, h.path("h.cfg")), 0o644)
	h.args[2] += ",level,user" // -S
	h.start()
	for name, err := range map[string]error{
		"show proc, stats socket": second((&CLI{Path: h.path("stats.sock")}).Proc(t.Context())),
		"reload, stats socket":    (&CLI{Path: h.path("stats.sock")}).Reload(t.Context()),
		"reload, level user":      h.cli().Reload(t.Context()),
		"no address":              second((&CLI{Path: "fd@3"}).Proc(t.Context())),
	} {
		if fault.KindOf(err) != fault.Usage {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, path := range map[string]string{"no socket": h.path("none"), "no folder": h.path("none/s")} {
		if _, err := (&CLI{Path: path}).Proc(t.Context()); !errors.Is(err, ErrDown) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// scripted is a master that this machine does not have: of another version, or at fault. It gives one reply a connection.
func scripted(t *testing.T, replies ...string) *CLI {
	t.Helper()
	h := newHAProxy(t)
	l, err := net.Listen("unix", h.socket())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for i := 0; ; i = min(i+1, len(replies)-1) {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if replies[i] == "hang" {
				defer conn.Close()
				continue
			}
			b := make([]byte, 100)
			conn.Read(b)
			conn.Write([]byte(replies[i]))
			conn.Close()
		}
	}()
	return h.cli()
}

func show(master, reloads, failed, workers string) string {
	return "#<PID>          <type>          <reloads>       <uptime>        <version>      \n" +
		master + "           master          " + reloads + " [failed: " + failed + "]   0d00h00m09s     2.8.5\n# workers\n" + workers + "# programs\n\n"
}

const (
	worker8 = "8  worker  0  0d00h00m03s  2.8.5\n"
	worker9 = "9  worker  0  0d00h00m00s  2.8.5\n"
)

func TestNewerMasters(t *testing.T) {
	const log = "--\n[NOTICE]   (7) : haproxy version is 2.8.5\n[ALERT]    (7) : config : parsing [h.cfg:9] : unknown keyword 'foo'\n[WARNING]  (7) : Loading failure!\n"
	newer := func(text string) string { return strings.ReplaceAll(text, "2.8.5", "3.1.0") }
	for name, tt := range map[string]struct {
		replies []string
		kind    fault.Kind
		part    string // of the error
		doubt   bool
	}{
		"success":       {[]string{show("7", "0", "0", worker8), "Success=1\n--\n[NOTICE] (7) : Loading success.\n", show("7", "1", "0", worker9)}, fault.Other, "", false},
		"failure":       {[]string{show("7", "0", "0", worker8), "Success=0\n" + log}, fault.Refused, "unknown keyword 'foo'", false},
		"busy at first": {[]string{show("7", "1", "0", worker8), "Success=0\n--\nAnother reload is still in progress.\n", show("7", "1", "0", worker8), "Success=1\n", show("7", "2", "0", worker9)}, fault.Other, "", false},
		"asynchronous":  {[]string{show("7", "0", "0", worker8), "", show("7", "1", "0", worker8+worker9), show("7", "1", "0", worker8+worker9), show("7", "1", "1", worker8)}, fault.Refused, "", false},
		"goes away":     {[]string{show("7", "0", "0", worker8), "", "", "", show("7", "1", "0", worker9)}, fault.Other, "", false},
		"restarted":     {[]string{show("7", "5", "0", worker8), "", "", show("7", "0", "0", worker9)}, fault.Other, "", false},
		"3.1":           {[]string{newer(show("7", "0", "0", worker8)), "Success=1", newer(show("7", "1", "0", worker9))}, fault.Other, "", false},
		"3.1, no word":  {[]string{newer(show("7", "0", "0", worker8)), "", newer(show("7", "1", "0", worker9))}, fault.Other, "", true},
		"never":         {[]string{show("7", "0", "0", worker8), "", show("7", "0", "0", worker8)}, fault.Pending, "", false},
	} {
		o, err := Reload(t.Context(), How{CLI: scripted(t, tt.replies...), Timeout: 3 * time.Second})
		if fault.KindOf(err) != tt.kind || (err == nil) != (tt.kind == fault.Other) || err != nil && !strings.Contains(err.Error(), tt.part) {
			t.Errorf("%s: %+v, %v", name, o, err)
		}
		if err == nil && (o.Worker != 9 || (o.Doubt != "") != tt.doubt) {
			t.Errorf("%s: %+v", name, o)
		}
	}
	hangs := scripted(t, "hang")
	hangs.Timeout = 50 * time.Millisecond
	if _, err := hangs.Proc(t.Context()); fault.KindOf(err) != fault.Pending || errors.Is(err, ErrDown) {
		t.Errorf("hangs: %v", err)
	}
}

func TestParseProc(t *testing.T) {
	// HAProxy 2.0 to 2.4 had a column for a number that has no use any more.
	p, err := parseProc("#<PID>          <type>          <relative PID>  <reloads>       <uptime>        <version>      \n" +
		"1162            master          0               5               0d00h02m07s     2.4.22\n# workers\n1271            worker          1               0               0d00h00m00s     2.4.22\n" +
		"# old workers\n1233            worker          [was: 1]        3               0d00h00m43s     2.0-dev3-6019f6-289\n# programs\n1244            foo             -               0               0d00h00m00s     -\n")
	want := Proc{Master: 1162, Reloads: 5, Failed: -1, Uptime: 127, Version: "2.4.22", Workers: []Worker{{1271, 0, "2.4.22"}}}
	old := p.Old
	p.Old = nil
	if err != nil || !reflect.DeepEqual(p, want) || len(old) != 1 || old[0] != (Worker{1233, 3, "2.0-dev3-6019f6-289"}) {
		t.Errorf("%+v, old workers %+v, %v", p, old, err)
	}
	if _, err := parseProc("Unknown command: 'show proc'\n"); err == nil {
		t.Error("another reply passes")
	}
}

func FuzzParseProc(f *testing.F) {
	f.Add(show("7", "3", "1", worker8))
	f.Add("|type=m;fd=-1;pid=12220;reloads=1;failedreloads=0|type=w;fd=3;pid=12223;reloads=1;id=;version=2.6")
	f.Fuzz(func(t *testing.T, reply string) {
		if p, err := parseProc(reply); err == nil && p.Master == 0 {
			t.Errorf("%+v", p)
		}
		if p, ok := parseProcesses(reply); ok && p.Master <= 0 {
			t.Errorf("%+v", p)
		}
		parseArguments(strings.Split(reply, "|"))
	})
}

func TestParseArguments(t *testing.T) {
	a := parseArguments([]string{
		"haproxy", "-sf", "12", "13", "-x", "sockpair@3", "-Ws", "-f", "-odd", "-fx", "b", "-dr", "-dW", "-db", "-D", "-q",
		"-S", "/s,mode,600", "-p", "/p", "-C", "/d", "-m", "50", "-L", "-name", "-V", "--", "-c", "d/",
	})
	if !slices.Equal(a.config, []string{"-odd", "b", "-c", "d/"}) || !a.masterWorker || a.socket != "/s,mode,600" || a.pidFile != "/p" ||
		!slices.Equal(a.check, []string{"-dr", "-dW", "-m", "50", "-L", "-name"}) {
		t.Errorf("%+v", a)
	}
	for _, args := range [][]string{nil, {"haproxy"}, {"haproxy", "-f"}, {"haproxy", "-sf"}, {""}} {
		if a := parseArguments(args); a.socket != "" || a.masterWorker {
			t.Errorf("%q: %+v", args, a)
		}
	}
}

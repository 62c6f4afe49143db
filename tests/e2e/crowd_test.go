package e2e

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/tests/cloudflaretest"
	"github.com/certhook/certhook/tests/dnstest"
	"github.com/certhook/certhook/tests/lab"
)

// Two hosts of one alias zone have a crowd of certbots each, all about the same name. Every value is there until
// its own cleanup, whatever the others do at the time: first all add, then all remove while as many others add.
func TestCrowd(t *testing.T) {
	const crowd = 32
	s := sceneFor(t, lab.Options{
		CallDelay: 50 * time.Millisecond,
		Settings:  map[string]string{"PROPAGATION_TIMEOUT": "60"},
	}, "svc.example.com")
	hosts := []host{{state: lab.StateDir}, newHost(t)}
	var early, late []*member
	for i := range crowd {
		h := hosts[i%len(hosts)]
		early = append(early, &member{caller: newCaller(t, h.front...), value: value(fmt.Sprintf("early%02d-", i))})
		late = append(late, &member{caller: newCaller(t, h.front...), value: value(fmt.Sprintf("late%02d-", i))})
	}
	owners := make(map[string]*member) // by id of the record
	there := func(members []*member) {
		t.Helper()
		want := []string{foreign}
		for _, m := range members {
			want = append(want, m.value)
		}
		slices.Sort(want)
		for _, server := range s.Alias {
			if got := shownBy(t, server, s.records[0]); !slices.Equal(got, want) {
				t.Errorf("%s shows %q, want %q", server.Host, got, want)
			}
		}
		for _, r := range s.API.Records(lab.AliasZone) {
			for _, m := range members {
				if strings.Contains(r.Content, m.value) {
					owners[r.ID] = m
				}
			}
		}
	}

	together(early, (*member).add)
	there(early)
	mixed := append(slices.Clone(early), late...)
	together(mixed, func(m *member) {
		if strings.HasPrefix(m.value, "early") {
			m.remove()
		} else {
			m.add()
		}
	})
	there(late)
	together(late, (*member).remove)

	if n := len(s.writes()); n != 2*crowd {
		t.Errorf("%d values were written, want %d", n, 2*crowd)
	}
	removals := s.calls("DELETE")
	if len(removals) != 2*crowd {
		t.Errorf("%d removals, want %d", len(removals), 2*crowd)
	}
	for _, c := range removals {
		m := owners[path.Base(c.Path)]
		if m == nil || c.Status != 200 || c.Start.Before(m.began) || c.End.After(m.ended) {
			t.Errorf("removed not by its own cleanup, or in vain: %+v, %+v", c, m)
		}
	}
	if n := cloudflaretest.Overlap(s.API.Calls()); n < 8 {
		t.Errorf("%d calls of the API at once, at most: this is no crowd", n)
	}
	for _, h := range hosts {
		if live := inFlightIn(t, h.state); len(live) > 0 {
			t.Errorf("still in the journal %s: %q", h.state, live)
		}
	}
}

// member is one certbot of the crowd with its value.
type member struct {
	*caller
	value        string
	began, ended time.Time // of its cleanup
}

func (m *member) call() hookCall { return single("svc.example.com", m.value) }

func (m *member) add() { m.run("auth-hook", "1 value added") }

func (m *member) remove() {
	m.began = time.Now()
	m.run("cleanup-hook", "1 value removed")
	m.ended = time.Now()
	m.end()
}

func (m *member) run(hook, says string) {
	if r, err := m.hook(hook, m.call()); err != nil || r.Code != 0 || !strings.Contains(r.Stdout, says) {
		m.t.Errorf("%s of %s: %v, %v", hook, m.value, err, r)
	}
}

// together has all members do something at the same time.
func together(members []*member, do func(*member)) {
	var all sync.WaitGroup
	for _, m := range members {
		all.Go(func() { do(m) })
	}
	all.Wait()
}

// shownBy asks a server for the values at a record.
func shownBy(t *testing.T, server *dnstest.Server, record string) []string {
	t.Helper()
	client := dns.Client{Net: "tcp", Timeout: patience}
	answer, _, err := client.Exchange(new(dns.Msg).SetQuestion(dns.Fqdn(record), dns.TypeTXT), net.JoinHostPort(server.Addr.String(), "53"))
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	for _, rr := range answer.Answer {
		if txt, ok := rr.(*dns.TXT); ok {
			values = append(values, strings.Join(txt.Txt, ""))
		}
	}
	slices.Sort(values)
	return values
}

// host is a machine as the hooks know one.
type host struct {
	front []string // command that a program of it is started through
	state string   // its state directory, seen from here
}

const hostScript = `
mount -t proc proc /proc
for dir; do mkdir -p -m 0700 "$dir"; mount -t tmpfs -o mode=0700 tmpfs "$dir"; done
echo up
exec sleep 3600
`

// newHost makes another host in namespaces: it has the lab's network and settings, and processes, a journal and
// a log of its own.
func newHost(t *testing.T) host {
	t.Helper()
	cmd := exec.Command("sh", "-e", "-c", hostScript, "host", lab.StateDir, filepath.Dir(lab.HookLog))
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("the other host does not come up: %v", err)
	}
	return host{
		front: []string{"nsenter", "--target", fmt.Sprint(cmd.Process.Pid), "--mount", "--root", "--wd", "--pid", "--"},
		state: fmt.Sprintf("/proc/%d/root%s", cmd.Process.Pid, lab.StateDir),
	}
}

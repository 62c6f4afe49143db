package e2e

import (
	"bytes"
	"context"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/tests/dnstest"
	"github.com/certhook/certhook/tests/lab"
)

// guideRun is a dnsguide at work.
type guideRun struct {
	cmd    *exec.Cmd
	output bytes.Buffer // complete once it has ended
	ended  chan struct{}
	at     time.Time // of its end
}

func startGuide(t *testing.T, args ...string) *guideRun {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &guideRun{cmd: lab.Command(ctx, lab.Hook("dnsguide"), args...), ended: make(chan struct{})}
	r.cmd.Stdout, r.cmd.Stderr = &r.output, &r.output
	if err := r.cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	go func() {
		_ = r.cmd.Wait() // its exit code is looked at
		r.at = time.Now()
		close(r.ended)
	}()
	t.Cleanup(func() {
		cancel()
		<-r.ended
	})
	return r
}

// Waiting for records that do not exist yet asks only authoritative servers about them: a resolver would remember
// for an hour that there is nothing, and a CA may use the same one. When the records are there the wait ends within
// an interval. So it is for a name that has an address, and for one that does not exist at all.
func TestGuideWaits(t *testing.T) {
	const interval = 2 * time.Second
	domains := []string{"svc.example.com", "new.example.com"}
	l := lab.New(t, lab.Options{})
	account := l.Register()
	unbound, bind := l.StartResolvers()
	args := []string{
		"verify", "--mode", "wait", "--interval", strconv.Itoa(int(interval.Seconds())), "--timeout", "60",
		"--resolver", unbound.URL(), "--resolver", bind.URL(),
	}
	for _, d := range domains {
		args = append(args, "-d", d)
	}
	run := startGuide(t, args...)

	// passes returns when each look at a domain began, as one authoritative server sees it.
	passes := func(domain string) (times []time.Time) {
		for _, q := range l.World.Matching(domain, dns.TypeCAA) {
			if q.From == fromHook && q.Server == l.Production[0].Host {
				times = append(times, q.Time)
			}
		}
		return times
	}
	eventually(t, "two looks at each domain", func() bool {
		return len(passes(domains[0])) >= 2 && len(passes(domains[1])) >= 2
	})
	select {
	case <-run.ended:
		t.Fatalf("it has ended too early: %s", &run.output)
	default:
	}
	// plants reports whether a question to a resolver would leave something behind there.
	plants := func(name string, qtype uint16) bool {
		return underChallenge(name) || qtype == dns.TypeCAA && name == domains[0] || dnsname.Within(name, domains[1])
	}
	for _, s := range []*lab.RecursiveServer{unbound, bind} {
		for _, d := range domains {
			for _, q := range []struct {
				name  string
				qtype uint16
			}{
				{dnsname.Challenge(d), dns.TypeCNAME},
				{dnsname.Challenge(d), dns.TypeTXT},
				{dnsname.Challenge(d), dns.TypeNS},
				{dnsname.Challenge(d), dns.TypeSOA},
				{d, dns.TypeCAA},
			} {
				if lines := s.Asked(q.name, q.qtype); len(lines) > 0 {
					t.Errorf("before there was a record: %q", lines)
				}
			}
		}
		for _, q := range askedBy(l, s) {
			if plants(q.Name, q.Type) {
				t.Errorf("before there was a record: %v", q)
			}
		}
	}

	l.Delegate(domains...)
	for _, d := range domains {
		l.Lock(d, account)
	}
	there := time.Now()
	select {
	case <-run.ended:
	case <-time.After(patience):
		t.Fatal("it does not see the records")
	}
	if code := run.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit code %d: %s", code, &run.output)
	}
	if took := run.at.Sub(there); took > 2*interval {
		t.Errorf("it went on %v after the records were there; it looks every %v", took, interval)
	}
	for _, d := range domains {
		late := 0
		for _, at := range passes(d) {
			if at.After(there) {
				late++
			}
		}
		if late > 2 { // one may have begun before
			t.Errorf("%d looks at %s after the records were there", late, d)
		}
		// Nobody may ask what the alias leads to before a value stands there.
		for _, s := range []*lab.RecursiveServer{unbound, bind} {
			for _, q := range askedBy(l, s) {
				if strings.HasPrefix(q.Name, lab.Target(d, "")) {
					t.Errorf("asked where the alias leads: %v", q)
				}
			}
			for _, qtype := range []uint16{dns.TypeTXT, dns.TypeNS, dns.TypeSOA, dns.TypeA, dns.TypeAAAA, dns.TypeCAA} {
				if lines := s.Asked(dnsname.Challenge(d), qtype); len(lines) > 0 {
					t.Errorf("this follows the CNAME: %q", lines)
				}
			}
		}
	}
}

// askedBy returns the questions that a resolver put to authoritative servers.
func askedBy(l *lab.Lab, s *lab.RecursiveServer) (found []dnstest.Query) {
	for _, q := range l.World.Queries() {
		if q.From.String() == s.Addr {
			found = append(found, q)
		}
	}
	return found
}

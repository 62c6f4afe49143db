package lab

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/miekg/dns"
)

// startUnbound runs a recursive resolver at an address. A cache of negative seconds is unbound's default:
// what the records say.
func (l *Lab) startUnbound(at string, cache int) {
	l.tb.Helper()
	base := filepath.Join(l.dir, "unbound-"+at)
	l.write(base+".hints", 0o644, l.World.RootHints())
	conf := fmt.Sprintf(`server:
	interface: %[1]s
	outgoing-interface: %[1]s
	access-control: 127.0.0.0/8 allow
	do-ip6: no
	do-not-query-localhost: no
	root-hints: %[2]q
	module-config: "iterator"
	chroot: ""
	username: ""
	directory: ""
	pidfile: ""
	use-syslog: no
	logfile: ""
	log-servfail: yes
	do-daemonize: no
	num-threads: 1
`, at, base+".hints")
	if cache >= 0 {
		conf += fmt.Sprintf("\tcache-max-ttl: %d\n\tcache-max-negative-ttl: %d\n", cache, cache)
	}
	conf += "remote-control:\n\tcontrol-enable: no\n"
	l.write(base+".conf", 0o644, conf)

	log, err := os.Create(base + ".log")
	if err != nil {
		l.tb.Fatalf("lab: %v", err)
	}
	defer log.Close()
	cmd := exec.Command("unbound", "-d", "-c", base+".conf")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		l.tb.Fatalf("lab: start unbound: %v", err)
	}
	gone := make(chan error, 1)
	go func() { gone <- cmd.Wait() }()
	l.tb.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-gone
	})
	l.awaitResolver(at, log.Name(), gone)
}

// awaitResolver returns when the resolver has answered a question about the root.
func (l *Lab) awaitResolver(at, log string, gone chan error) {
	l.tb.Helper()
	question := new(dns.Msg).SetQuestion(".", dns.TypeSOA)
	client := dns.Client{Timeout: time.Second}
	deadline := time.Now().Add(10 * time.Second)
	for {
		answer, _, err := client.Exchange(question, net.JoinHostPort(at, "53"))
		if err == nil && answer.Rcode == dns.RcodeSuccess && len(answer.Answer) > 0 {
			return
		}
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(log)
			l.tb.Fatalf("lab: unbound does not answer (%v, %v):\n%s", answer, err, text)
		}
		select {
		case err := <-gone:
			gone <- err // for the clean-up
			text, _ := os.ReadFile(log)
			l.tb.Fatalf("lab: unbound ended: %v\n%s", err, text)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

package lab

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/tests/bindtest"
)

// RecursiveServer is a real recursive resolver with its usual cache.
type RecursiveServer struct {
	Addr string // where it listens and asks from

	tb      TB
	command func() *exec.Cmd
	log     string // file; what it says goes there, and with it each question that it gets
	query   string // format of a part of that line, of name and type
	cmd     *exec.Cmd
	gone    chan struct{} // closed when it has ended
}

// StartResolvers runs two resolvers, an unbound and a BIND, that have nothing in common but the root.
func (l *Lab) StartResolvers() (unbound, bind *RecursiveServer) {
	l.tb.Helper()
	return l.startUnbound(UnboundResolver, -1), l.startNamed(BINDResolver)
}

// startNamed runs BIND as a recursive resolver and nothing else.
func (l *Lab) startNamed(at string) *RecursiveServer {
	l.tb.Helper()
	if err := addLoopback("lo:named", at); err != nil { // see StartBIND
		l.tb.Fatalf("lab: add %s to the loopback interface: %v", at, err)
	}
	dir := filepath.Join(l.dir, "named-"+at)
	l.write(filepath.Join(dir, "hints"), 0o644, l.World.RootHints())
	l.write(filepath.Join(dir, "named.conf"), 0o644, fmt.Sprintf(`options {
	directory %[1]q;
	listen-on { %[2]s; };
	listen-on-v6 { none; };
	query-source address %[2]s;
	pid-file none;
	session-keyfile none;
	recursion yes;
	allow-query { 127.0.0.0/8; };
	dnssec-validation no;
	empty-zones-enable no;
	max-cache-size 16m;
	querylog yes;
};
controls { };
logging { category default { default_stderr; }; };
zone "." { type hint; file "hints"; };
`, dir, at))
	program := bindtest.Program(l.tb, dir)
	s := &RecursiveServer{
		Addr: at, tb: l.tb, log: dir + ".log", query: ": query: %s IN %s ",
		command: func() *exec.Cmd {
			return exec.Command(program, "-4", "-f", "-X", "none", "-n", "1", "-c", filepath.Join(dir, "named.conf"))
		},
	}
	s.start()
	l.tb.Cleanup(s.Stop)
	return s
}

// URL returns the resolver as settings name one.
func (s *RecursiveServer) URL() string { return "udp://" + s.Addr }

// Ask puts a question to the resolver, which remembers what it finds.
func (s *RecursiveServer) Ask(name string, qtype uint16) *dns.Msg {
	s.tb.Helper()
	const patience = 10 * time.Second // it may have to find out first that a server is dead
	answer, err := s.exchange(new(dns.Msg).SetQuestion(dns.Fqdn(name), qtype), patience)
	if err != nil {
		s.tb.Fatalf("lab: ask %s for %s %s: %v", s.Addr, name, dns.TypeToString[qtype], err)
	}
	return answer
}

// Asked returns those lines of the resolver's log that note a question for a name, which is in lower case, and a
// type, in order. A question is noted before it is answered.
func (s *RecursiveServer) Asked(name string, qtype uint16) []string {
	s.tb.Helper()
	text, err := os.ReadFile(s.log)
	if err != nil {
		s.tb.Fatalf("lab: %v", err)
	}
	want := strings.ToLower(fmt.Sprintf(s.query, name, dns.TypeToString[qtype]))
	var found []string
	for line := range strings.Lines(string(text)) {
		if strings.Contains(strings.ToLower(line), want) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}

// Flush makes the resolver forget what it has found, and what it was asked.
func (s *RecursiveServer) Flush() {
	s.tb.Helper()
	s.Stop()
	s.start()
}

// Stop ends the resolver; nothing listens at its address afterwards.
func (s *RecursiveServer) Stop() {
	_ = s.cmd.Process.Kill() // it may have ended
	<-s.gone
}

// start returns when the resolver answers.
func (s *RecursiveServer) start() {
	s.tb.Helper()
	log, err := os.Create(s.log)
	if err != nil {
		s.tb.Fatalf("lab: %v", err)
	}
	defer log.Close()
	cmd, gone := s.command(), make(chan struct{})
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		s.tb.Fatalf("lab: start a resolver: %v", err)
	}
	go func() {
		_ = cmd.Wait()
		close(gone)
	}()
	s.cmd, s.gone = cmd, gone
	s.await()
}

// await returns when the resolver has answered a question about the root.
func (s *RecursiveServer) await() {
	s.tb.Helper()
	question := new(dns.Msg).SetQuestion(".", dns.TypeSOA)
	deadline := time.Now().Add(10 * time.Second)
	for {
		answer, err := s.exchange(question, time.Second)
		if err == nil && answer.Rcode == dns.RcodeSuccess && len(answer.Answer) > 0 {
			return
		}
		ended := false
		select {
		case <-s.gone:
			ended = true
		case <-time.After(10 * time.Millisecond):
		}
		if ended || time.Now().After(deadline) {
			text, _ := os.ReadFile(s.log)
			s.Stop()
			s.tb.Fatalf("lab: %q does not answer (%v, %v; ended: %v):\n%s", s.cmd.Args, answer, err, ended, text)
		}
	}
}

func (s *RecursiveServer) exchange(question *dns.Msg, patience time.Duration) (*dns.Msg, error) {
	client := dns.Client{Timeout: patience}
	answer, _, err := client.Exchange(question, net.JoinHostPort(s.Addr, "53"))
	return answer, err
}

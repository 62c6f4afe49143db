package lab

import (
	"fmt"
	"os/exec"
	"path/filepath"
)

// startUnbound runs a recursive resolver at an address. A cache of negative seconds is unbound's default:
// what the records say.
func (l *Lab) startUnbound(at string, cache int) *RecursiveServer {
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
	log-queries: yes
	do-daemonize: no
	num-threads: 1
`, at, base+".hints")
	if cache >= 0 {
		conf += fmt.Sprintf("\tcache-max-ttl: %d\n\tcache-max-negative-ttl: %d\n", cache, cache)
	}
	conf += "remote-control:\n\tcontrol-enable: no\n"
	l.write(base+".conf", 0o644, conf)

	s := &RecursiveServer{
		Addr: at, tb: l.tb, log: base + ".log", query: " %s. %s IN",
		command: func() *exec.Cmd { return exec.Command("unbound", "-d", "-c", base+".conf") },
	}
	s.start()
	l.tb.Cleanup(s.Stop)
	return s
}

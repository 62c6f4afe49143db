package master

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Environment returns a look-up in the environment that the process has for its configuration: what it got when it
// began to run its program, which a master does anew at each reload. Without a process nothing is set. An error means
// that we may not see it. The values may be credentials: they are for who reads the configuration, and for no output.
func (p Process) Environment() (lookup func(name string) (string, bool), err error) {
	var env []string
	if p.PID != 0 {
		if env, err = p.proc.environ(p.PID); err != nil {
			return nil, fmt.Errorf("read the environment of HAProxy, process %d: %w", p.PID, err)
		}
	}
	return func(name string) (string, bool) {
		for _, v := range env { // the first one counts, as with getenv(3)
			if value, ok := strings.CutPrefix(v, name+"="); ok {
				return value, true
			}
		}
		return "", false
	}, nil
}

// credential is what variables with credentials are called.
var credential = regexp.MustCompile(`(?i)PASS|SECRET|TOKEN|KEY|CRED|AUTH`)

// conceal puts the names of variables that are called as credentials are in the place of their values, which HAProxy
// quotes where it does not understand what its configuration makes of them.
func (p Process) conceal(text string) string {
	const shortest = 6 // octets; less is no secret, and may be part of a word
	names := map[string]string{}
	for _, v := range p.environ() {
		if name, value, _ := strings.Cut(v, "="); credential.MatchString(name) && len(value) >= shortest {
			names[value] = name
		}
	}
	values := slices.SortedFunc(maps.Keys(names), func(a, b string) int { return len(b) - len(a) }) // one may begin another
	for _, value := range values {
		text = strings.ReplaceAll(text, value, "${"+names[value]+"}")
	}
	return text
}

// workers are the process ids of the HAProxies below a master, those that finish among them.
func (p Process) workers(ctx context.Context) ([]int, error) {
	all, err := p.proc.haproxies(ctx)
	if err != nil {
		return nil, err
	}
	return children(entry{pid: p.PID}, all), nil
}

// state reads how a master stands from its environment, which is where a HAProxy that starts itself anew puts what it
// has to remember (mworker_proc_list_to_env in src/mworker.c). HAProxy 2.5 to 3.0 does so once more when a
// reload has come to its end, and settled is true; otherwise what is there is from the reload's beginning.
func (p Process) state() (s Proc, settled bool) {
	env, err := p.proc.environ(p.PID)
	if err != nil {
		return Proc{}, false
	}
	i := slices.IndexFunc(env, func(v string) bool { return strings.HasPrefix(v, "HAPROXY_PROCESSES=") })
	if i < 0 {
		return Proc{}, false
	}
	s, ok := parseProcesses(strings.TrimPrefix(env[i], "HAPROXY_PROCESSES="))
	return s, ok && slices.Contains(env, "HAPROXY_MWORKER_WAIT_ONLY=1")
}

// parseProcesses reads HAPROXY_PROCESSES: for each process a bar and fields with a semicolon between them. The worker
// that serves is the one that has outlived the failed reloads only.
func parseProcesses(list string) (p Proc, ok bool) {
	p = Proc{Failed: -1, Uptime: -1}
	var workers []Worker
	for process := range strings.SplitSeq(list, "|") {
		field := map[string]string{}
		for f := range strings.SplitSeq(process, ";") {
			if name, value, ok := strings.Cut(f, "="); ok {
				field[name] = value
			}
		}
		pid, err := strconv.Atoi(field["pid"])
		reloads, err2 := strconv.Atoi(field["reloads"])
		if err != nil || err2 != nil || pid <= 0 {
			continue
		}
		switch field["type"] {
		case "m":
			p.Master, p.Reloads = pid, reloads
			if n, err := strconv.Atoi(field["failedreloads"]); err == nil {
				p.Failed = n
			}
		case "w":
			workers = append(workers, Worker{pid, reloads, field["version"]})
		}
	}
	for _, w := range workers {
		if w.Reloads <= max(p.Failed, 0) {
			p.Workers = append(p.Workers, w)
		} else {
			p.Old = append(p.Old, w)
		}
	}
	return p, p.Master != 0
}

package master

import (
	"context"
	"slices"
	"strconv"
	"strings"
)

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

package master

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
)

var (
	failedReloads = regexp.MustCompile(`\[failed: (\d+)\]`)
	relativePID   = regexp.MustCompile(`\[was: \d+\]`)
	uptime        = regexp.MustCompile(`^(\d+)d(\d+)h(\d+)m(\d+)s$`)
)

// parseProc reads the reply to show proc: a heading that names the columns, the master, and then sections with a
// heading each. Before HAProxy 2.5 there was one column more. Programs, which a master may run besides, are left out.
func parseProc(reply string) (Proc, error) {
	p := Proc{Failed: -1, Uptime: -1}
	section, reloads := "", 2
	for line := range strings.Lines(reply) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#<PID>") {
			if strings.Contains(line, "<relative PID>") {
				reloads = 3
			}
			continue
		}
		if heading, ok := strings.CutPrefix(line, "#"); ok {
			section = strings.TrimSpace(heading)
			continue
		}
		failed := failedReloads.FindStringSubmatch(line)
		if failed != nil {
			line = strings.Replace(line, failed[0], "", 1)
		}
		fields := strings.Fields(relativePID.ReplaceAllString(line, "-"))
		if len(fields) <= reloads {
			continue
		}
		pid, err := strconv.Atoi(fields[0])
		n, err2 := strconv.Atoi(fields[reloads])
		if errors.Join(err, err2) != nil {
			continue
		}
		var version string
		if len(fields) > reloads+2 {
			version = fields[reloads+2]
		}
		switch {
		case section == "" && fields[1] == "master":
			p.Master, p.Reloads, p.Version = pid, n, version
			if failed != nil {
				p.Failed, _ = strconv.Atoi(failed[1])
			}
			if len(fields) > reloads+1 {
				p.Uptime = seconds(fields[reloads+1])
			}
		case section == "workers":
			p.Workers = append(p.Workers, Worker{pid, n, version})
		case section == "old workers":
			p.Old = append(p.Old, Worker{pid, n, version})
		}
	}
	if p.Master == 0 {
		return Proc{}, errors.New("the reply names no master")
	}
	return p, nil
}

// seconds reads a time such as 0d00h02m07s; it is -1 for anything else.
func seconds(s string) int {
	m := uptime.FindStringSubmatch(s)
	if m == nil {
		return -1
	}
	total := 0
	for i, unit := range []int{86400, 3600, 60, 1} {
		n, err := strconv.Atoi(m[i+1])
		if err != nil {
			return -1
		}
		total += n * unit
	}
	return total
}

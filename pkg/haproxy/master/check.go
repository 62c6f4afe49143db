package master

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/certhook/certhook/pkg/fault"
)

const (
	checkTime = 2 * time.Minute // 5,000 certificates take 6 s
	maxOutput = 64 << 10        // octets
	maxAlerts = 10
	maxLine   = 400 // octets

	valid = "Configuration file is valid\n" // the last word of haproxy -c

	safePath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// bare is the environment of programs that are to know nothing of ours, which may hold credentials.
var bare = []string{"PATH=" + safePath, "LANG=C"}

// Check has HAProxy check the configuration as it would load it: with the master's options, as its user, in its
// directory and with its environment, which a configuration may refer to, but never with ours. files are for -f;
// none = those of the process. The error is of kind Usage and has HAProxy's alerts, or of kind Pending where the
// time was over.
//
// That HAProxy accepts a configuration is no proof that a reload succeeds: a port may be taken.
func (p Process) Check(ctx context.Context, files []string) error {
	if len(files) == 0 {
		files = p.Config
	}
	if len(files) == 0 {
		return fault.Errorf(fault.Usage, "which configuration HAProxy reads is not known").WithHint("set HAPROXY_CONFIG")
	}
	binary, err := p.binary()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	args := []string{"-c"}
	a := parseArguments(p.Args)
	if a.masterWorker {
		args = append(args, "-W") // sections of it are errors without
	}
	args = append(args, a.check...)
	for _, file := range files {
		args = append(args, "-f", file)
	}
	out, err := p.run(ctx, p.Dir, binary, args)
	if errors.Is(err, fs.ErrPermission) && p.Dir != "" {
		// A process may stand in a folder that its user may not enter. It cannot use it either.
		out, err = p.run(ctx, "/", binary, args)
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fault.Errorf(fault.Pending, "haproxy -c has not come to an end: %w", ctx.Err())
	}
	exit, ended := errors.AsType[*exec.ExitError](err)
	switch {
	case ended && !exit.Exited() && strings.Contains(out, valid):
		return nil // HAProxy 2.6 crashes once it has said so where there is a .sctl file; as a server it does when it ends
	case !ended:
		return fault.Errorf(fault.Usage, "have HAProxy check its configuration: %w", err)
	}
	said := alerts(p.conceal(out))
	if said == "" {
		said = fmt.Sprintf("haproxy -c: %v", err)
	}
	return fault.Errorf(fault.Usage, "%s", said)
}

func (p Process) run(ctx context.Context, dir, binary string, args []string) (output string, err error) {
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Dir = dir
	cmd.Env = p.environ()
	if os.Geteuid() == 0 && p.PID != 0 && (p.UID != 0 || p.GID != 0) {
		c := &syscall.Credential{Uid: uint32(p.UID), Gid: uint32(p.GID)}
		for _, g := range p.Groups {
			c.Groups = append(c.Groups, uint32(g))
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c}
	}
	return collect(cmd)
}

// collect runs a command and returns what it writes, without the middle of it where that is long.
func collect(cmd *exec.Cmd) (string, error) {
	var out clipped
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Second // for what it leaves behind with our pipe
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // it has ended well
	}
	return out.String(), err
}

// binary is the program that a reload would start.
func (p Process) binary() (string, error) {
	candidates := []string{p.Executable}
	if len(p.Args) > 0 && filepath.IsAbs(p.Args[0]) {
		candidates = append(candidates, p.Args[0])
	}
	name := "haproxy"
	if p.Executable != "" {
		name = filepath.Base(p.Executable)
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH") + ":" + safePath) {
		candidates = append(candidates, filepath.Join(dir, name))
	}
	for _, c := range candidates {
		if !filepath.IsAbs(c) {
			continue
		}
		if info, err := os.Stat(c); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return c, nil
		}
	}
	return "", fault.Errorf(fault.Usage, "there is no program %q that could check HAProxy's configuration", name)
}

// environ is the environment for a check: that of the process, for what its configuration takes from it,
// without what HAProxy itself puts there and what a service manager has for that process alone.
func (p Process) environ() []string {
	if p.PID == 0 {
		return bare
	}
	env, err := p.proc.environ(p.PID)
	if err != nil {
		return bare
	}
	private := []string{"HAPROXY_MWORKER", "HAPROXY_PROCESSES", "HAPROXY_CLI", "HAPROXY_MASTER_CLI", "HAPROXY_CFGFILES", "HAPROXY_STARTUP_VERSION", "NOTIFY_SOCKET", "WATCHDOG_", "LISTEN_"}
	return slices.DeleteFunc(env, func(s string) bool {
		return slices.ContainsFunc(private, func(prefix string) bool { return strings.HasPrefix(s, prefix) })
	})
}

// alerts are HAProxy's alerts out of what it has written, without the process id before each.
func alerts(output string) string {
	var list []string
	alert := false
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, "\r\n")
		if strings.HasPrefix(line, "[") {
			var text string
			if text, alert = strings.CutPrefix(line, "[ALERT]"); alert {
				if _, after, ok := strings.Cut(text, " : "); ok {
					text = after
				}
				line = text
			}
		}
		line = strings.TrimSpace(line)
		if alert && line != "" {
			if len(line) > maxLine {
				line = strings.ToValidUTF8(line[:maxLine], "") + "…"
			}
			list = append(list, line)
		}
	}
	if more := len(list) - maxAlerts; more > 0 {
		list = append(list[:maxAlerts], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(list, "\n")
}

// clipped keeps the beginning and the end of what is written to it.
type clipped struct {
	head, tail bytes.Buffer
	lost       bool
}

func (c *clipped) Write(b []byte) (int, error) {
	n := len(b)
	if room := maxOutput/2 - c.head.Len(); room > 0 {
		take := min(room, len(b))
		c.head.Write(b[:take])
		b = b[take:]
	}
	c.tail.Write(b)
	if more := c.tail.Len() - maxOutput/2; more > 0 {
		c.tail.Next(more)
		c.lost = true
	}
	return n, nil
}

func (c *clipped) String() string {
	if c.lost {
		return c.head.String() + "\n…\n" + c.tail.String()
	}
	return c.head.String() + c.tail.String()
}

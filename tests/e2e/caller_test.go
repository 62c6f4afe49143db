package e2e

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/certhook/certhook/tests/lab"
)

// caller is a process that calls hooks as certbot does, through a shell and whatever becomes of them, at the
// test's command.
type caller struct {
	t    *testing.T
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	dir  string
	call int
}

// callerScript reads calls, one a line. Like certbot it has no CERTBOT_ variables itself.
const callerScript = `
while read -r hook domain value all remaining output; do
	CERTBOT_DOMAIN=$domain CERTBOT_VALIDATION=$value CERTBOT_ALL_DOMAINS=$all CERTBOT_REMAINING_CHALLENGES=$remaining \
		sh -c "$hook" </dev/null >"$output.stdout" 2>"$output.stderr"
	echo $?
done
`

// newCaller starts a caller, with a command in front of it if one is given.
func newCaller(t *testing.T, front ...string) *caller {
	t.Helper()
	args := append(front, "sh", "-c", callerScript, "certbot")
	c := &caller{t: t, dir: t.TempDir()}
	c.cmd = exec.Command(args[0], args[1:]...)
	c.cmd.Env = []string{"PATH=/usr/bin:/bin"}
	c.cmd.Stderr = os.Stderr
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.out = bufio.NewReader(out)
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.kill)
	return c
}

// hookCall is one call for one name of an order.
type hookCall struct {
	domain, value string
	all           string // names of the order with commas between
	remaining     int
}

// single is the call for an order of one name.
func single(domain, value string) hookCall {
	return hookCall{domain: domain, value: value, all: domain}
}

// hook calls auth-hook or cleanup-hook and returns what its shell says. Several callers may do so at a time,
// but none twice.
func (c *caller) hook(name string, call hookCall) (lab.Result, error) {
	c.call++
	output := filepath.Join(c.dir, fmt.Sprint(c.call))
	if _, err := fmt.Fprintln(c.in, lab.Hook(name), call.domain, call.value, call.all, call.remaining, output); err != nil {
		return lab.Result{}, fmt.Errorf("call %s: %w", name, err)
	}
	line, err := c.out.ReadString('\n')
	if err != nil {
		return lab.Result{}, fmt.Errorf("call %s: %w", name, err)
	}
	var r lab.Result
	if _, err := fmt.Sscan(line, &r.Code); err != nil {
		return lab.Result{}, fmt.Errorf("call %s: %w", name, err)
	}
	stdout, err := os.ReadFile(output + ".stdout")
	if err != nil {
		return lab.Result{}, err
	}
	stderr, err := os.ReadFile(output + ".stderr")
	r.Stdout, r.Stderr = string(stdout), string(stderr)
	return r, err
}

// mustHook is hook for a call that has to go well.
func (c *caller) mustHook(name string, call hookCall) lab.Result {
	c.t.Helper()
	r, err := c.hook(name, call)
	if err != nil || r.Code != 0 {
		c.t.Fatalf("%s for %s: %v, %v", name, call.domain, err, r)
	}
	return r
}

// end lets the caller end as certbot does after its last call.
func (c *caller) end() {
	c.in.Close()
	_ = c.cmd.Wait()
}

// kill ends the caller alone, at once; a hook at work is left behind.
func (c *caller) kill() {
	_ = c.cmd.Process.Signal(syscall.SIGKILL) // it may have ended
	c.end()
}

package lab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Where the hooks and certbot keep their things; all of it is the default.
const (
	SettingsFile = "/etc/certhook/certhook.env"
	StateDir     = "/var/lib/certhook"
	HookLog      = "/var/log/certhook/certhook.log"
	CertbotDir   = "/etc/letsencrypt"
	CertbotLogs  = "/var/log/letsencrypt"
)

// Configure writes the hooks' settings file: the usual settings with others added or, where "" is given,
// taken out.
func (l *Lab) Configure(settings map[string]string) {
	l.tb.Helper()
	l.ConfigureAt(SettingsFile, settings)
}

// ConfigureAt is [Lab.Configure] with another file, which a program is to be told of with --config.
func (l *Lab) ConfigureAt(path string, settings map[string]string) {
	l.tb.Helper()
	all := map[string]string{
		"ACME_CHALLENGE_ALIAS": AliasZone,
		"CLOUDFLARE_API_TOKEN": Token,
		"DNS_RESOLVERS":        "udp://" + Resolver + ":53",
		"PROPAGATION_SETTLE":   "0",
		"PROPAGATION_TIMEOUT":  "20",
	}
	maps.Copy(all, settings)
	var file strings.Builder
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if all[key] != "" {
			fmt.Fprintf(&file, "%s=%s\n", key, all[key])
		}
	}
	l.write(path, 0o600, file.String())
}

// Result is what a program did.
type Result struct {
	Code           int // exit code; -1 if a signal ended it
	Stdout, Stderr string
	Took           time.Duration
}

func (r Result) String() string {
	return fmt.Sprintf("exit code %d after %.1f s\nstdout:\n%s\nstderr:\n%s", r.Code, r.Took.Seconds(), r.Stdout, r.Stderr)
}

// patience is how long any program of the lab may take.
const patience = 2 * time.Minute

// Run runs a program with the environment that a bare timer gives: a PATH and nothing else.
func (l *Lab) Run(name string, args ...string) Result {
	l.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var stdout, stderr strings.Builder
	cmd := Command(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	start := time.Now()
	err := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		l.tb.Fatalf("lab: run %s %q: %v", name, args, err)
	}
	if ctx.Err() != nil {
		l.tb.Fatalf("lab: %s %q has not ended after %v", name, args, patience)
	}
	return Result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String(), time.Since(start)}
}

// Command is [Lab.Run] for who wants to see the program at work. Its environment is that of env -i.
func Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = []string{"PATH=/usr/bin:/bin"}
	cmd.Dir = "/"
	cmd.WaitDelay = time.Second
	return cmd
}

// Hook returns the path of a program under test.
func Hook(name string) string { return filepath.Join(inside, name) }

// Certbot runs certbot.
func (l *Lab) Certbot(args ...string) Result {
	l.tb.Helper()
	return l.Run("/usr/bin/certbot", args...)
}

// IssueArgs are certbot's arguments to get one certificate for names through the hooks. A lineage has the
// name of its first domain.
func IssueArgs(names ...string) []string {
	return IssueArgsWith(Hook("auth-hook"), Hook("cleanup-hook"), names...)
}

// IssueArgsWith is [IssueArgs] with other commands for the hooks.
func IssueArgsWith(auth, cleanup string, names ...string) []string {
	args := []string{
		"certonly", "--non-interactive", "--agree-tos", "--register-unsafely-without-email",
		"--manual", "--preferred-challenges", "dns",
		"--manual-auth-hook", auth, "--manual-cleanup-hook", cleanup,
	}
	for _, n := range names {
		args = append(args, "-d", n)
	}
	return args
}

// RenewArgs are certbot's arguments to renew all there is at once.
func RenewArgs() []string {
	return []string{"renew", "--force-renewal", "--no-random-sleep-on-renew"}
}

// Issue gets one certificate for names through the hooks.
func (l *Lab) Issue(names ...string) Result {
	l.tb.Helper()
	return l.Certbot(IssueArgs(names...)...)
}

// Renew renews all lineages.
func (l *Lab) Renew() Result {
	l.tb.Helper()
	return l.Certbot(RenewArgs()...)
}

// FreshAccount replaces certbot's ACME account, also in what lineages remember of it, so that no
// authorization can be reused: certbot would call no hook for one.
func (l *Lab) FreshAccount() {
	l.tb.Helper()
	if r := l.Certbot("unregister", "--non-interactive"); r.Code != 0 {
		l.tb.Fatalf("lab: certbot unregister: %v", r)
	}
	l.register()
	l.adoptAccount()
}

// adoptAccount makes every lineage's renewal use the only account there is; certbot insists on the one that
// it was issued with.
func (l *Lab) adoptAccount() {
	l.tb.Helper()
	accounts, _ := filepath.Glob(filepath.Join(CertbotDir, "accounts", CAHost, "directory", "*"))
	if len(accounts) != 1 {
		l.tb.Fatalf("lab: accounts %q, want one", accounts)
	}
	account := regexp.MustCompile(`(?m)^account = .*$`)
	lineages, _ := filepath.Glob(filepath.Join(CertbotDir, "renewal", "*.conf"))
	for _, path := range lineages {
		text, err := os.ReadFile(path)
		if err != nil {
			l.tb.Fatalf("lab: %v", err)
		}
		l.write(path, 0o644, account.ReplaceAllString(string(text), "account = "+filepath.Base(accounts[0])))
	}
}

// dumpLogs shows what the programs of a failed test wrote down.
func (l *Lab) dumpLogs() {
	for _, path := range []string{HookLog, filepath.Join(CertbotLogs, "letsencrypt.log")} {
		text, err := os.ReadFile(path)
		if err != nil {
			l.tb.Logf("%v", err)
			continue
		}
		const most = 12_000
		l.tb.Logf("%s:\n%s", path, text[max(0, len(text)-most):])
	}
	if l.API == nil {
		return // the lab itself could not be brought up
	}
	queries := l.World.Queries()
	for _, q := range queries[max(0, len(queries)-300):] {
		l.tb.Logf("query %v from %v", q, q.From)
	}
	for _, c := range l.API.Calls() {
		l.tb.Logf("API %s %s %v: %d after %v", c.Method, c.Path, c.Query, c.Status, c.End.Sub(c.Start).Round(time.Millisecond))
	}
}

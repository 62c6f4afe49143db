package haproxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/renameio/v2"

	"github.com/certhook/certhook/pkg/fault"
)

// lockTime is how long another run is waited for.
const lockTime = 30 * time.Second

// lock keeps other runs on this host out.
func (a *Applier) lock(ctx context.Context) (unlock func(), err error) {
	dir := filepath.Join(a.StateDir, "haproxy")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, unwritable(dir, err)
	}
	ctx, cancel := context.WithTimeout(ctx, lockTime)
	defer cancel()
	l := flock.New(filepath.Join(dir, "lock"), flock.SetPermissions(0o600))
	ok, err := l.TryLockContext(ctx, 100*time.Millisecond)
	switch {
	case ok:
		return func() { _ = l.Unlock() }, nil
	case ctx.Err() != nil:
		return nil, fault.Errorf(fault.Pending, "another haproxy-apply has been at work for more than %v", lockTime).
			WithHint("the next run tries again; to see what it does: pgrep -a haproxy-apply, and the log")
	}
	return nil, unwritable(l.Path(), err)
}

// memory is what is kept between runs. It decides nothing about HAProxy.
type memory struct {
	Version  int               `json:"version"`
	Then     map[string]string `json:"then"`     // lineage to the fingerprint for which --then has had success
	Unproven map[string]string `json:"unproven"` // lineage to the fingerprint that the last run left without success
	Shadowed map[string]string `json:"shadowed"` // lineage to the fingerprint that a reload did not bring to the wire
	Sample   int               `json:"sample"`
}

const memoryVersion = 1

func (a *Applier) memoryFile() string { return filepath.Join(a.StateDir, "haproxy", "state.json") }

// recall reads what is kept. A file that cannot be read counts for none: --then runs once too often then.
func (a *Applier) recall() memory {
	m := memory{Version: memoryVersion, Then: map[string]string{}, Unproven: map[string]string{}, Shadowed: map[string]string{}}
	raw, err := os.ReadFile(a.memoryFile())
	if errors.Is(err, fs.ErrNotExist) {
		return m
	}
	var kept memory
	if err == nil {
		err = json.Unmarshal(raw, &kept)
	}
	if err == nil && kept.Version != memoryVersion {
		err = fmt.Errorf("its version is %d, not %d", kept.Version, memoryVersion)
	}
	if err != nil {
		a.Log.Warn("what is kept between runs cannot be read; --then runs for every lineage", "file", a.memoryFile(), "error", err)
		return m
	}
	for _, of := range []*map[string]string{&kept.Then, &kept.Unproven, &kept.Shadowed} {
		if *of == nil {
			*of = map[string]string{}
		}
	}
	return kept
}

func (a *Applier) save(m memory) error {
	raw, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if old, err := os.ReadFile(a.memoryFile()); err == nil && bytes.Equal(old, raw) {
		return nil
	}
	if err := renameio.WriteFile(a.memoryFile(), raw, 0o600, renameio.WithStaticPermissions(0o600)); err != nil {
		return unwritable(a.memoryFile(), err)
	}
	return nil
}

// then runs the command that has to succeed, too, if it has not for what HAProxy serves now.
func (a *Applier) then(ctx context.Context, states []State) error {
	if a.Then == "" {
		return nil
	}
	m := a.recall()
	due := map[string]string{}
	for _, s := range states {
		if s.Err == nil && s.desired != nil && m.Then[s.Name] != s.Fingerprint {
			due[s.Name] = s.Fingerprint
		}
	}
	if len(due) == 0 || a.DryRun {
		return nil
	}
	a.step("then")
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", a.Then)
	cmd.Env = []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/", "LANG=C.UTF-8",
		"CERTHOOK_LINEAGES=" + strings.Join(slices.Sorted(maps.Keys(due)), " "),
	}
	cmd.Dir = "/"
	cmd.WaitDelay = time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that what it has started ends with it
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var out tail
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return fault.Errorf(fault.Other, "HAProxy serves what is new of %s, but --then failed (%w), and the next run tries it again: %s",
			strings.Join(slices.Sorted(maps.Keys(due)), ", "), err, out.String())
	}
	maps.Copy(m.Then, due)
	return a.save(m)
}

// tail keeps the end of a program's output.
type tail struct{ b []byte }

const tailSize = 2000

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if len(t.b) > 2*tailSize {
		t.b = append([]byte(nil), t.b[len(t.b)-tailSize:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	return strings.ToValidUTF8(strings.TrimSpace(string(t.b[max(0, len(t.b)-tailSize):])), "?")
}

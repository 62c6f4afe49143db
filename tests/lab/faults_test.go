package lab_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/certhook/certhook/tests/lab"
)

func TestFillDisk(t *testing.T) {
	l := lab.New(t, lab.Options{})
	file := filepath.Join(lab.StateDir, "file")
	if err := os.Mkdir(lab.StateDir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	mend := l.FillDisk(lab.StateDir)
	if err := os.WriteFile(file, []byte("x"), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("write to a full disk: %v", err)
	}
	mend()
	if text, err := os.ReadFile(file); string(text) != "before" || err != nil {
		t.Errorf("afterwards: %q, %v", text, err)
	}
}

func TestKill(t *testing.T) {
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nread -r line\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(script)
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); len(lab.Running(script)) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the script is not seen to run")
		}
	}
	if n := lab.Kill(script); n != 1 {
		t.Errorf("%d killed", n)
	}
	err := cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != -1 {
		t.Errorf("the script: %v", err)
	}
	if n := lab.Kill(script); n != 0 {
		t.Errorf("%d killed once more", n)
	}
}

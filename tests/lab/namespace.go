package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// marker carries the folder of the binaries under test into the namespaces.
	marker = "CERTHOOK_LAB_INSIDE"
	// prebuilt names a folder that has the binaries already.
	prebuilt = "CERTHOOK_LAB_BINARIES"
)

// binaries are the programs under test; they are built outside, where modules can be downloaded.
var binaries = []string{"auth-hook", "cleanup-hook", "dnsguide", "haproxy-apply", "persist-issue"}

// inside is the folder of the binaries once the process is in the lab's namespaces, "" before.
var inside string

// Enter runs the program again in network, mount and PID namespaces of its own, where /etc, /run, /var/lib
// and /var/log are private and nothing outlives the program, and calls run there. It returns the program's
// exit code:
//
//	func TestMain(m *testing.M) { os.Exit(lab.Enter(m.Run)) }
//
// Without root, or without a program the lab needs, it says so and returns 1. The programs under test are
// built first unless CERTHOOK_LAB_BINARIES names a folder that has them.
func Enter(run func() int) int {
	folder, marked := os.LookupEnv(marker)
	var code int
	var err error
	if marked && os.Getpid() == 1 {
		if err = settle(); err == nil {
			inside = folder
			return run()
		}
	} else {
		code, err = reexecute()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "lab: %v\n", err)
		return 1
	}
	return code
}

func reexecute() (int, error) {
	if os.Geteuid() != 0 {
		return 0, errors.New("this needs root, for namespaces in which port 53 and other hosts' names are its own; nothing outside them is touched")
	}
	for _, program := range []string{"certbot", "unbound"} {
		if _, err := exec.LookPath(program); err != nil {
			return 0, fmt.Errorf("%w\nhint: scripts/setup.sh installs what is missing", err)
		}
	}
	folder, err := filepath.Abs(os.Getenv(prebuilt))
	if os.Getenv(prebuilt) == "" {
		if folder, err = build(); err == nil {
			defer os.RemoveAll(folder)
		}
	}
	if err != nil {
		return 0, err
	}
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}

	cmd := exec.Command(self, os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), marker+"="+folder)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWPID,
		Pdeathsig:  unix.SIGKILL,
	}
	// The kernel sends Pdeathsig when the thread ends that started the child, not the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGINT, unix.SIGTERM)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("make namespaces: %w\nhint: in a container this takes --privileged", err)
	}
	go func() {
		for s := range signals {
			if s == unix.SIGTERM { // a terminal's SIGINT reaches the child by itself
				_ = cmd.Process.Kill()
			}
		}
	}()
	err = cmd.Wait()
	if _, ok := errors.AsType[*exec.ExitError](err); ok {
		if code := cmd.ProcessState.ExitCode(); code > 0 {
			return code, nil
		}
		return 1, nil // killed by a signal
	}
	return 0, err
}

// build compiles the binaries under test into a new folder.
func build() (string, error) {
	folder, err := os.MkdirTemp("", "certhook-lab-")
	if err != nil {
		return "", err
	}
	args := []string{"build", "-o", folder + string(filepath.Separator)}
	for _, b := range binaries {
		args = append(args, "github.com/certhook/certhook/cmd/"+b)
	}
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		os.RemoveAll(folder)
		return "", fmt.Errorf("build the programs under test: %w\n%s", err, out)
	}
	return folder, nil
}

// noteSources walks the sources of the programs under test so that go test sees the test depend on them: it
// does not import them, and an old result would be taken for theirs.
var noteSources = sync.OnceFunc(func() {
	root, err := os.Getwd()
	for err == nil && root != "/" {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		root = filepath.Dir(root)
	}
	for _, dir := range []string{"cmd", "pkg"} {
		_ = filepath.WalkDir(filepath.Join(root, dir), func(_ string, _ fs.DirEntry, err error) error { return err })
	}
})

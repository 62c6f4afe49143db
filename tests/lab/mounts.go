package lab

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const (
	// private is a tmpfs that holds everything written in the lab. It hides /run, and with it the sockets
	// of services that would answer for the machine outside: nscd, systemd-resolved.
	private   = "/run"
	temporary = private + "/lab-tmp"

	trustStore = "/etc/ssl/certs/ca-certificates.crt"
)

// overlaid are the folders in which the lab writes without the machine noticing.
var overlaid = []string{"/etc", "/var/lib", "/var/log"}

// systemRoots is the machine's own trust store.
var systemRoots []byte

// settle makes the new namespaces a place to live in.
func settle() error {
	if err := os.Unsetenv(marker); err != nil {
		return err
	}
	if err := mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := mount("proc", "/proc", "proc", 0, ""); err != nil {
		return err
	}
	if err := mount("tmpfs", private, "tmpfs", 0, "mode=0755"); err != nil {
		return err
	}
	for _, dir := range overlaid {
		if err := overlay(dir); err != nil {
			return err
		}
	}
	if err := os.Mkdir(temporary, 0o1777); err != nil {
		return err
	}
	if err := os.Setenv("TMPDIR", temporary); err != nil {
		return err
	}
	if err := loopbackUp(); err != nil {
		return err
	}
	// Where systemd-resolved is in charge the resolver's file is a link into /run.
	if err := os.Remove("/etc/resolv.conf"); err != nil && !os.IsNotExist(err) {
		return err
	}
	var err error
	if systemRoots, err = os.ReadFile(trustStore); err != nil {
		return fmt.Errorf("%w\nhint: install the package ca-certificates", err)
	}
	// The folder has every root once more in a file of its own, which each hook would read at its start.
	if err := mount("tmpfs", filepath.Dir(trustStore), "tmpfs", 0, "mode=0755"); err != nil {
		return err
	}
	return os.WriteFile("/etc/nsswitch.conf", []byte("passwd: files\ngroup: files\nhosts: files dns\n"), 0o644)
}

func mount(source, target, kind string, flags uintptr, data string) error {
	if err := unix.Mount(source, target, kind, flags, data); err != nil {
		return fmt.Errorf("mount %s at %s: %w", kind, target, err)
	}
	return nil
}

func overlay(dir string) error {
	store := filepath.Join(private, "lab-overlay", dir)
	upper, work := store+"/upper", store+"/work"
	for _, d := range []string{upper, work} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	return mount("overlay", dir, "overlay", 0, "lowerdir="+dir+",upperdir="+upper+",workdir="+work)
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("bring up the loopback interface: %w", err)
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return fmt.Errorf("bring up the loopback interface: %w", err)
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, lo); err != nil {
		return fmt.Errorf("bring up the loopback interface: %w", err)
	}
	lo.SetUint16(lo.Uint16() | unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		return fmt.Errorf("bring up the loopback interface: %w", err)
	}
	return nil
}

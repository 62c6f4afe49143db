package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Limits in octets; what is larger was named by mistake.
const (
	maxConfig = 1 << 20
	maxSecret = 64 << 10
)

// readBounded reads a regular file of at most limit octets. It does not hang on a FIFO.
func readBounded(path string, limit int64) ([]byte, fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, errors.New("this is not a regular file")
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("the file is larger than %d octets", limit)
	}
	return data, info, err
}

// readConfig reads the configuration file. The error leaves out the path, which its place already has.
func readConfig(path string) ([]byte, fs.FileInfo, error) {
	data, info, err := readBounded(path, maxConfig)
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		err = fmt.Errorf("the configuration cannot be read: %w", pathErr.Err)
	}
	return data, info, err
}

// readSecret reads a secret from a file of its own; one line end after it does not count.
func readSecret(path string) (string, error) {
	data, _, err := readBounded(path, maxSecret)
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return "", fmt.Errorf("reading %q: %w", path, pathErr.Err)
	}
	if err != nil {
		return "", fmt.Errorf("reading %q: %w", path, err)
	}
	secret := strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
	if secret == "" {
		return "", fmt.Errorf("reading %q: the file is empty", path)
	}
	return secret, nil
}

// checkPermissions says why a configuration file is not safe where it is: its settings decide what runs
// as root, and it may hold a secret.
func checkPermissions(path string, info fs.FileInfo, holdsSecret bool) []string {
	var reasons []string
	perm := info.Mode().Perm()
	switch {
	case holdsSecret && perm&0o077 != 0:
		reasons = append(reasons, fmt.Sprintf("the file holds a secret and can be read or changed by others than its owner (mode %04o); type: chmod 600 %s", perm, path))
	case perm&0o002 != 0:
		reasons = append(reasons, fmt.Sprintf("the file can be changed by anybody (mode %04o); type: chmod o-w %s", perm, path))
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return append(reasons, err.Error())
	}
	dir := filepath.Dir(real)
	if d, err := os.Stat(dir); err == nil && d.Mode().Perm()&0o002 != 0 && d.Mode()&fs.ModeSticky == 0 {
		reasons = append(reasons, fmt.Sprintf("the file lies in a directory in which anybody can replace it; type: chmod o-w %s", dir))
	}
	return reasons
}

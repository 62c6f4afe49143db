package master

import (
	"path/filepath"
	"slices"
	"strings"
)

// arguments are those of a HAProxy's command line that matter here.
type arguments struct {
	config       []string // -f, and what follows --
	masterWorker bool     // -W or -Ws
	socket       string   // -S
	pidFile      string   // -p
	check        []string // that bear on whether a configuration is good
}

// parseArguments reads a command line as HAProxy does (haproxy_init_args in src/haproxy.c): no option is joined to
// another or to its parameter, which may begin with a dash itself.
func parseArguments(args []string) arguments {
	var a arguments
	if len(args) > 0 {
		args = args[1:]
	}
	next := func() (s string) {
		if len(args) > 0 {
			s, args = args[0], args[1:]
		}
		return s
	}
	for len(args) > 0 {
		switch option := next(); {
		case option == "--":
			a.config, args = append(a.config, args...), nil
		case strings.HasPrefix(option, "-f"):
			a.config = append(a.config, next())
		case strings.HasPrefix(option, "-W"):
			a.masterWorker = true
		case strings.HasPrefix(option, "-S"):
			a.socket = next()
		case strings.HasPrefix(option, "-p"):
			a.pidFile = next()
		case strings.HasPrefix(option, "-sf"), strings.HasPrefix(option, "-st"):
			for len(args) > 0 && !strings.HasPrefix(args[0], "-") {
				next()
			}
		case strings.HasPrefix(option, "-x"), strings.HasPrefix(option, "-C"):
			next()
		case slices.ContainsFunc([]string{"-n", "-m", "-N", "-L"}, func(s string) bool { return strings.HasPrefix(option, s) }):
			a.check = append(a.check, option, next())
		case option == "-4", option == "-dr", option == "-dW": // IPv4 only, unresolved names pass, no warning passes
			a.check = append(a.check, option)
		}
	}
	return a
}

// absolute resolves a path as a process with that working directory does. Where that is unknown it stays as it is.
func absolute(dir, path string) string {
	if path == "" || dir == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// absoluteSocket is absolute for what -S names, and leaves out what does not belong to the address.
func absoluteSocket(dir, socket string) string {
	if socket == "" {
		return ""
	}
	if network, address, err := endpoint(socket); err == nil && network == "unix" && !strings.HasPrefix(address, "@") {
		return absolute(dir, address)
	}
	address, _, _ := strings.Cut(socket, ",")
	return address
}

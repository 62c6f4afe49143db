package haproxy

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"github.com/certhook/certhook/pkg/fault"
)

// escape makes a label's value of a string (Prometheus' text format, exposition_formats.md).
var escape = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// WriteMetrics replaces a file for node_exporter's textfile collector, which everybody may read. looked is whether
// HAProxy could be looked at.
func WriteMetrics(path string, states []State, looked bool, now time.Time) error {
	var b strings.Builder
	head := func(name, help string) { fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name) }
	number := func(yes bool) int64 {
		if yes {
			return 1
		}
		return 0
	}
	metric := func(name, help string, value func(State) int64) {
		head(name, help)
		for _, s := range states {
			fmt.Fprintf(&b, "%s{lineage=\"%s\"} %d\n", name, escape.Replace(s.Name), value(s))
		}
	}
	metric("certhook_certificate_not_after_seconds", "End of the lineage's certificate, in Unix time; 0 if there is none that can be read.", func(s State) int64 {
		if s.NotAfter.IsZero() {
			return 0
		}
		return s.NotAfter.Unix()
	})
	metric("certhook_haproxy_served", "Whether HAProxy is known to serve what the lineage has: on disk, in memory and on the wire.", func(s State) int64 {
		return number(s.Served)
	})
	head("certhook_haproxy_looked", "Whether HAProxy could be looked at; if not, nothing is known to be served.")
	fmt.Fprintf(&b, "certhook_haproxy_looked %d\n", number(looked))
	head("certhook_haproxy_checked_seconds", "When this was looked at, in Unix time.")
	fmt.Fprintf(&b, "certhook_haproxy_checked_seconds %d\n", now.Unix())
	if err := publish(path, b.String()); err != nil {
		return fault.Errorf(fault.Usage, "write the metrics: %w", err).WithHint("the folder of %s has to be there, and writable", path)
	}
	return nil
}

// publish replaces a file by one that everybody may read, whatever the umask and the old one's mode are. The collector
// passes over the temporary file, whose name does not end in .prom.
func publish(path, text string) error {
	f, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)), renameio.WithStaticPermissions(0o644))
	if err != nil {
		return err
	}
	defer func() { _ = f.Cleanup() }()
	if _, err := f.WriteString(text); err != nil {
		return err
	}
	return f.CloseAtomicallyReplace()
}

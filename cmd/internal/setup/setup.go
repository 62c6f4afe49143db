// Package setup builds what the programs need from the settings. With package hooks it is the one place where
// settings meet the packages that do the work.
package setup

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/urfave/cli/v2"

	hookcli "github.com/certhook/certhook/pkg/cli"
	"github.com/certhook/certhook/pkg/config"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/resolver"
)

// SayFine is what a check of settings ends with if nothing is wrong with them.
func SayFine(c *cli.Context, s *config.Settings) {
	Warn(c, s)
	from := s.File
	if from == "" {
		from = "the environment (there is no file)"
	}
	fmt.Fprintf(c.App.Writer, "the settings from %s are fine\n", from)
}

// Warn tells on stderr what is odd about settings.
func Warn(c *cli.Context, s *config.Settings) {
	for _, w := range s.Warnings {
		fmt.Fprintf(c.App.ErrWriter, "%s: warning: %s\n", c.App.Name, w)
	}
}

// Log opens the log that the settings name. One that cannot be written is a warning: it must not stop a
// renewal. close flushes it.
func Log(c *cli.Context, s *config.Settings, stderr io.Writer) (log *slog.Logger, closeLog func()) {
	file, err := hookcli.OpenLog(s.LogFile)
	if err != nil {
		log = hookcli.NewLogger(c.App.Name, nil, stderr, hookcli.Switch(c, "v"))
		log.Warn("no log is written", "error", err)
		closeLog = func() {}
	} else {
		log = hookcli.NewLogger(c.App.Name, file, stderr, hookcli.Switch(c, "v"))
		closeLog = func() { file.Close() }
	}
	for _, w := range s.Warnings {
		log.Warn(w)
	}
	return log, closeLog
}

// Endpoints are the recursive resolvers to ask: the configured ones, or else public ones and, after
// them, this machine's own.
func Endpoints(s *config.Settings) ([]resolver.Endpoint, error) {
	if len(s.Resolvers) == 0 {
		// Without a resolv.conf the public ones have to do.
		system, _ := resolver.SystemEndpoints("/etc/resolv.conf")
		return append(resolver.Default(), system...), nil
	}
	var all []resolver.Endpoint
	for _, text := range s.Resolvers {
		e, err := resolver.ParseEndpoint(text)
		if err != nil {
			return nil, fault.Errorf(fault.Usage, "DNS_RESOLVERS: %w", err)
		}
		all = append(all, e)
	}
	return all, nil
}

package setup

import (
	"log/slog"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	hookcli "github.com/certhook/certhook/pkg/cli"
	"github.com/certhook/certhook/pkg/config"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/haproxy"
	"github.com/certhook/certhook/pkg/haproxy/wire"
)

// LoadApply reads the settings of haproxy-apply.
func LoadApply(c *cli.Context, environ []string) (*config.Settings, error) {
	return config.Load(config.Options{Environ: environ, File: hookcli.ConfigFile(c), Apply: true})
}

// CheckApply is hooks.CheckConfig for haproxy-apply.
func CheckApply(c *cli.Context, environ []string) error {
	s, err := config.Load(config.Options{Environ: environ, File: hookcli.ConfigFile(c), Apply: true, Strict: true})
	if err != nil {
		return err
	}
	SayFine(c, s)
	return nil
}

// Applier builds haproxy-apply's use case. environ has what certbot says to a deploy hook.
func Applier(s *config.Settings, log *slog.Logger, environ []string) *haproxy.Applier {
	a := &haproxy.Applier{
		Roots:       []string{s.CertbotConfigDir, s.StateDir},
		CertDir:     s.HAProxy.CertDir,
		Config:      s.HAProxy.Config,
		StatsSocket: s.HAProxy.StatsSocket, MasterSocket: s.HAProxy.MasterSocket, PIDFile: s.HAProxy.PIDFile,
		ReloadCommand: s.HAProxy.ReloadCommand,
		MaxPayload:    s.HAProxy.MaxPayload,
		Group:         s.HAProxy.Group,
		StateDir:      s.StateDir,
		Log:           log,
	}
	for _, target := range s.HAProxy.Verify {
		if target == config.VerifyOff {
			a.ProbesOff = true
			log.Warn("HAPROXY_VERIFY=off: nobody looks at what HAProxy serves, and success is what it says of itself")
			break
		}
		a.Probes = append(a.Probes, wire.Target{Address: target})
	}
	for _, entry := range environ {
		if dir, ok := strings.CutPrefix(entry, "RENEWED_LINEAGE="); ok {
			a.Renewed.Dir = dir
		}
		if names, ok := strings.CutPrefix(entry, "RENEWED_DOMAINS="); ok {
			a.Renewed.Names = strings.Fields(names)
		}
	}
	return a
}

// Duration reads a flag that takes a time of more than nothing.
func Duration(flag, text string) (time.Duration, error) {
	d, err := config.ParseDuration(text)
	if err == nil && d <= 0 {
		err = fault.Errorf(fault.Usage, "%q is no time", text)
	}
	if err != nil {
		return 0, fault.Errorf(fault.Usage, "%s: %w", flag, err)
	}
	return d, nil
}

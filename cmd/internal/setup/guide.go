package setup

import (
	"github.com/urfave/cli/v2"

	"github.com/certhook/certhook/pkg/authority"
	hookcli "github.com/certhook/certhook/pkg/cli"
	"github.com/certhook/certhook/pkg/config"
	"github.com/certhook/certhook/pkg/resolver"
)

// LoadGuide reads the settings of dnsguide, which writes to no DNS provider. flags are the settings that the
// command line gives, named by key, and flagNames the flags that give them; verifying says that the mode of
// DNS_SETUP_MODE will be used.
func LoadGuide(c *cli.Context, environ []string, flags, flagNames map[string]string, verifying bool) (*config.Settings, error) {
	return config.Load(config.Options{
		Flags: flags, FlagNames: flagNames, Environ: environ, File: hookcli.ConfigFile(c), Guide: true, NeedSetup: verifying,
	})
}

// CheckGuide is hooks.CheckConfig for dnsguide.
func CheckGuide(c *cli.Context, environ []string) error {
	s, err := config.Load(config.Options{Environ: environ, File: hookcli.ConfigFile(c), Guide: true, NeedSetup: true, Strict: true})
	if err != nil {
		return err
	}
	SayFine(c, s)
	return nil
}

// Resolution returns the two ways to learn what DNS says: from authoritative servers, and from resolvers that
// know nothing of each other. This machine's own resolver finds servers where no other can be reached, but
// it is no witness: it may show a view that nobody outside has.
func Resolution(s *config.Settings) (*authority.Client, resolver.Panel, error) {
	all, err := Endpoints(s)
	if err != nil {
		return nil, resolver.Panel{}, err
	}
	witnesses := all
	if len(s.Resolvers) == 0 {
		witnesses = resolver.Default()
	}
	return &authority.Client{Recursive: &resolver.Recursive{Endpoints: all}}, resolver.NewPanel(witnesses), nil
}

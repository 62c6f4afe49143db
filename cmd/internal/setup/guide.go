package setup

import (
	"fmt"

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
	_, panel, err := Resolution(s)
	if err != nil {
		return err
	}
	WarnPanel(c, panel)
	SayFine(c, s)
	return nil
}

// WarnPanel tells on stderr where too few resolvers are named for a verdict without the zone's own servers.
func WarnPanel(c *cli.Context, panel resolver.Panel) {
	if panel.Size() < resolver.Quorum {
		fmt.Fprintf(c.App.ErrWriter, "%s: warning: DNS_RESOLVERS (--resolver) names one resolver only, and where a zone's own servers cannot be reached it takes %d that agree: name a second one, run by somebody else\n",
			c.App.Name, resolver.Quorum)
	}
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

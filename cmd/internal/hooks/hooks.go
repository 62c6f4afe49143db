// Package hooks builds what works with a DNS provider from the settings: the hooks, and dnsguide's look at how far
// their credential reaches. It stands apart from setup so that persist-issue is built without any of it.
package hooks

import (
	"context"
	"log/slog"
	"maps"
	"sync"

	"github.com/urfave/cli/v2"

	"github.com/certhook/certhook/cmd/internal/setup"
	"github.com/certhook/certhook/pkg/caa"
	"github.com/certhook/certhook/pkg/challenge"
	hookcli "github.com/certhook/certhook/pkg/cli"
	"github.com/certhook/certhook/pkg/config"
	"github.com/certhook/certhook/pkg/delegation"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/journal"
	"github.com/certhook/certhook/pkg/propagation"
	"github.com/certhook/certhook/pkg/provider"
	"github.com/certhook/certhook/pkg/provider/cloudflare"
	"github.com/certhook/certhook/pkg/provider/rfc2136"
)

// Load reads the settings that the command line, environ and the file give.
func Load(c *cli.Context, environ []string) (*config.Settings, error) {
	return config.Load(config.Options{Environ: environ, File: hookcli.ConfigFile(c), NeedProvider: true})
}

// CheckConfig does what --check-config asks for: it reads the settings strictly and says on stdout that
// they are fine, or returns everything that is wrong.
func CheckConfig(c *cli.Context, environ []string) error {
	s, err := config.Load(config.Options{Environ: environ, File: hookcli.ConfigFile(c), NeedProvider: true, Strict: true})
	if err != nil {
		return err
	}
	if _, err := Provider(s); err != nil {
		return err
	}
	_, panel, err := setup.Resolution(s)
	if err != nil {
		return err
	}
	setup.WarnPanel(c, panel)
	setup.SayFine(c, s)
	return nil
}

// New builds the hooks' use case.
func New(s *config.Settings, log *slog.Logger) (*challenge.Hooks, error) {
	store, err := journal.Open(s.StateDir)
	if err != nil {
		return nil, err
	}
	dnsProvider, err := Provider(s)
	if err != nil {
		return nil, err
	}
	endpoints, err := setup.Endpoints(s)
	if err != nil {
		return nil, err
	}
	client, panel, err := setup.Resolution(s)
	if err != nil {
		return nil, err
	}
	return &challenge.Hooks{
		Targets: delegation.Settings{
			Aliases: s.Aliases, Pins: s.Pins, Zones: s.AliasFor, Hashed: s.HashedLabels,
		},
		TTL:             s.ChallengeTTL,
		Provider:        dnsProvider,
		ProviderName:    s.DNSProvider,
		PinnedZoneID:    s.CloudflareZoneIDs[""],
		ProviderTimeout: s.ProviderTimeout,
		DNS:             client,
		Panel:           panel,
		Issuance:        challenge.Issuance{Server: s.ACMEServer, CertbotDir: s.CertbotConfigDir, Issuers: issuers(s)},
		Propagation: propagation.Options{
			Mode: propagation.Mode(s.Propagation), Timeout: s.PropagationTimeout, Extra: s.PropagationWait, Resolvers: endpoints,
		},
		Settle:         s.PropagationSettle,
		AbortOnFailure: s.AbortOnFailure,
		Journal:        store,
		Log:            log,
	}, nil
}

// issuers returns a function that tells what CAA records call the CA. It asks the CA once at most, and only
// where neither the settings nor we know.
func issuers(s *config.Settings) func(context.Context) ([]string, error) {
	var mu sync.Mutex
	asked := false
	var names []string
	var err error
	return func(ctx context.Context) ([]string, error) {
		mu.Lock()
		defer mu.Unlock()
		if !asked {
			names, err = caa.Issuer(ctx, nil, s.IssuerDomain, s.ACMEServer)
			asked = true
		}
		return names, err
	}
}

// Provider returns the driver that the settings choose. It asks nothing yet.
func Provider(s *config.Settings) (provider.Provider, error) {
	switch s.DNSProvider {
	case config.Cloudflare:
		named := maps.Clone(s.CloudflareZoneIDs)
		delete(named, "") // whose zone it is DNS tells: Hooks.PinnedZoneID
		return cloudflare.New(cloudflare.Config{Token: s.CloudflareToken.Reveal(), Zones: named, APIURL: s.CloudflareAPIURL})
	case config.RFC2136:
		return rfc2136.New(rfc2136.Config{
			Server: s.RFC2136Server, Zone: s.RFC2136Zone,
			KeyName: s.RFC2136TSIGName, KeySecret: s.RFC2136TSIGSecret.Reveal(), KeyAlgorithm: s.RFC2136TSIGAlgorithm,
		})
	}
	return nil, fault.Errorf(fault.Usage, "DNS_PROVIDER=%s: certhook has no such driver", s.DNSProvider).
		WithHint("those that it has are %s and %s", config.Cloudflare, config.RFC2136)
}

package setup

import (
	"context"
	"encoding/base64"
	"log/slog"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/certhook/certhook/pkg/caa"
	hookcli "github.com/certhook/certhook/pkg/cli"
	"github.com/certhook/certhook/pkg/config"
	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/issuance"
	"github.com/certhook/certhook/pkg/persist"
)

// LoadPersist reads the settings of persist-issue. flags are the settings that the command line gives, named by key,
// and flagNames the flags that give them.
func LoadPersist(c *cli.Context, environ []string, flags, flagNames map[string]string) (*config.Settings, error) {
	return config.Load(config.Options{Flags: flags, FlagNames: flagNames, Environ: environ, File: hookcli.ConfigFile(c), Persist: true})
}

// CheckPersist is hooks.CheckConfig for persist-issue.
func CheckPersist(c *cli.Context, environ []string) error {
	s, err := config.Load(config.Options{Environ: environ, File: hookcli.ConfigFile(c), Persist: true, Strict: true})
	if err != nil {
		return err
	}
	SayFine(c, s)
	return nil
}

// Issuer builds persist-issue's use case.
func Issuer(s *config.Settings, log *slog.Logger) (*issuance.Issuer, error) {
	dns, panel, err := Resolution(s)
	if err != nil {
		return nil, err
	}
	i := &issuance.Issuer{
		Root: s.StateDir, CertbotDir: s.CertbotConfigDir,
		Server:    s.ACMEServer,
		Issuers:   func(ctx context.Context) ([]string, error) { return caa.Issuer(ctx, nil, s.IssuerDomain, s.ACMEServer) },
		Choice:    s.Persist.Account,
		Contact:   s.Persist.Email,
		DNS:       dns,
		Panel:     panel,
		Draft:     persist.Draft(s.Persist.Draft),
		Until:     s.Persist.Until,
		Profile:   s.Persist.Profile,
		Budget:    s.Persist.Budget,
		Patience:  s.PropagationTimeout,
		Settle:    s.PropagationWait,
		Memory:    s.PropagationSettle,
		UserAgent: "certhook/" + hookcli.Version(),
		Log:       log,
	}
	if s.Propagation == config.PropagationNone {
		i.Patience = -1
	}
	if s.Persist.EABKid != "" {
		key, err := base64.RawURLEncoding.DecodeString(s.Persist.EABHMAC.Reveal())
		if err != nil {
			return nil, fault.Errorf(fault.Usage, "ACME_EAB_HMAC: the secret is not base64url")
		}
		i.Binding = &issuance.Binding{KID: s.Persist.EABKid, Key: key}
	}
	return i, nil
}

// Names brings the names of -d into canonical form, each once, wildcards with their "*.".
func Names(given []string) ([]string, error) {
	var names []string
	for _, text := range given {
		base, wildcard := strings.CutPrefix(strings.TrimSpace(text), "*.")
		name, err := dnsname.ParseHost(base)
		if err != nil {
			return nil, fault.Errorf(fault.Usage, "-d: %w", err)
		}
		if wildcard {
			name = "*." + name
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, nil
}

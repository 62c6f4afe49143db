package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/certhook/certhook/cmd/internal/hooks"
	"github.com/certhook/certhook/cmd/internal/setup"
	hookcli "github.com/certhook/certhook/pkg/cli"
	"github.com/certhook/certhook/pkg/config"
	"github.com/certhook/certhook/pkg/delegation"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/provider"
)

func scopeCommand(environ []string) *cli.Command {
	return &cli.Command{
		Name:  "scope",
		Usage: "report whether the DNS credentials reach more than the alias zones",
		UsageText: "dnsguide scope -d svc.example.com\n" +
			"dnsguide scope --from-certbot --json",
		Description: "Lists the zones that the credentials of the hooks reach, and changes none. Exit status 0: the alias zones\n" +
			"alone, as far as the provider tells; 3: others too, of which those that hold a NAME come first; 4: it\n" +
			"cannot be told. Cloudflare lists what a token with Zone:Read sees; what it may edit without Zone:Read only\n" +
			"the dashboard shows. A server that takes DNS updates (RFC 2136) is asked about the zones of the NAMEs, by\n" +
			"updates that cannot come true and that its log will show; nothing can be learned about its other zones.",
		Flags: hookcli.CommonFlags(
			&cli.StringSliceFlag{Name: "d", Aliases: []string{"domain"}, Usage: "a `NAME` of the certificate, wildcards too; may be repeated"},
			&cli.BoolFlag{Name: "from-certbot", DisableDefaultText: true, Usage: "all names that certbot renews by manual hooks at ACME_SERVER"},
			&cli.BoolFlag{Name: "json", DisableDefaultText: true, Usage: "print JSON"},
		),
		Action: func(c *cli.Context) error {
			if hookcli.Switch(c, "check-config") {
				return hooks.CheckConfig(c, environ)
			}
			if err := hookcli.NoArguments(c); err != nil {
				return err
			}
			s, err := hooks.Load(c, environ)
			if err != nil {
				return err
			}
			setup.Warn(c, s)
			return scope(c, s)
		},
	}
}

func scope(c *cli.Context, s *config.Settings) error {
	domains, unread, err := delegated(c, s)
	if err != nil {
		return err
	}
	driver, err := hooks.Provider(s)
	if err != nil {
		return err
	}
	surveyor, ok := driver.(provider.Surveyor)
	if !ok {
		return fault.Errorf(fault.Unknown, "certhook cannot ask %s what the credentials reach", s.DNSProvider)
	}
	ctx, cancel := context.WithTimeoutCause(c.Context, s.ProviderTimeout,
		fmt.Errorf("the time for calls to the provider is over (PROVIDER_TIMEOUT, %v)", s.ProviderTimeout))
	defer cancel()
	reach, err := surveyor.Reach(ctx, s.Aliases, domains)
	if err != nil {
		return err
	}
	report := scopeReport{
		Provider: s.DNSProvider, Aliases: s.Aliases, Domains: domains, Expires: reach.Expires,
		scope: reach.Judge(s.Aliases, domains),
	}
	if c.Bool("json") {
		err = printJSON(c.App.Writer, report.json())
	} else {
		err = report.text(c.App.Writer, time.Now())
	}
	if err != nil {
		return err
	}
	return errors.Join(report.scope.Err(), unread)
}

// delegated lists the names that are asked about, without wildcards, each once. What the hooks would refuse to
// delegate is refused here as well. unread is that of [names].
func delegated(c *cli.Context, s *config.Settings) (domains []string, unread, err error) {
	asked, unread, err := names(c, s)
	if err != nil {
		return nil, nil, err
	}
	targets := delegation.Settings{Aliases: s.Aliases, Pins: s.Pins, Zones: s.AliasFor, Hashed: s.HashedLabels}
	seen := map[string]bool{}
	for _, name := range asked {
		target, err := targets.Target(strings.TrimPrefix(name, "*."))
		if err != nil {
			return nil, nil, err
		}
		if !seen[target.Domain] {
			seen[target.Domain] = true
			domains = append(domains, target.Domain)
		}
	}
	return domains, unread, nil
}

// scopeReport is what scope prints.
type scopeReport struct {
	Provider string
	Aliases  []string
	Domains  []string
	Expires  time.Time
	scope    provider.Scope
}

func (r scopeReport) json() any {
	var expires *time.Time
	if !r.Expires.IsZero() {
		expires = &r.Expires
	}
	return struct {
		Verdict  provider.Extent    `json:"verdict"`
		Why      string             `json:"why,omitempty"`
		Provider string             `json:"provider"`
		Aliases  []string           `json:"aliases"`
		Domains  []string           `json:"domains"`
		Own      []provider.Reached `json:"own"`
		Excess   []provider.Excess  `json:"excess"`
		Seen     []provider.Reached `json:"seen"`
		Absent   []string           `json:"absent"`
		Expires  *time.Time         `json:"expires,omitempty"`
	}{
		r.scope.Extent, r.scope.Why, r.Provider, list(r.Aliases), list(r.Domains),
		list(r.scope.Own), list(r.scope.Excess), list(r.scope.Seen), list(r.scope.Absent), expires,
	}
}

// list is not null in JSON.
func list[T any](items []T) []T { return append([]T{}, items...) }

// text prints a line a zone, the worst first, and the verdict.
func (r scopeReport) text(w io.Writer, now time.Time) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(verdict string, z provider.Reached, remark string) {
		fmt.Fprintf(table, "%s\t%s\t%s\n", verdict, z.Name, remark)
	}
	for _, z := range r.scope.Excess {
		remark := "not an alias zone"
		if len(r.Aliases) == 0 {
			remark = "no domain's own zone"
		}
		if len(z.Serves) > 0 {
			remark = "holds " + strings.Join(z.Serves, ", ")
		}
		line("too wide", z.Reached, remark+abilities[z.Access])
	}
	for _, z := range r.scope.Own {
		remark := "alias zone"
		if len(r.Aliases) == 0 {
			remark = "a domain's own zone"
		}
		line("ok", z, remark+abilities[z.Access])
	}
	for _, z := range r.scope.Seen {
		line("ok", z, "not an alias zone"+abilities[z.Access])
	}
	for _, name := range r.scope.Absent {
		line("ok", provider.Reached{Name: name}, "asked about: not within reach")
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if !r.Expires.IsZero() {
		fmt.Fprintf(w, "the credentials expire on %s, in %s\n", r.Expires.UTC().Format(time.RFC3339), days(r.Expires.Sub(now)))
	}
	if r.scope.Extent == provider.Confined {
		fmt.Fprintln(w, "confined: as far as the provider tells, the credentials reach nothing else that they could change")
	}
	return nil
}

// abilities complete the remark on a zone.
var abilities = map[provider.Access]string{
	provider.AccessRead:    "; can be seen, not changed",
	provider.AccessUnknown: "; what the credentials may do there is not known",
}

func days(d time.Duration) string {
	switch n := int(d.Hours() / 24); n {
	case 0:
		return "less than a day"
	case 1:
		return "1 day"
	default:
		return fmt.Sprintf("%d days", n)
	}
}

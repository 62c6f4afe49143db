package main

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/net/publicsuffix"

	"github.com/certhook/certhook/pkg/certbot"
	"github.com/certhook/certhook/pkg/config"
	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/pkg/fault"
)

// names lists the names that are asked about, each once, in canonical form. unread, of kind Unknown, says that
// names of certbot's may be missing among them: whatever the others come to, it is not the whole answer.
func names(c *cli.Context, s *config.Settings) (names []string, unread, err error) {
	asked := c.StringSlice("d")
	if c.Bool("from-certbot") {
		var renewed []string
		if renewed, unread, err = renewedNames(c, s); err != nil {
			return nil, nil, err
		}
		asked = append(asked, renewed...)
	}
	for _, text := range asked {
		name, err := parseName(text)
		if err != nil {
			return nil, nil, fault.Errorf(fault.Usage, "-d: %w", err)
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, nil, fault.Errorf(fault.Usage, "no name is given").WithHint("use -d NAME, as certbot takes it, or --from-certbot")
	}
	return names, unread, nil
}

// parseName reads a name as a certificate has it.
func parseName(text string) (string, error) {
	base, wildcard := strings.CutPrefix(strings.TrimSpace(text), "*.")
	name, err := dnsname.ParseHost(base)
	if err != nil {
		return "", err
	}
	if suffix, icann := publicsuffix.PublicSuffix(name); icann && suffix == name {
		return "", fmt.Errorf("%q is a public suffix, which no CA issues for: name a domain below it, such as %q", text, "example."+name)
	}
	if wildcard {
		name = "*." + name
	}
	return name, nil
}

// renewedNames lists the names of the certificates that certbot renews by manual hooks at the configured server. It
// tells on stderr which it leaves out.
func renewedNames(c *cli.Context, s *config.Settings) (names []string, unread, err error) {
	lineages, broken := certbot.Lineages(s.CertbotConfigDir)
	var elsewhere []certbot.Lineage
	for _, l := range lineages {
		switch {
		case l.Authenticator != "manual":
		case l.At(s.ACMEServer):
			names = append(names, l.Names...)
		default:
			elsewhere = append(elsewhere, l)
		}
	}
	if len(elsewhere) > 0 {
		fmt.Fprintf(c.App.ErrWriter, "%s: note: %s\n", c.App.Name, leftOut(elsewhere, s.ACMEServer))
	}
	for _, err := range broken {
		if errors.Is(err, fs.ErrPermission) {
			return nil, nil, err
		}
		fmt.Fprintf(c.App.ErrWriter, "%s: warning: %v\n", c.App.Name, err)
	}
	if len(broken) > 0 {
		what := "a lineage of certbot's cannot be read, and its names are"
		if len(broken) > 1 {
			what = fmt.Sprintf("%d lineages of certbot's cannot be read, and their names are", len(broken))
		}
		unread = fault.Errorf(fault.Unknown, "%s not looked at: see the warnings above", what).
			WithHint("certbot certificates shows what certbot makes of it; one of no use any more goes with certbot delete --cert-name NAME")
	}
	switch {
	case len(names) > 0:
		return names, unread, nil
	case unread != nil:
		return nil, nil, unread
	}
	return nil, nil, fault.Errorf(fault.Usage, "certbot has no certificate in %q that it renews by manual hooks at %s", s.CertbotConfigDir, s.ACMEServer).
		WithHint("name the domains with -d, or set CERTBOT_CONFIG_DIR or ACME_SERVER")
}

// leftOut names the lineages that are at other servers than the configured one, and says how to ask about them.
func leftOut(elsewhere []certbot.Lineage, server string) string {
	var servers []string
	lineages := map[string][]string{}
	for _, l := range elsewhere {
		if !slices.Contains(servers, l.Server) {
			servers = append(servers, l.Server)
		}
		lineages[l.Server] = append(lineages[l.Server], l.Name)
	}
	var parts []string
	for _, at := range servers {
		parts = append(parts, fmt.Sprintf("%s at %s (for those, %s)", strings.Join(lineages[at], ", "), certbot.ServerName(at), certbot.Choose(at)))
	}
	return fmt.Sprintf("ACME_SERVER is %s, so certbot's lineages at other servers are left out: %s", certbot.ServerName(server), strings.Join(parts, "; "))
}

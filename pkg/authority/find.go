package authority

import (
	"context"
	"strings"

	"golang.org/x/net/publicsuffix"

	"github.com/certhook/certhook/pkg/dnsname"
)

// Find returns the deepest zone that contains name, which need not exist yet. A question about a name that
// does not exist makes a recursive resolver deny it and all names below (RFC 8020) for up to an hour, also
// once they do exist. So recursive resolvers are asked about the registered domain and what is above it,
// and from there down only authoritative servers. Errors are of kind Unknown.
func (c *Client) Find(ctx context.Context, name string) (Zone, error) {
	zone, err := c.Zone(ctx, Registered(name))
	if err != nil {
		return Zone{}, err
	}
	return c.Within(ctx, zone, name)
}

// Enclosing is [Client.Find] for who knows some zones already: the search goes down from the deepest of
// them that contains name, and no resolver is asked where there is one.
func (c *Client) Enclosing(ctx context.Context, name string, known ...Zone) (Zone, error) {
	var from Zone
	for _, z := range known {
		if z.Name != "" && dnsname.Within(name, z.Name) && len(z.Name) > len(from.Name) {
			from = z
		}
	}
	if from.Name == "" {
		return c.Find(ctx, name)
	}
	return c.Within(ctx, from, name)
}

// Registered returns the name above or equal to name that was registered with a registry: a public suffix
// and one label more. For a public suffix it is name itself. Suffixes under which their owner lets others
// have names, such as github.io, are no registry's and count as registered names; so that they, as all
// others, need not be known here.
func Registered(name string) string {
	suffix, icann := publicsuffix.PublicSuffix(name)
	for !icann && strings.Contains(suffix, ".") {
		suffix, icann = publicsuffix.PublicSuffix(dnsname.Parent(suffix))
	}
	rel, ok := dnsname.Relative(name, suffix)
	if !ok || rel == "@" {
		return name
	}
	return rel[strings.LastIndexByte(rel, '.')+1:] + "." + suffix
}

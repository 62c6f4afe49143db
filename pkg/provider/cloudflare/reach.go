package cloudflare

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/provider"
)

var _ provider.Surveyor = (*Provider)(nil)

const (
	zonesPerPage = 50 // the most that the API gives
	maxPages     = 200
)

// listing is what the API shows of the zones.
type listing struct {
	zones    map[string]provider.Access // by canonical name; of several accounts' zones of one name the most
	accounts map[string]bool            // ids
	absent   []string
	partial  string
}

// shownZone is a zone as far as this file looks at it.
type shownZone struct {
	ID, Name    string
	Account     struct{ ID string }
	Permissions []string
}

// Reach lists the zones that the token sees, all pages of them. A token that may not list zones is asked about
// the zones that hold an alias zone or a served domain, by name, which Zone:Read for a single zone is enough
// for. Nothing can be learned about a zone for which the token has DNS:Edit without Zone:Read.
func (p *Provider) Reach(ctx context.Context, aliases, domains []string) (provider.Reach, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	seen, life, err := p.survey(ctx, slices.Concat(aliases, domains))
	if err != nil {
		return provider.Reach{}, fault.Errorf(fault.Provider, "ask Cloudflare what the API token reaches: %w", err).
			WithHint("%s", reachHint(err))
	}
	r := provider.Reach{Absent: seen.absent, Partial: seen.partial, Advice: advice(aliases), Expires: life.ExpiresOn}
	for name, access := range seen.zones {
		r.Zones = append(r.Zones, provider.Reached{Name: name, Access: access})
	}
	slices.SortFunc(r.Zones, func(a, b provider.Reached) int { return strings.Compare(a.Name, b.Name) })
	return r, nil
}

func (p *Provider) survey(ctx context.Context, names []string) (*listing, lifetime, error) {
	seen, err := p.listZones(ctx)
	refused := refusal(err)
	if err != nil && refused == nil {
		return nil, lifetime{}, err
	}
	life, lifeErr := p.api.lifetime(ctx, seen)
	switch {
	case refused == nil: // lifeErr: an account's own token, maybe; the list is what counts
		return seen, life, nil
	case lifeErr == nil && life.Status != active:
		return nil, life, &ended{life}
	case lifeErr != nil && refused.has(codeBadToken, codeAuth): // as of a token that nobody issued
		return nil, life, fmt.Errorf("%w; that the token is valid cannot be learned either: %w", err, lifeErr)
	}
	seen, err = p.askZones(ctx, names)
	return seen, life, err
}

// refusal returns err if the API itself refuses what was asked, in its own words. What stands between may do so
// too, which tells nothing about the token.
func refusal(err error) *failure {
	f, ok := errors.AsType[*failure](err)
	if ok && (f.status == http.StatusForbidden || f.status == http.StatusUnauthorized) && len(f.errors) > 0 {
		return f
	}
	return nil
}

// listZones asks for all pages. They are in the order of names, so that a zone which is made meanwhile pushes
// none across the edge of a page unseen.
func (p *Provider) listZones(ctx context.Context) (*listing, error) {
	seen := newListing()
	ids := map[string]bool{}
	for page := 1; ; page++ {
		query := url.Values{
			"per_page": {strconv.Itoa(zonesPerPage)}, "page": {strconv.Itoa(page)},
			"order": {"name"}, "direction": {"asc"},
		}
		asked := request{method: http.MethodGet, path: "/zones", query: query.Encode()}
		answer, err := p.api.do(ctx, asked)
		if err != nil {
			return nil, err
		}
		zones, err := seen.take(answer)
		if err == nil && answer.Info == nil {
			err = errors.New("the answer does not say how many zones there are")
		}
		if err != nil {
			return nil, unusable(asked, err)
		}
		for _, z := range zones {
			ids[z.ID] = true
		}
		switch {
		case page < answer.Info.TotalPages && page < maxPages && len(zones) > 0:
			continue
		case len(ids) < answer.Info.TotalCount:
			seen.partial = fmt.Sprintf("Cloudflare says that the token sees %d zones, but lists %d", answer.Info.TotalCount, len(ids))
		case len(ids) == 0:
			seen.partial = "Cloudflare lists no zone at all for the token, which may as well be for want of the permission Zone:Read"
		}
		return seen, nil
	}
}

// askZones asks for each zone that may hold one of the names, by its name. Several accounts may have it.
func (p *Provider) askZones(ctx context.Context, names []string) (*listing, error) {
	seen := newListing()
	seen.partial = "Cloudflare does not let the token list zones, and shows it only those that are asked for by name"
	for _, name := range provider.ZoneNames(names) {
		asked := request{method: http.MethodGet, path: "/zones", query: url.Values{"name": {name}}.Encode()}
		answer, err := p.api.do(ctx, asked)
		if refusal(err) != nil {
			seen.absent = nil
			seen.partial = "Cloudflare shows the token no zones, for it lacks the permission Zone:Read"
			return seen, nil
		}
		if err != nil {
			return nil, err
		}
		zones, err := seen.take(answer)
		for _, z := range zones {
			if err == nil && !sameName(z.Name, name) {
				err = fmt.Errorf("the answer is about another zone, %q", z.Name)
			}
		}
		if err != nil {
			return nil, unusable(asked, err)
		}
		if len(zones) == 0 && !strings.Contains(name, "xn--") { // which the API may know under its Unicode name only
			seen.absent = append(seen.absent, name)
		}
	}
	return seen, nil
}

func newListing() *listing {
	return &listing{zones: map[string]provider.Access{}, accounts: map[string]bool{}}
}

// take adds the zones of an answer and returns them.
func (l *listing) take(answer *envelope) ([]shownZone, error) {
	var zones []shownZone
	if err := json.Unmarshal(answer.Result, &zones); err != nil {
		return nil, fmt.Errorf("the answer is not a list of zones: %w", err)
	}
	for _, z := range zones {
		name, err := dnsname.Parse(z.Name)
		if err != nil || !validID(z.ID) {
			return nil, fmt.Errorf("the answer lists a zone %q with id %q", z.Name, z.ID)
		}
		if have, ok := l.zones[name]; !ok || have == provider.AccessRead {
			l.zones[name] = z.access()
		}
		if validID(z.Account.ID) {
			l.accounts[z.Account.ID] = true
		}
	}
	return zones, nil
}

// access reads the permissions, such as "#dns_records:edit". They are the token's, or, as the documentation of
// late has it, those of the account's member; as no token may do more than its owner, a list of nothing but
// reading is proof in either case. An empty one says nothing.
func (z shownZone) access() provider.Access {
	changes := func(permission string) bool {
		return !strings.HasSuffix(permission, ":read") && !strings.HasSuffix(permission, "_read")
	}
	switch {
	case len(z.Permissions) == 0:
		return provider.AccessUnknown
	case slices.ContainsFunc(z.Permissions, changes):
		return provider.AccessEdit
	}
	return provider.AccessRead
}

// advice says where a token's reach is to be seen, and what it should be.
func advice(aliases []string) string {
	zones := "the domains' own zones"
	switch len(aliases) {
	case 0:
	case 1:
		zones = "the zone " + aliases[0]
	default:
		zones = "the zones " + strings.Join(aliases, ", ")
	}
	return fmt.Sprintf("https://dash.cloudflare.com/profile/api-tokens (or, for an account's own token, Manage Account > API Tokens) shows what the token may do: "+
		"it should have Zone:Read and DNS:Edit for %s and no others", zones)
}

// reachHint says what to do where nothing can be learned.
func reachHint(err error) string {
	if _, ok := errors.AsType[*ended](err); ok {
		return "make a new token and put it into CLOUDFLARE_API_TOKEN"
	}
	f, ok := errors.AsType[*failure](err)
	switch {
	case !ok:
		return ""
	case refusal(f) != nil:
		return "the token in CLOUDFLARE_API_TOKEN is wrong or expired, or is an account's own without Zone:Read, of which nothing can be learned here"
	}
	return commonHint(f)
}

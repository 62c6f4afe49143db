// Package cloudflare writes challenge records through Cloudflare's v4 API.
//
// The requests are those of libdns/cloudflare, which knows the API's formats but takes some failures for
// success, looks zones up by itself and remembers them for ever. So it never talks to the API: every Add
// and Remove hands it a [call], which lets through nothing but requests about one zone and one value, keeps
// what the API really said, and decides from that.
//
// Adding and removing one value takes four requests: the zone, the record, the look-up before the removal,
// the removal. Where the zone is known beforehand it takes three.
package cloudflare

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/provider"
)

// Config says how to reach the API. Only Token is needed.
type Config struct {
	Token  string            // an API token, not a global key
	Zones  map[string]string // zone name to zone id, for zones that need no look-up
	APIURL string            // "" = https://api.cloudflare.com/client/v4; a URL without a path gets /client/v4

	RetryWait time.Duration // pause before the first repetition, doubled for each further one; 0 = 500 ms
	Log       *slog.Logger  // one debug line a request; nil = none
}

// Provider implements [provider.Provider].
type Provider struct {
	api *client

	mu    sync.Mutex
	zones map[string]provider.Zone // by name: given, or found by Zone
	turns map[string]chan struct{} // by name: held during a look-up, so that no zone is asked for twice
}

var _ provider.Provider = (*Provider)(nil)

// callTime bounds a call whose context has no deadline.
const callTime = time.Minute

// New checks the settings; it asks nothing. Errors are of kind fault.Usage.
func New(cfg Config) (*Provider, error) {
	if err := checkToken(cfg.Token); err != nil {
		return nil, err
	}
	base, err := parseBase(cfg.APIURL)
	if err != nil {
		return nil, err
	}
	p := &Provider{
		api:   newClient(base, cfg.Token, cfg.RetryWait, cfg.Log),
		zones: make(map[string]provider.Zone),
		turns: make(map[string]chan struct{}),
	}
	for name, id := range cfg.Zones {
		canonical, err := dnsname.Parse(name)
		if err != nil {
			return nil, fault.Errorf(fault.Usage, "the zone of Cloudflare zone id %q: %w", id, err).
				WithHint("set CLOUDFLARE_ZONE_ID=<zone>=<id>")
		}
		if !validID(id) {
			return nil, fault.Errorf(fault.Usage, "%q is not a Cloudflare zone id", id).
				WithHint("the zone's overview page shows it: 32 hexadecimal digits; set CLOUDFLARE_ZONE_ID=%s=<id>", canonical)
		}
		p.zones[canonical] = provider.Zone{Name: canonical, ID: id}
	}
	return p, nil
}

// checkToken refuses what could not be sent as a header. Its errors do not show the token.
func checkToken(token string) error {
	problem := ""
	switch {
	case token == "":
		problem = "is empty"
	case strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }):
		problem = "holds white space, a line break or a character outside ASCII"
	default:
		return nil
	}
	return fault.Errorf(fault.Usage, "the Cloudflare API token %s", problem).
		WithHint("set CLOUDFLARE_API_TOKEN to the token alone, without quotes and without the word Bearer")
}

// idForm is generous, as the API promises no more than a short string, but lets nothing through that could
// change the path of a request.
var idForm = regexp.MustCompile(`^[0-9A-Za-z_-]{1,64}$`)

func validID(id string) bool { return idForm.MatchString(id) }

// Zone asks for the zone of exactly that name unless it is known.
func (p *Provider) Zone(ctx context.Context, name string) (provider.Zone, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	zone, err := p.zone(ctx, name)
	if err == nil || errors.Is(err, provider.ErrNoZone) {
		return zone, err
	}
	return provider.Zone{}, fault.Errorf(fault.Provider, "look up zone %q at Cloudflare: %w", name, err).
		WithHint("%s", zoneHint(err, name))
}

func (p *Provider) zone(ctx context.Context, name string) (provider.Zone, error) {
	if zone, ok := p.known(name); ok {
		return zone, nil
	}
	turn := p.turn(name)
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-ctx.Done():
		return provider.Zone{}, ctx.Err()
	}
	if zone, ok := p.known(name); ok {
		return zone, nil
	}
	zone, err := p.lookUp(ctx, name)
	if err != nil {
		return provider.Zone{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.zones[name] = zone
	return zone, nil
}

func (p *Provider) known(name string) (provider.Zone, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	zone, ok := p.zones[name]
	return zone, ok
}

func (p *Provider) turn(name string) chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.turns[name] == nil {
		p.turns[name] = make(chan struct{}, 1)
	}
	return p.turns[name]
}

// lookUp trusts an answer only if it is about the very zone asked for: libdns would write into whichever
// zone came back.
func (p *Provider) lookUp(ctx context.Context, name string) (provider.Zone, error) {
	asked := request{method: http.MethodGet, path: "/zones", query: url.Values{"name": {name}}.Encode()}
	answer, err := p.api.do(ctx, asked)
	if err != nil {
		return provider.Zone{}, err
	}
	var zones []struct{ ID, Name, Status string }
	if err := json.Unmarshal(answer.Result, &zones); err != nil {
		return provider.Zone{}, unusable(asked, fmt.Errorf("the answer is not a list of zones: %w", err))
	}
	if len(zones) == 0 {
		return provider.Zone{}, fmt.Errorf("zone %q: %w", name, provider.ErrNoZone)
	}
	if len(zones) > 1 {
		return provider.Zone{}, &ambiguous{len(zones)}
	}
	zone := zones[0]
	switch {
	case !sameName(zone.Name, name):
		return provider.Zone{}, unusable(asked, fmt.Errorf("the answer is about another zone, %q", zone.Name))
	case !validID(zone.ID):
		return provider.Zone{}, unusable(asked, fmt.Errorf("the answer has an unusable zone id, %q", zone.ID))
	case zone.Status != "active" && zone.Status != "pending":
		return provider.Zone{}, fmt.Errorf("the zone's status is %q, neither active nor pending: Cloudflare does not serve it", zone.Status)
	}
	return provider.Zone{Name: name, ID: zone.ID}, nil
}

// Add creates the record; see [call.add].
func (p *Provider) Add(ctx context.Context, zone provider.Zone, rec provider.TXT) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	c, err := p.begin(zone, rec)
	if err == nil {
		err = c.add(ctx, rec.TTL)
	}
	if err != nil {
		return fault.Errorf(fault.Provider, "add the TXT at %q to zone %q at Cloudflare: %w", rec.Name, zone.Name, err).
			WithHint("%s", recordHint(err, zone.Name))
	}
	return nil
}

// Remove deletes every record that holds exactly this value; see [call.remove].
func (p *Provider) Remove(ctx context.Context, zone provider.Zone, rec provider.TXT) (removed bool, err error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	c, err := p.begin(zone, rec)
	if err == nil {
		removed, err = c.remove(ctx)
	}
	if err != nil {
		return false, fault.Errorf(fault.Provider, "remove the TXT at %q from zone %q at Cloudflare: %w", rec.Name, zone.Name, err).
			WithHint("%s", recordHint(err, zone.Name))
	}
	return removed, nil
}

// begin checks the arguments of an Add or Remove. A zone without id must be a known one: nothing here ever
// looks a zone up on the side.
func (p *Provider) begin(zone provider.Zone, rec provider.TXT) (*call, error) {
	if zone.ID == "" {
		known, ok := p.known(zone.Name)
		if !ok {
			return nil, errors.New("the zone was not looked up before")
		}
		zone = known
	}
	if !validID(zone.ID) {
		return nil, fmt.Errorf("%q is not a zone id", zone.ID)
	}
	if err := rec.Check(zone); err != nil {
		return nil, err
	}
	relative, _ := dnsname.Relative(rec.Name, zone.Name)
	return &call{api: p.api, zone: zone, name: rec.Name, relative: relative, value: rec.Value}, nil
}

func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, callTime)
}

package authority

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/pkg/resolver"
)

// Said is what the servers of one zone say to a question.
type Said struct {
	Zone    Zone
	Answers []Answer // of those that do not refer to a zone below
	Refers  bool     // others do
	Err     error    // the servers could not be found; there are no answers then
}

// Dead returns nil if a server of the zone tells anything, and else why none does.
func (s Said) Dead() error {
	errs := []error{s.Err}
	for _, a := range s.Answers {
		if a.Err == nil {
			return nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", a.Server, a.Err))
	}
	if s.Refers {
		return nil
	}
	return errors.Join(errs...)
}

// QueryEveryone puts one question to every server that a recursive resolver may ask which knows of zone: its own, and
// those of every zone below it in which name lies, as far as any server says that there is one. They need not agree
// about that either. The first is what the zone's own servers say.
func (c *Client) QueryEveryone(ctx context.Context, zone Zone, name string, qtype uint16) []Said {
	ctx = resolver.Remember(ctx) // those that serve two of the zones are asked once
	e := everyone{c: c, name: name, qtype: qtype, zones: map[string]bool{zone.Name: true}}
	e.ask(ctx, zone)
	return e.said
}

type everyone struct {
	c     *Client
	name  string
	qtype uint16
	zones map[string]bool // that have been asked
	said  []Said
}

func (e *everyone) ask(ctx context.Context, zone Zone) {
	var deepest Zone // on the way that the first server to answer knows of
	var answers []Answer
	var wg sync.WaitGroup
	if e.name != zone.Name {
		wg.Go(func() { deepest, _ = e.c.Within(ctx, zone, e.name) })
	}
	wg.Go(func() { answers = e.c.QueryAll(ctx, zone, e.name, e.qtype) })
	wg.Wait()
	this := Said{Zone: zone}
	var below []Said
	for i, a := range answers {
		r, referral := errors.AsType[*Referral](a.Err)
		if !referral || !dnsname.Below(r.Zone, zone.Name) {
			this.Answers = append(this.Answers, a)
			continue
		}
		this.Refers = true
		if e.zones[r.Zone] {
			continue
		}
		e.zones[r.Zone] = true
		next := Said{}
		next.Zone, next.Err = e.c.Step(ctx, Zone{Name: zone.Name, Servers: zone.Servers[i : i+1]}, e.name)
		if next.Err != nil {
			next.Zone = Zone{Name: r.Zone, Servers: []Server{{Name: a.Server}}}
		}
		below = append(below, next)
	}
	if deepest.Name != "" && !e.zones[deepest.Name] {
		e.zones[deepest.Name] = true
		below = append(below, Said{Zone: deepest})
	}
	e.said = append(e.said, this)
	for _, b := range below {
		if b.Err != nil {
			e.said = append(e.said, b)
		} else {
			e.ask(ctx, b.Zone)
		}
	}
}

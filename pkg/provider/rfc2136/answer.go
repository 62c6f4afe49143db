package rfc2136

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/dnsname"
)

// hidden means that the server answers for a name from elsewhere than the zone's own records there, so that a
// record at that place is seen by nobody.
type hidden struct {
	by   string // what is in the way
	what hiding
}

type hiding int

const (
	byDelegation hiding = iota
	byZone
	byCNAME
	byDNAME
)

func (h *hidden) Error() string {
	switch h.what {
	case byCNAME:
		return fmt.Sprintf("the name is a CNAME of %s, and nothing can stand beside a CNAME", h.by)
	case byDNAME:
		return fmt.Sprintf("a DNAME at %s hides the names below it", h.by)
	case byZone:
		return fmt.Sprintf("the name belongs to another zone of this server, %s", h.by)
	}
	return fmt.Sprintf("%s is delegated to other servers, which hides what is below it", h.by)
}

// look reports whether the server shows the value. The error is *hidden if it answers for the name from
// elsewhere than the zone.
func (c *change) look(ctx context.Context) (bool, error) { return c.examine(ctx, dns.TypeTXT) }

// examine is look, with a question for another type if only the place matters.
func (c *change) examine(ctx context.Context, qtype uint16) (bool, error) {
	name := c.rec.Name
	r, err := c.server.ask(ctx, name, qtype)
	if err != nil {
		return false, err
	}
	asked := question(name, qtype)
	if !r.Authoritative {
		if cut := referral(r, name); cut != nil {
			return false, &hidden{plain(cut.Hdr.Name), byDelegation}
		}
		return false, c.server.fail(asked, notAuthoritative, nil)
	}
	if len(r.Answer) > 0 {
		return c.found(r.Answer)
	}
	for _, rr := range r.Ns {
		soa, ok := rr.(*dns.SOA)
		switch {
		case !ok:
		case owned(soa, c.zone):
			return false, nil
		case dnsname.Below(plain(soa.Hdr.Name), c.zone):
			return false, &hidden{plain(soa.Hdr.Name), byZone}
		}
	}
	// RFC 2308, section 2: the SOA says which zone does not have it.
	return false, c.server.fail(asked, unusable, errors.New("it does not have the value and does not name the zone"))
}

// found looks through an answer that is not empty.
func (c *change) found(answer []dns.RR) (bool, error) {
	there, alias := false, (*hidden)(nil)
	for _, rr := range answer {
		switch rr := rr.(type) {
		case *dns.DNAME:
			return false, &hidden{plain(rr.Hdr.Name), byDNAME}
		case *dns.CNAME:
			if owned(rr, c.rec.Name) {
				alias = &hidden{plain(rr.Target), byCNAME}
			}
		case *dns.SOA:
			if !owned(rr, c.zone) {
				return false, &hidden{plain(rr.Hdr.Name), byZone}
			}
		case *dns.TXT:
			there = there || owned(rr, c.rec.Name) && len(rr.Txt) == 1 && rr.Txt[0] == c.rec.Value
		}
	}
	if alias != nil {
		return false, alias
	}
	return there, nil
}

// referral returns a record of the delegation that r consists of, or nil. Only one below the root helps: upward
// and to the root refer servers that have nothing to say.
func referral(r *dns.Msg, name string) *dns.NS {
	if r.Rcode != dns.RcodeSuccess || len(r.Answer) > 0 {
		return nil
	}
	for _, rr := range r.Ns {
		if ns, ok := rr.(*dns.NS); ok && ns.Hdr.Name != "." && dnsname.Within(name, plain(ns.Hdr.Name)) {
			return ns
		}
	}
	return nil
}

func owned(rr dns.RR, name string) bool { return plain(rr.Header().Name) == name }

// plain brings a name from a message into the canonical form of pkg/dnsname, as far as it has one.
func plain(name string) string { return strings.TrimSuffix(dns.CanonicalName(name), ".") }

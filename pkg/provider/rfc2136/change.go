package rfc2136

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/pkg/provider"
)

// change is one Add or Remove.
type change struct {
	server *server
	zone   string // canonical, a zone of the server
	rec    provider.TXT
}

// undoTime is what taking back a record costs at most, once our own time may be over.
const undoTime = 10 * time.Second

// add inserts the record. It is done only when the server shows it, whatever came back from the update.
func (c *change) add(ctx context.Context) error {
	rcode, err := c.send(ctx, c.insertion())
	if err != nil && !doubt(err) {
		return err
	}
	there, lookErr := c.look(ctx)
	switch {
	case err == nil && rcode == dns.RcodeYXRrset:
		return c.occupied(ctx, lookErr)
	case lookErr == nil && there:
		return nil
	case err != nil && lookErr != nil:
		return fmt.Errorf("%w; whether it is there all the same cannot be told: %w", err, lookErr)
	case err != nil:
		return fmt.Errorf("%w; a look-up shows that the value is not there", err)
	}
	if _, concealed := errors.AsType[*hidden](lookErr); lookErr != nil && !concealed {
		return fmt.Errorf("the server took the update, but whether it shows the value cannot be told: %w", lookErr)
	}
	return c.takeBack(ctx, lookErr)
}

// insertion is the update that adds the record unless something would keep it out of sight: a CNAME beside
// it, a delegation at or above it, a DNAME above it.
func (c *change) insertion() *dns.Msg {
	m := new(dns.Msg).SetUpdate(dns.Fqdn(c.zone))
	var absent []dns.RR
	without := func(name string, rrtype uint16) {
		absent = append(absent, &dns.ANY{Hdr: dns.RR_Header{Name: dns.Fqdn(name), Rrtype: rrtype}})
	}
	without(c.rec.Name, dns.TypeCNAME)
	for name := c.rec.Name; name != c.zone; name = dnsname.Parent(name) {
		without(name, dns.TypeNS)
		without(dnsname.Parent(name), dns.TypeDNAME)
	}
	m.RRsetNotUsed(absent)
	m.Insert([]dns.RR{c.txt()})
	return m
}

// removal is the update that deletes exactly this value (RFC 2136, section 2.5.4).
func (c *change) removal() *dns.Msg {
	m := new(dns.Msg).SetUpdate(dns.Fqdn(c.zone))
	m.Remove([]dns.RR{c.txt()})
	return m
}

func (c *change) txt() *dns.TXT {
	return &dns.TXT{
		Hdr: dns.RR_Header{Name: dns.Fqdn(c.rec.Name), Rrtype: dns.TypeTXT, Ttl: uint32(c.rec.TTL / time.Second)},
		Txt: []string{c.rec.Value},
	}
}

// send makes the update and returns what came of it: NOERROR or, where a prerequisite was not met, YXRRSET
// or NXRRSET.
func (c *change) send(ctx context.Context, m *dns.Msg) (rcode int, err error) {
	r, err := c.server.exchange(ctx, "the update", m, dns.RcodeSuccess, dns.RcodeYXRrset, dns.RcodeNXRrset)
	if err != nil {
		if f, ok := errors.AsType[*failure](err); ok {
			f.update, f.zone, f.name = true, c.zone, c.rec.Name
		}
		return 0, err
	}
	return r.Rcode, nil
}

// errOccupied is an update whose prerequisites were not met.
var errOccupied = errors.New("a CNAME at the name, or a delegation or DNAME above it, leaves no place for the record (YXRRSET)")

// occupied says which of them it is. seen is what the look-up of the value came to; without an error the values
// at the name may be another zone's.
func (c *change) occupied(ctx context.Context, seen error) error {
	if seen == nil {
		_, seen = c.examine(ctx, dns.TypeSOA) // says which zone it is
	}
	if _, concealed := errors.AsType[*hidden](seen); concealed {
		return seen
	}
	if seen != nil {
		return fmt.Errorf("%w; which one cannot be told: %w", errOccupied, seen)
	}
	return errOccupied
}

// takeBack removes a record that the server took but does not show. why is nil if the name looks like any
// other one without this value.
func (c *change) takeBack(ctx context.Context, why error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	err := errors.New("the server took the update but does not show the value")
	if why != nil {
		err = fmt.Errorf("%w: %w", err, why)
	}
	if _, undoErr := c.send(ctx, c.removal()); undoErr != nil {
		return fmt.Errorf("%w; taking it back failed: %w", err, undoErr)
	}
	return fmt.Errorf("%w; it was taken back", err)
}

// remove deletes the value if the server shows it, and is done when it does not any more.
func (c *change) remove(ctx context.Context) (removed bool, err error) {
	there, err := c.look(ctx)
	if _, concealed := errors.AsType[*hidden](err); concealed {
		return c.removeHidden(ctx)
	}
	if err != nil || !there {
		return false, err
	}
	_, err = c.send(ctx, c.removal())
	if err != nil && !doubt(err) {
		return false, err
	}
	still, lookErr := c.look(ctx)
	if _, concealed := errors.AsType[*hidden](lookErr); concealed { // a wildcard takes over, say
		_, err = c.removeHidden(ctx)
		return err == nil, err
	}
	switch {
	case err != nil && lookErr != nil:
		return false, fmt.Errorf("%w; whether it is gone all the same cannot be told: %w", err, lookErr)
	case lookErr != nil:
		return false, fmt.Errorf("the server took the update, but whether the value is gone cannot be told: %w", lookErr)
	case still && err != nil:
		return false, fmt.Errorf("%w; a look-up shows that the value is still there", err)
	case still:
		return false, errors.New("the server took the update but still shows the value")
	}
	return true, nil
}

// removeHidden deletes the value where no question can see it, since the name has been delegated, say. Whether
// there was any TXT a prerequisite tells; one about a single value there is not (RFC 2136, section 2.4.2).
func (c *change) removeHidden(ctx context.Context) (removed bool, err error) {
	m := c.removal()
	m.RRsetUsed([]dns.RR{c.txt()})
	rcode, err := c.send(ctx, m)
	return err == nil && rcode == dns.RcodeSuccess, err
}

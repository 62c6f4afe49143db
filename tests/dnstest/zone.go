package dnstest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/miekg/dns"
)

// Errors of AddTXT and RemoveTXT that do not fail the test: a client may well be tried with either.
var (
	ErrExists   = errors.New("the record exists already")
	ErrNotFound = errors.New("there is no such record")
)

// Zone is a zone of a [World].
type Zone struct {
	Name string // lower case, no trailing dot; "" is the root

	world   *World
	fqdn    string
	servers []*Server
	minimum uint32
	changes []change
	records map[string][]*record // by canonical owner
}

// record is a resource record and the time in which it stands.
type record struct {
	rr      dns.RR
	added   change
	removed *change // nil while it stands
}

// AddZone makes a zone with SOA and NS records and puts the delegation, with glue, into the zone above
// if there is one, and those of existing zones below it into this one.
func (w *World) AddZone(name string, servers ...*Server) *Zone {
	w.tb.Helper()
	z := &Zone{
		Name: plain(name), world: w, fqdn: canonical(name),
		servers: slices.Clone(servers), minimum: 3600, records: map[string][]*record{},
	}
	if _, ok := dns.IsDomainName(z.fqdn); !ok {
		w.tb.Fatalf("dnstest: %q is not a zone name", name)
	}
	if len(servers) == 0 {
		w.tb.Fatalf("dnstest: zone %q needs a server", name)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.zones[z.fqdn] != nil {
		w.tb.Fatalf("dnstest: there is a zone %q already", name)
	}
	above := w.deepest(z.fqdn, nil)
	w.zones[z.fqdn] = z
	z.delegate(z)
	if above != nil {
		above.delegate(z)
	}
	for _, below := range w.zones {
		if below != z && below.fqdn != "." && w.deepest(parent(below.fqdn), nil) == z {
			z.delegate(below)
		}
	}
	for _, s := range w.servers {
		w.placeAddress(s)
	}
	return z
}

// delegate adds child's NS records to z, and the addresses of those hosts that lie in z: glue where
// they are below a cut.
func (z *Zone) delegate(child *Zone) {
	for _, s := range child.servers {
		z.ensure(&dns.NS{Hdr: header(child.fqdn, dns.TypeNS, 3600), Ns: s.fqdn})
		if dns.IsSubDomain(z.fqdn, s.fqdn) {
			z.ensure(s.addressRecord())
		}
	}
}

// Undelegate takes the NS records of a zone out of the zone above it: nobody finds it from the root any
// more, though its servers still answer.
func (w *World) Undelegate(name string) {
	w.tb.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	child := canonical(name)
	above := w.deepest(parent(child), nil)
	if above == nil || child == "." {
		w.tb.Fatalf("dnstest: no zone above %q", name)
	}
	for _, rec := range above.standing(child, dns.TypeNS) {
		above.drop(rec)
	}
}

// SetMinimum sets the SOA's last field: how many seconds a resolver may remember that something is not
// there (RFC 2308). It is 3600 at first.
func (z *Zone) SetMinimum(seconds uint32) {
	z.world.mu.Lock()
	defer z.world.mu.Unlock()
	z.minimum = seconds
}

// Add adds a record in zone-file syntax, every name from the root: "www.example.com 60 A 192.0.2.1".
func (w *World) Add(zone, rr string) {
	w.tb.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	z, parsed := w.parse(zone, rr)
	if z == nil {
		return
	}
	if err := z.add(parsed); err != nil {
		_ = w.misuse("add %q to %q: %w", rr, zone, err)
	}
}

// Remove takes away the record with that owner, type and data, whatever its TTL.
func (w *World) Remove(zone, rr string) {
	w.tb.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	z, parsed := w.parse(zone, rr)
	if z == nil {
		return
	}
	if err := z.remove(parsed); err != nil {
		_ = w.misuse("remove %q from %q: %w", rr, zone, err)
	}
}

func (w *World) parse(zone, text string) (*Zone, dns.RR) {
	w.tb.Helper()
	z := w.zones[canonical(zone)]
	if z == nil {
		_ = w.misuse("there is no zone %q", zone)
		return nil, nil
	}
	rr, err := dns.NewRR(text)
	switch {
	case err != nil:
		_ = w.misuse("malformed record %q: %w", text, err)
		return nil, nil
	case rr == nil:
		_ = w.misuse("no record in %q", text)
		return nil, nil
	}
	rr.Header().Name = canonical(rr.Header().Name)
	return z, rr
}

// AddTXT adds a TXT of one value beside whatever else is at the name, as a provider's API would. A value
// of more than 255 octets is stored in several character-strings. The error is [ErrExists] for a
// duplicate; every other error fails the test as well.
func (w *World) AddTXT(zone, name, value string, ttl uint32) error {
	w.tb.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	z := w.zones[canonical(zone)]
	switch {
	case z == nil:
		return w.misuse("TXT at %q: there is no zone %q", name, zone)
	case value == "":
		return w.misuse("TXT at %q: empty value", name)
	}
	err := z.add(newTXT(name, value, ttl))
	if err != nil && !errors.Is(err, ErrExists) {
		return w.misuse("TXT at %q in %q: %w", name, zone, err)
	}
	return err
}

// RemoveTXT takes away exactly that value. The error is [ErrNotFound] if it is not there; every other
// error fails the test as well.
func (w *World) RemoveTXT(zone, name, value string) error {
	w.tb.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	z := w.zones[canonical(zone)]
	if z == nil {
		return w.misuse("TXT at %q: there is no zone %q", name, zone)
	}
	return z.remove(newTXT(name, value, 0))
}

// TXT returns the values at a name, sorted, as they stand now, whatever the servers' lag.
func (w *World) TXT(zone, name string) []string {
	w.tb.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	z := w.zones[canonical(zone)]
	if z == nil {
		_ = w.misuse("there is no zone %q", zone)
		return nil
	}
	var values []string
	for _, rec := range z.standing(canonical(name), dns.TypeTXT) {
		values = append(values, joined(rec.rr.(*dns.TXT)))
	}
	slices.Sort(values)
	return values
}

// AllTXT returns every TXT of a zone by owner name, as it stands now.
func (w *World) AllTXT(zone string) map[string][]string {
	w.tb.Helper()
	w.mu.Lock()
	z := w.zones[canonical(zone)]
	var owners []string
	if z != nil {
		for owner := range z.records {
			owners = append(owners, owner)
		}
	}
	w.mu.Unlock()
	if z == nil {
		_ = w.misuse("there is no zone %q", zone)
	}
	all := map[string][]string{}
	for _, owner := range owners {
		if values := w.TXT(zone, owner); len(values) > 0 {
			all[plain(owner)] = values
		}
	}
	return all
}

// Text returns a zone as it stands now, a record a line, sorted, and after them how often it was changed: it is the same
// text only where nobody has touched the zone.
func (w *World) Text(zone string) string {
	w.tb.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	z := w.zones[canonical(zone)]
	if z == nil {
		_ = w.misuse("there is no zone %q", zone)
		return ""
	}
	var lines []string
	for owner := range z.records {
		for _, rec := range z.standing(owner, dns.TypeANY) {
			lines = append(lines, rec.rr.String())
		}
	}
	slices.Sort(lines)
	return fmt.Sprintf("%s\n; %d changes\n", strings.Join(lines, "\n"), len(z.changes))
}

// add checks a record as a primary server would before it loads it.
func (z *Zone) add(rr dns.RR) error {
	h := rr.Header()
	h.Name = canonical(h.Name)
	if _, ok := dns.IsDomainName(h.Name); !ok {
		return fmt.Errorf("%q is not a name", h.Name)
	}
	if !dns.IsSubDomain(z.fqdn, h.Name) {
		return fmt.Errorf("%q is outside the zone", plain(h.Name))
	}
	for _, rec := range z.standing(h.Name, dns.TypeANY) {
		other := rec.rr.Header().Rrtype
		switch {
		case dns.IsDuplicate(rec.rr, rr):
			return ErrExists
		case h.Rrtype == dns.TypeCNAME, other == dns.TypeCNAME:
			return fmt.Errorf("a CNAME stands alone at %q (RFC 1034, section 3.6.2)", plain(h.Name))
		}
	}
	z.insert(rr)
	return nil
}

// ensure is add for the records that a zone must have; it does nothing if they are there.
func (z *Zone) ensure(rr dns.RR) {
	if err := z.add(rr); err != nil && !errors.Is(err, ErrExists) {
		_ = z.world.misuse("add %q to %q: %w", rr, z.Name, err)
	}
}

func (z *Zone) insert(rr dns.RR) {
	c := z.world.next()
	owner := rr.Header().Name
	z.changes = append(z.changes, c)
	z.records[owner] = append(z.records[owner], &record{rr: rr, added: c})
}

func (z *Zone) remove(rr dns.RR) error {
	for _, rec := range z.standing(rr.Header().Name, rr.Header().Rrtype) {
		if dns.IsDuplicate(rec.rr, rr) {
			z.drop(rec)
			return nil
		}
	}
	return ErrNotFound
}

func (z *Zone) drop(rec *record) {
	c := z.world.next()
	z.changes = append(z.changes, c)
	rec.removed = &c
}

// standing returns the records at a name that have not been removed.
func (z *Zone) standing(owner string, qtype uint16) []*record {
	var found []*record
	for _, rec := range z.records[owner] {
		if rec.removed == nil && (qtype == dns.TypeANY || rec.rr.Header().Rrtype == qtype) {
			found = append(found, rec)
		}
	}
	return found
}

func header(owner string, rrtype uint16, ttl uint32) dns.RR_Header {
	return dns.RR_Header{Name: owner, Rrtype: rrtype, Class: dns.ClassINET, Ttl: ttl}
}

func newTXT(name, value string, ttl uint32) *dns.TXT {
	txt := &dns.TXT{Hdr: header(canonical(name), dns.TypeTXT, ttl)}
	for chunk := range slices.Chunk([]byte(value), 255) {
		txt.Txt = append(txt.Txt, escape(chunk))
	}
	return txt
}

package boulder

import (
	"context"
	"fmt"
	"regexp"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/caa"
	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/pkg/resolver"
	"github.com/certhook/certhook/tests/boulder/oracle"
)

// Verdicts, the same for both sides, so that they compare.
const allowed = "allowed"

func forbiddenAt(owner string) string { return "forbidden at " + owner }
func unknownAt(name string) string    { return "unknown at " + name }

// Boulder names the place in its answers: of the records that forbid, of the question that failed.
var (
	recordAt = regexp.MustCompile(`CAA record for (\S+) prevents issuance$`)
	lookupAt = regexp.MustCompile(`looking up CAA for (\S+?)(:| -|$)`)
)

// boulders is Boulder's verdict.
func boulders(a oracle.Answer) string {
	if a.Allowed {
		return allowed
	}
	if at := recordAt.FindStringSubmatch(a.Detail); a.Type == "caa" && at != nil {
		return forbiddenAt(at[1])
	}
	if at := lookupAt.FindStringSubmatch(a.Detail); a.Type == "dns" && at != nil {
		return unknownAt(at[1])
	}
	return fmt.Sprintf("%+v", a) // equals none of ours
}

// ours is our verdict on a set.
func ours(q caa.Question, s caa.Set) string {
	if caa.Evaluate(q, s).Allowed {
		return allowed
	}
	return forbiddenAt(s.Owner)
}

// climb finds the set that governs a domain, by nothing but what a resolver says; the verdict is "" unless
// that fails. What caa.Lookup makes of the same is compared apart.
func climb(ctx context.Context, z *zone, domain string) (set caa.Set, verdict string, err error) {
	for name := range dnsname.Ancestors(domain) {
		m, err := z.Ask(ctx, name, dns.TypeCAA)
		if err != nil || m.Rcode != dns.RcodeSuccess && (m.Rcode != dns.RcodeNameError || dnsname.Parent(name) == "") || m.Truncated {
			return caa.Set{}, unknownAt(name), nil
		}
		if m, err = wired(m); err != nil {
			return caa.Set{}, "", err
		}
		if end, rrs := resolver.Follow(m, name, dns.TypeCAA); len(rrs) > 0 {
			set := caa.Set{Owner: name}
			if end != name {
				set.Target = end
			}
			for _, rr := range rrs {
				set.Records = append(set.Records, rr.(*dns.CAA))
			}
			return set, "", nil
		}
	}
	return caa.Set{}, "", nil
}

// wired takes a message through its form on the wire, where a value loses its escapes.
func wired(m *dns.Msg) (*dns.Msg, error) {
	wire, err := m.Pack()
	if err != nil {
		return nil, fmt.Errorf("pack an answer: %w", err)
	}
	m = new(dns.Msg)
	if err := m.Unpack(wire); err != nil {
		return nil, fmt.Errorf("unpack an answer: %w", err)
	}
	return m, nil
}

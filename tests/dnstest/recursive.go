package dnstest

import (
	"context"
	"fmt"
	"slices"

	"github.com/miekg/dns"
)

// AskFailure is how [World.Ask] fails for a name.
type AskFailure int

const (
	// NoFailure lets the question through.
	NoFailure AskFailure = iota
	// ServFail answers at once that the resolver failed.
	ServFail
	// Timeout answers nothing until the context ends.
	Timeout
)

// FailAsk makes Ask fail for one name, of any type, also where it is reached through a CNAME.
func (w *World) FailAsk(name string, how AskFailure) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failing[canonical(name)] = how
}

// Ask answers as a recursive resolver without a cache would: from the root, or the topmost zone there is,
// down through the delegations, around dead and lame servers, and along CNAMEs. Nothing goes over the
// network. An answer is NOERROR or NXDOMAIN; what a resolver would answer SERVFAIL is an error. Above all
// zones of a world without a root, everything else does not exist.
func (w *World) Ask(ctx context.Context, name string, qtype uint16) (*dns.Msg, error) {
	req := new(dns.Msg).SetQuestion(canonical(name), qtype)
	entry := w.log(Query{Recursive: true}, req)
	resp := new(dns.Msg).SetReply(req)
	resp.RecursionAvailable = true
	if err := w.resolve(ctx, req.Question[0], resp); err != nil {
		return nil, fmt.Errorf("ask for %s %s: %w", plain(name), dns.TypeToString[qtype], err)
	}
	w.logAnswer(entry, resp)
	return resp, nil
}

func (w *World) resolve(ctx context.Context, q dns.Question, resp *dns.Msg) error {
	for range 16 {
		if err := w.askFailure(ctx, q.Name); err != nil {
			return err
		}
		r, err := w.iterate(q)
		if err != nil {
			return err
		}
		resp.Rcode, resp.Ns = r.Rcode, nil
		if len(r.Answer) == 0 {
			resp.Ns = r.Ns
			return nil
		}
		cname, ok := r.Answer[0].(*dns.CNAME)
		if !ok || q.Qtype == dns.TypeCNAME || q.Qtype == dns.TypeANY {
			resp.Answer = append(resp.Answer, r.Answer...)
			return nil
		}
		// Whatever a server said beyond its first CNAME is not taken on trust.
		resp.Answer = append(resp.Answer, cname)
		q.Name = canonical(cname.Target)
	}
	return fmt.Errorf("SERVFAIL: too many CNAMEs")
}

func (w *World) askFailure(ctx context.Context, name string) error {
	w.mu.Lock()
	how := w.failing[canonical(name)]
	w.mu.Unlock()
	switch how {
	case ServFail:
		return fmt.Errorf("SERVFAIL for %s", plain(name))
	case Timeout:
		<-ctx.Done()
	}
	return ctx.Err()
}

// iterate walks from the top down to an authoritative answer.
func (w *World) iterate(q dns.Question) (*dns.Msg, error) {
	cut, servers := w.top(q.Name)
	if servers == nil {
		return w.aboveAll(q), nil
	}
	for {
		resp := firstGood(servers, q)
		if resp == nil {
			return nil, fmt.Errorf("SERVFAIL: no server of %q answers for %s", plain(cut), plain(q.Name))
		}
		if !referral(resp) {
			return resp, nil
		}
		next := canonical(resp.Ns[0].Header().Name)
		if next == cut || !dns.IsSubDomain(cut, next) {
			return nil, fmt.Errorf("SERVFAIL: %q refers to %q", plain(cut), plain(next))
		}
		cut, servers = next, w.hosts(resp.Ns)
	}
}

// firstGood asks servers in turn; lame, failing and silent ones are passed over.
func firstGood(servers []*Server, q dns.Question) *dns.Msg {
	for _, s := range servers {
		req := new(dns.Msg).SetQuestion(q.Name, q.Qtype)
		resp := s.reply(req, "tcp")
		if resp == nil {
			resp = s.reply(req, "udp")
		}
		if resp == nil || resp.Rcode != dns.RcodeSuccess && resp.Rcode != dns.RcodeNameError {
			continue
		}
		if resp.Authoritative || referral(resp) {
			return resp
		}
	}
	return nil
}

func referral(m *dns.Msg) bool {
	return !m.Authoritative && len(m.Answer) == 0 && len(m.Ns) > 0 && m.Ns[0].Header().Rrtype == dns.TypeNS
}

// top returns where a walk to a name starts.
func (w *World) top(name string) (string, []*Server) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var top *Zone
	for _, z := range w.zones {
		if dns.IsSubDomain(z.fqdn, name) && (top == nil || dns.IsSubDomain(z.fqdn, top.fqdn)) {
			top = z
		}
	}
	if top == nil {
		return "", nil
	}
	return top.fqdn, slices.Clone(top.servers)
}

// hosts returns the servers that NS records name; an unknown host is one that does not answer.
func (w *World) hosts(ns []dns.RR) []*Server {
	w.mu.Lock()
	defer w.mu.Unlock()
	var servers []*Server
	for _, rr := range ns {
		if s := w.serverNamed(canonical(rr.(*dns.NS).Ns)); s != nil {
			servers = append(servers, s)
		}
	}
	return servers
}

// aboveAll stands in for a root that the world does not have: it knows the addresses of servers, that
// names above a zone exist, and nothing else.
func (w *World) aboveAll(q dns.Question) *dns.Msg {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := new(dns.Msg)
	if s := w.serverNamed(canonical(q.Name)); s != nil {
		if rr := s.addressRecord(); rr.Header().Rrtype == q.Qtype {
			m.Answer = []dns.RR{rr}
			return m
		}
	} else {
		m.Rcode = dns.RcodeNameError
	}
	for fqdn := range w.zones {
		if dns.IsSubDomain(q.Name, fqdn) {
			m.Rcode = dns.RcodeSuccess
		}
	}
	m.Ns = []dns.RR{&dns.SOA{
		Hdr: header(".", dns.TypeSOA, 3600), Ns: "a.root-servers.net.", Mbox: "hostmaster.",
		Serial: 1, Refresh: 7200, Retry: 900, Expire: 1209600, Minttl: 3600,
	}}
	return m
}

// RootHints returns the servers of the root zone as a root hints file.
func (w *World) RootHints() string {
	w.tb.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	root := w.zones["."]
	if root == nil {
		w.tb.Fatalf("dnstest: there is no root zone")
		return ""
	}
	hints := ""
	for _, s := range root.servers {
		hints += fmt.Sprintf(". 3600000 NS %s\n%s\n", s.fqdn, s.addressRecord())
	}
	return hints
}

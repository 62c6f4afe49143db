package rfc2136

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
	"time"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/provider"
)

// kind is how an exchange failed.
type kind int

const (
	unsent           kind = iota // there was no connection
	unanswered                   // the message may have reached the server
	unusable                     // the reply proves nothing
	unsigned                     // the same: it lacks the signature
	notAuthoritative             // the answer comes from a cache, or leads away
	denied                       // the reply is a refusal, see rcode
	badKey                       // the reply is about our signature
	badSecret
	badTime
	badSignature
)

// failure is an exchange without a reply to work with.
type failure struct {
	server *server
	asked  string
	kind   kind
	reason error // where the kind does not say it all

	rcode  int  // of a refusal
	proven bool // the refusal is the server's own: signed, or nothing is

	ours, theirs time.Time // the clocks, for badTime

	update     bool // an update was refused, for this record of this zone
	zone, name string
}

func (s *server) fail(asked string, k kind, reason error) *failure {
	return &failure{server: s, asked: asked, kind: k, reason: reason}
}

// keyFailure is a reply about our signature (RFC 8945, section 5.2).
func (s *server) keyFailure(asked string, t *dns.TSIG) *failure {
	f := s.fail(asked, badSignature, nil)
	f.rcode = int(t.Error)
	switch t.Error {
	case dns.RcodeBadKey:
		f.kind = badKey
	case dns.RcodeBadSig:
		f.kind = badSecret
	case dns.RcodeBadTime:
		f.kind, f.ours = badTime, s.now()
		if seconds, err := strconv.ParseInt(t.OtherData, 16, 64); err == nil && t.OtherLen == 6 {
			f.theirs = time.Unix(seconds, 0)
		}
	}
	return f
}

func (f *failure) Error() string { return f.asked + ": " + f.text() }

func (f *failure) text() string {
	switch f.kind {
	case unusable:
		return fmt.Sprintf("the reply cannot be used: %v", f.reason)
	case unsigned:
		return "the reply is not signed, so anybody may have sent it"
	case notAuthoritative:
		return "the server does not answer for the name itself: it is not authoritative"
	case badKey:
		return fmt.Sprintf("the server knows no key %q with %s (BADKEY)", f.server.key, plain(f.server.key.algorithm))
	case badSecret:
		return fmt.Sprintf("the server's key %q has another secret (BADSIG)", f.server.key)
	case badTime:
		return "the clocks are too far apart (BADTIME): " + f.clocks()
	case badSignature:
		return fmt.Sprintf("the server does not take the signature (TSIG error %d)", f.rcode)
	case denied:
		text := "the server answers " + rcodeName(f.rcode)
		if !f.proven && f.server.key != nil && f.rcode != dns.RcodeNotAuth { // whose signature miekg/dns does not check
			text += ", unsigned"
		}
		switch {
		case f.update && f.rcode == dns.RcodeNotAuth:
			text += fmt.Sprintf(": it does not hold the zone %q", f.zone)
		case f.update && f.rcode == dns.RcodeRefused:
			text += ": " + f.who() + fmt.Sprintf(" may not change the TXT at %q", f.name)
		}
		return text
	}
	return f.reason.Error()
}

// clocks says what both clocks show.
func (f *failure) clocks() string {
	ours := f.ours.UTC().Format(time.RFC3339)
	if f.theirs.IsZero() {
		return fmt.Sprintf("this machine's shows %s, the server does not say what its own shows", ours)
	}
	ahead, apart := "behind", f.theirs.Sub(f.ours)
	if apart < 0 {
		ahead, apart = "ahead", -apart
	}
	return fmt.Sprintf("this machine's shows %s, the server's %s, so this one is %s %s",
		ours, f.theirs.UTC().Format(time.RFC3339), apart.Round(time.Second), ahead)
}

// who is how the server sees us.
func (f *failure) who() string {
	if f.server.key == nil {
		return "this machine, without a key,"
	}
	return fmt.Sprintf("the key %q", f.server.key)
}

func (f *failure) Unwrap() error { return f.reason }

// passing reports whether the failure may go away within seconds, and cost no time so far.
func (f *failure) passing() bool {
	silence := errors.Is(f.reason, errSilence) || errors.Is(f.reason, context.DeadlineExceeded) // a timed-out dial is the latter
	return (f.kind == unsent || f.kind == unanswered) && !silence
}

// doubt reports whether err leaves open what the server did with an update.
func doubt(err error) bool {
	f, ok := errors.AsType[*failure](err)
	return ok && (f.kind == unanswered || f.kind == unusable || f.kind == unsigned)
}

// hint says what to do about a failed call.
func hint(err error) string {
	if h, ok := errors.AsType[*hidden](err); ok {
		return h.hint()
	}
	if errors.Is(err, errOccupied) {
		return "remove what is in the way, or lead the challenge to another record with ACME_CHALLENGE_MAP"
	}
	if errors.Is(err, provider.ErrNoZone) {
		return "RFC2136_SERVER has to be the zone's primary server, and RFC2136_ZONE, where it is set, the zone"
	}
	f, ok := errors.AsType[*failure](err)
	if !ok {
		return ""
	}
	switch f.kind {
	case unsent, unanswered:
		return f.networkHint()
	case unusable, notAuthoritative:
		return "RFC2136_SERVER has to be the zone's primary server itself, not a resolver or a forwarder"
	case unsigned:
		return fmt.Sprintf("RFC2136_SERVER has to be the zone's primary server itself, and to know the key %q: without keys it ignores signatures", f.server.key)
	case badKey:
		return "RFC2136_TSIG_NAME and RFC2136_TSIG_ALGORITHM have to be those of the server's key statement (Knot DNS also says so where its acl does not allow the update)"
	case badSecret:
		return "copy the secret of the server's key statement into RFC2136_TSIG_SECRET again"
	case badTime:
		return fmt.Sprintf("set this machine's clock, or the server's, by NTP: %d seconds are allowed", fudge)
	case badSignature:
		return "RFC2136_TSIG_ALGORITHM has to be that of the server's key statement"
	}
	return f.rcodeHint()
}

func (f *failure) networkHint() string {
	_, noName := errors.AsType[*net.DNSError](f.reason)
	switch {
	case noName:
		return "the name of the server in RFC2136_SERVER cannot be resolved: check it, or write its address"
	case errors.Is(f.reason, syscall.ECONNREFUSED):
		return fmt.Sprintf("nothing takes TCP connections at %s: check RFC2136_SERVER, that the server runs, and that it listens on TCP there", f.server.addr)
	case f.kind == unsent:
		return fmt.Sprintf("%s cannot be reached over TCP: check RFC2136_SERVER, the network and the firewalls between", f.server.addr)
	}
	return fmt.Sprintf("%s takes connections but does not answer: check that it is a DNS server, and what it logs", f.server.addr)
}

func (f *failure) rcodeHint() string {
	switch f.rcode {
	case dns.RcodeNotAuth, dns.RcodeNotZone:
		if f.update {
			return fmt.Sprintf("RFC2136_SERVER has to be the primary server of the zone %q", f.zone)
		}
	case dns.RcodeRefused:
		switch {
		case !f.update:
			return "RFC2136_SERVER has to hold the zone and to answer this machine's questions about it (BIND: allow-query)"
		case f.server.key == nil:
			return fmt.Sprintf("set RFC2136_TSIG_NAME and RFC2136_TSIG_SECRET, or let the server take updates of the zone %q from this address (BIND: allow-update)", f.zone)
		}
		return fmt.Sprintf("in BIND, give the zone %q: update-policy { grant %s name %s TXT; }; and check that RFC2136_SERVER is its primary",
			f.zone, f.server.key.name, dns.Fqdn(f.name))
	case dns.RcodeServerFailure:
		if f.update {
			return fmt.Sprintf("see the server's log; BIND says so when it cannot write the journal beside the file of the zone %q, which belongs into a folder of its own user, such as /var/lib/bind", f.zone)
		}
		return "see the server's log: the zone may have failed to load"
	case dns.RcodeNotImplemented:
		return "RFC2136_SERVER has to be a server that takes dynamic updates"
	}
	return ""
}

func (h *hidden) hint() string {
	switch h.what {
	case byCNAME:
		return "remove the CNAME, or lead the challenge to another record with ACME_CHALLENGE_MAP"
	case byDNAME:
		return "remove the DNAME, or lead the challenge to another record with ACME_CHALLENGE_MAP"
	case byZone:
		return fmt.Sprintf("let the credentials write to the zone %s, or lead the challenge to another record with ACME_CHALLENGE_MAP", h.by)
	}
	return fmt.Sprintf("take the delegation of %s out of the zone, or lead the challenge to another record with ACME_CHALLENGE_MAP", h.by)
}

// question is how texts call a question.
func question(name string, qtype uint16) string {
	return fmt.Sprintf("the question for %s %q", dns.TypeToString[qtype], name)
}

func rcodeName(rcode int) string {
	if name, ok := dns.RcodeToString[rcode]; ok {
		return name
	}
	return "rcode " + strconv.Itoa(rcode)
}

// Package oracle asks Boulder, the software behind Let's Encrypt, what it makes of records in the DNS: its own
// validation authority runs in the test's process, behind its own DNS client, and hears what the test has the
// DNS say. Nothing leaves the loopback interface.
package oracle

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/jmhodges/clock"
	"github.com/letsencrypt/boulder/bdns"
	"github.com/letsencrypt/boulder/core/proto"
	"github.com/letsencrypt/boulder/log"
	"github.com/letsencrypt/boulder/va"
	vaproto "github.com/letsencrypt/boulder/va/proto"
	"github.com/prometheus/client_golang/prometheus"
)

// Issuer is what the CA is called in CAA records.
const Issuer = "letsencrypt.org"

// Account is the URI of the CA's account of that number.
func Account(number int64) string { return fmt.Sprint(accounts, number) }

// URIs of accounts, less their number: today's, and those from the days of ACMEv1.
const (
	accounts    = "https://acme-v02.api.letsencrypt.org/acme/acct/"
	oldAccounts = "https://acme-v01.api.letsencrypt.org/acme/reg/"
)

// questionTimeout ends a question that hangs; an answer takes about a millisecond.
const questionTimeout = 20 * time.Second

// Oracle is a Boulder that can be asked. It answers one question after the other.
type Oracle struct {
	resolver doh
	client   bdns.Client
	clock    clock.FakeClock
	va       *va.ValidationAuthorityImpl // of Let's Encrypt
	mu       sync.Mutex                  // of the question whose DNS the resolver shows
}

// Question is a certificate that an account wants.
type Question struct {
	Domain  string // may begin with "*."
	Method  string // of validation; one that Boulder knows
	Account int64  // its number, not 0
}

// Answer is Boulder's.
type Answer struct {
	Allowed bool
	Type    string // of the ACME problem otherwise: caa, dns, malformed, unauthorized
	Detail  string
}

// New starts a Boulder that ends with the test.
func New(tb testing.TB) *Oracle {
	tb.Helper()
	o := &Oracle{}
	addr, certificate := o.resolver.start(tb)
	trusted := x509.NewCertPool()
	trusted.AddCert(certificate)
	server, err := bdns.NewStaticProvider([]string{addr})
	if err != nil {
		tb.Fatalf("oracle: name Boulder its resolver: %v", err)
	}
	o.client = bdns.New(questionTimeout, server, prometheus.NewRegistry(), clock.New(), 1, "oracle", log.StdoutLogger(-1),
		&tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12})
	o.clock = clock.NewFake()
	if o.va, err = o.authority(Issuer, accounts, oldAccounts); err != nil {
		tb.Fatalf("oracle: %v", err)
	}
	return o
}

// authority makes a validation authority of a CA of that name, whose accounts have those URIs, less their number.
func (o *Oracle) authority(issuer string, accounts ...string) (*va.ValidationAuthorityImpl, error) {
	v, err := va.NewValidationAuthorityImpl(o.client, nil, "oracle", issuer, prometheus.NewRegistry(), o.clock, log.StdoutLogger(-1),
		accounts,
		"oracle", "ARIN", // a perspective that is not the primary one looks for no others
		func(netip.Addr) error { return nil }, 0, true, nil, 0, 0)
	if err != nil {
		return nil, fmt.Errorf("start Boulder's validation authority: %w", err)
	}
	return v, nil
}

// CAA asks whether the CAA records in that DNS let the CA issue.
func (o *Oracle) CAA(ctx context.Context, dns Asker, q Question) (Answer, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, questionTimeout)
	defer cancel()
	o.resolver.show(dns)
	result, err := o.va.DoCAA(ctx, &vaproto.IsCAAValidRequest{
		Identifier:       &proto.Identifier{Type: "dns", Value: q.Domain},
		ValidationMethod: q.Method,
		AccountURIID:     q.Account,
		AuthzID:          1,
	})
	if err := errors.Join(err, ctx.Err(), o.resolver.failure()); err != nil {
		return Answer{}, fmt.Errorf("ask Boulder about %q: %w", q.Domain, err)
	}
	return answered(result.Problem), nil
}

func answered(p *proto.ProblemDetails) Answer {
	if p != nil {
		return Answer{Type: p.ProblemType, Detail: p.Detail}
	}
	return Answer{Allowed: true}
}

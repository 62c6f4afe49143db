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
	va       *va.ValidationAuthorityImpl
	mu       sync.Mutex // of the question whose DNS the resolver shows
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
	Type    string // of the ACME problem otherwise: caa, dns
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
	silent := log.StdoutLogger(-1)
	client := bdns.New(questionTimeout, server, prometheus.NewRegistry(), clock.New(), 1, "oracle", silent,
		&tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12})
	o.va, err = va.NewValidationAuthorityImpl(client, nil, "oracle", Issuer, prometheus.NewRegistry(), clock.New(), silent,
		[]string{accounts, oldAccounts},
		"oracle", "ARIN", // a perspective that is not the primary one looks for no others
		func(netip.Addr) error { return nil }, 0, true, nil, 0, 0)
	if err != nil {
		tb.Fatalf("oracle: start Boulder's validation authority: %v", err)
	}
	return o
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
	if p := result.Problem; p != nil {
		return Answer{Type: p.ProblemType, Detail: p.Detail}, nil
	}
	return Answer{Allowed: true}, nil
}

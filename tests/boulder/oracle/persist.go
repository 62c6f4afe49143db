package oracle

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/letsencrypt/boulder/core/proto"
	"github.com/letsencrypt/boulder/features"
	vaproto "github.com/letsencrypt/boulder/va/proto"
)

// Validation is what a CA is to validate by dns-persist-01.
type Validation struct {
	Domain   string // may begin with "*."
	Issuer   string // what the CA calls itself; "" for Let's Encrypt
	Accounts string // URIs of the CA's accounts, less their number; "" for those of Let's Encrypt
	Account  int64  // its number, not 0
	Now      time.Time
}

// Persist asks whether the record in that DNS validates a domain for an account.
func (o *Oracle) Persist(ctx context.Context, dns Asker, v Validation) (Answer, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, questionTimeout)
	defer cancel()
	features.Set(features.Config{DNSPersist01Enabled: true})
	ca := o.va
	if v.Issuer != "" || v.Accounts != "" {
		var err error
		if ca, err = o.authority(v.Issuer, v.Accounts); err != nil {
			return Answer{}, err
		}
	}
	o.resolver.show(dns)
	o.clock.Set(v.Now)
	result, err := ca.DoDCV(ctx, &vaproto.PerformValidationRequest{
		Identifier: &proto.Identifier{Type: "dns", Value: v.Domain},
		Challenge: &proto.Challenge{
			Id: 1, Type: "dns-persist-01", Status: "pending",
			Token: strings.Repeat("A", 43), // which has to be there and is not looked at
		},
		Authz:                    &vaproto.AuthzMeta{Id: 1, RegID: v.Account},
		ExpectedKeyAuthorization: "as the token",
	})
	if err := errors.Join(err, ctx.Err(), o.resolver.failure()); err != nil {
		return Answer{}, fmt.Errorf("ask Boulder to validate %q: %w", v.Domain, err)
	}
	return answered(result.Problem), nil
}

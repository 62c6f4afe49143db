package guide

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// checkAddress looks whether somebody can connect to a name that no gateway is named for.
func (g *Guide) checkAddress(ctx context.Context, p Plan, _ *ground) Finding {
	f := Finding{Kind: CNAME}
	own := g.addresses(ctx, p.Name)
	f.Source = own.source
	switch {
	case len(own.addrs) > 0:
		f.Status, f.Detail = OK, fmt.Sprintf("%s has the addresses %s", p.Name, strings.Join(own.addrs, ", "))
	case errors.Is(own.err, errCircle):
		f.Status, f.Detail, f.Advice = Wrong, own.err.Error(), p.addAddress()+" in place of the CNAME"
	case own.err != nil:
		return f.undecided("cannot tell what stands at "+p.Name, own.err)
	case own.empty():
		f.Status, f.Detail, f.Advice = Missing, p.noAddress(), p.addAddress()
	default:
		f.Status, f.Advice = Wrong, "have that name resolve, or replace the CNAME"
		f.Detail = fmt.Sprintf("%s; it leads to %s, where there is none", p.noAddress(), own.where())
	}
	return f
}

func (p Plan) noAddress() string {
	text := fmt.Sprintf("%s has no address", p.Name)
	if p.Method == TLSALPN01 {
		text += fmt.Sprintf(", and under %s the CA has to connect to it", p.Method)
	}
	return text
}

func (p Plan) addAddress() string {
	text := "add an A or AAAA record for " + p.Name
	if p.Gateway == "" {
		text += ", or name the host that it has to lead to with --alias-target"
	}
	return text
}

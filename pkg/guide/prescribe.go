package guide

import (
	"context"
	"sync"

	"github.com/certhook/certhook/pkg/resolver"
)

// Prescription is what an operator has to create for one name.
type Prescription struct {
	Name    string   `json:"name"`
	Records []Record `json:"records"`
	Notes   []string `json:"notes"` // what is left out, and why; what else to know
}

// Prescribe lists the records for each plan, in their order. It looks at the CAA records that govern a name
// today, since what belongs beside them depends on them; where that fails it says so and goes on.
func (g *Guide) Prescribe(ctx context.Context, plans []Plan) []Prescription {
	ctx = resolver.Remember(ctx)
	list := make([]Prescription, len(plans))
	var wg sync.WaitGroup
	for i, p := range plans {
		wg.Go(func() { list[i] = g.prescribe(ctx, p) })
	}
	wg.Wait()
	return list
}

func (g *Guide) prescribe(ctx context.Context, p Plan) Prescription {
	list := Prescription{Name: p.Name}
	if p.wantsChallenge() {
		list.Records = append(list.Records, p.challengeRecord())
	} else if p.Include[ChallengeCNAME] && p.Method == DNS01 {
		list.Notes = append(list.Notes, "no alias zone is set (ACME_CHALLENGE_ALIAS): challenges go to the domain's own zone, and no CNAME is needed")
	}
	if p.Include[CAA] {
		records, notes := g.findLockRecords(ctx, p)
		list.Records = append(list.Records, records...)
		list.Notes = append(list.Notes, notes...)
	}
	if p.wantsGateway() && g.flat(ctx, p) {
		list.Notes = append(list.Notes, p.flatNote())
	} else if p.wantsGateway() {
		list.Records = append(list.Records, p.gatewayRecord())
	}
	if p.wantsTXT() {
		list.Records = append(list.Records, p.txtRecord())
	}
	return list
}

func (p Plan) wantsChallenge() bool {
	return p.Include[ChallengeCNAME] && p.Method == DNS01 && p.Target.Alias != ""
}
func (p Plan) wantsGateway() bool { return p.Include[CNAME] && p.Gateway != "" }
func (p Plan) wantsTXT() bool     { return p.Include[TXT] && p.TXTValue != "" }

package guide

import (
	"context"
	"strings"
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
	gr := g.survey(ctx, plans)
	list := make([]Prescription, len(plans))
	var wg sync.WaitGroup
	for i, p := range plans {
		wg.Go(func() { list[i] = g.prescribe(ctx, p, gr) })
	}
	wg.Wait()
	return list
}

func (g *Guide) prescribe(ctx context.Context, p Plan, gr *ground) Prescription {
	list := Prescription{Name: p.Name}
	if p.wantsChallenge() {
		list.Records = append(list.Records, p.challengeRecord())
	} else if p.Include[ChallengeCNAME] && p.Method == DNS01 {
		list.Notes = append(list.Notes, "no alias zone is set (ACME_CHALLENGE_ALIAS): challenges go to the domain's own zone, and no CNAME is needed")
	}
	if p.Include[CAA] {
		records, notes := g.findLockRecords(ctx, p, gr)
		list.Records = append(list.Records, records...)
		list.Notes = append(list.Notes, notes...)
	}
	if p.wantsGateway() && gr.flat[p.Name] {
		list.Notes = append(list.Notes, p.flatNote())
	} else if p.wantsGateway() {
		list.Records = append(list.Records, p.gatewayRecord())
	}
	if p.wantsTXT() {
		list.Records = append(list.Records, p.txtRecord())
	}
	if note := gr.wildNote(p); note != "" && len(list.Records) > 0 {
		list.Notes = append(list.Notes, note)
	}
	for i := range list.Notes {
		list.Notes[i] = oneLine(list.Notes[i])
	}
	return list
}

func (p Plan) wantsChallenge() bool {
	return p.Include[ChallengeCNAME] && p.Method == DNS01 && p.Target.Alias != ""
}
func (p Plan) wantsGateway() bool { return p.Include[CNAME] && p.Gateway != "" }
func (p Plan) wantsTXT() bool     { return p.Include[TXT] && p.TXTValue != "" }

// oneLine puts a text that errors from several servers made into several lines into one: a comment in a zone file and a
// row of a table have no second.
func oneLine(text string) string { return strings.ReplaceAll(strings.TrimSpace(text), "\n", "; ") }

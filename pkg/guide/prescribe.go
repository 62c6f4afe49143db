package guide

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/resolver"
)

// Prescription is what an operator has to create for one name.
type Prescription struct {
	Name    string   `json:"name"`
	Records []Record `json:"records"`
	LeftOut []string `json:"left_out"` // records that are asked for and not among these: which, why, and the ways out
	Notes   []string `json:"notes"`    // what else to know
}

// Prescribe lists the records for each plan, in their order. It looks at the CAA records that govern a name today,
// since what belongs beside them depends on them, and at what stands in the way of the others; where that fails it
// says so, or takes nothing to stand there, and goes on.
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
		g.prescribeChallenge(ctx, p, gr, &list)
	} else if p.Include[ChallengeCNAME] && p.Method == DNS01 {
		list.note("no alias zone is set (ACME_CHALLENGE_ALIAS): challenges go to the domain's own zone, and no CNAME is needed")
	}
	if p.validates() {
		g.prescribeValidation(ctx, p, gr, &list)
	}
	if p.Include[CAA] {
		g.prescribeLock(ctx, p, gr, &list)
	}
	switch flat := gr.flatNote(p); {
	case !p.wantsGateway():
		if p.wantsAddress() {
			g.prescribeAddress(ctx, p, &list)
		}
	case flat != "":
		list.leaveOut("the routing CNAME", flat)
	default:
		list.add(p.gatewayRecord())
	}
	if p.wantsTXT() {
		if no := gr.noTXT(p); no != "" {
			list.leaveOut("the routing TXT", no)
		} else {
			list.add(p.txtRecord())
		}
	}
	if note := gr.wildNote(p); note != "" && len(list.Records) > 0 {
		list.note(note)
	}
	return list
}

// prescribeChallenge lists the challenge CNAME unless something stands at its name.
func (g *Guide) prescribeChallenge(ctx context.Context, p Plan, gr *ground, list *Prescription) {
	record := p.challengeRecord()
	here := g.standing(ctx, gr, record.Name, dns.TypeTXT, dns.TypeNS, dns.TypeMX, dns.TypeCAA, dns.TypeA, dns.TypeAAAA)
	switch {
	case len(here.types) > 0:
		list.leaveOut("the challenge CNAME", fmt.Sprintf("%s at %s, and nothing can stand beside a CNAME (RFC 1034, section 3.6.2): remove that first (a TXT there is mostly what an ACME client has left behind, an NS hands the name to other servers), then add %s",
			stand(here.types), record.Name, record.Line()))
		return
	case here.cname != "" && here.cname != p.Target.Record:
		list.note(fmt.Sprintf("%s is a CNAME to %s today: replace that, since there can be one only", record.Name, here.cname))
	}
	list.add(record)
}

// prescribeAddress says what is missing where the CA or clients have to be able to connect.
func (g *Guide) prescribeAddress(ctx context.Context, p Plan, list *Prescription) {
	if p.isGateway() {
		list.note(fmt.Sprintf("%s is the gateway itself: it needs addresses, and no routing CNAME", p.Name))
	}
	if own := g.addresses(ctx, p.Name); own.err == nil && len(own.addrs) == 0 {
		list.note(p.noAddress() + "; " + p.addAddress())
	}
}

func (l *Prescription) add(r Record)     { l.Records = append(l.Records, r) }
func (l *Prescription) note(text string) { l.Notes = append(l.Notes, oneLine(text)) }
func (l *Prescription) leaveOut(what, why string) {
	l.LeftOut = append(l.LeftOut, oneLine(what+": "+why))
}

func (p Plan) wantsChallenge() bool {
	return p.Include[ChallengeCNAME] && p.Method == DNS01 && p.Target.Alias != ""
}
func (p Plan) wantsGateway() bool { return p.Include[CNAME] && p.Gateway != "" && !p.isGateway() }
func (p Plan) isGateway() bool    { return p.Gateway == p.Name }
func (p Plan) wantsTXT() bool     { return p.Include[TXT] && p.TXTValue != "" }

// wantsAddress reports whether the name has to have an address, whichever it is.
func (p Plan) wantsAddress() bool {
	return p.Include[CNAME] && (p.isGateway() || p.Gateway == "" && p.Method == TLSALPN01)
}

// oneLine puts a text that errors from several servers made into several lines into one: a comment in a zone file and a
// row of a table have no second.
func oneLine(text string) string { return strings.ReplaceAll(strings.TrimSpace(text), "\n", "; ") }

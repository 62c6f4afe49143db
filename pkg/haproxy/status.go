package haproxy

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/certhook/certhook/pkg/fault"
)

// Status looks at the lineages that are named, or all, and changes nothing. What is wrong with one is in its state. The
// error is for what keeps it from looking at all; the states, with what is known without HAProxy, are there even so,
// unless the names are no good.
func (a *Applier) Status(ctx context.Context, names ...string) ([]State, error) {
	ctx, cancel := context.WithTimeout(ctx, a.Timeout)
	defer cancel()
	states, err := a.lineages(ctx, names)
	if err != nil {
		return nil, err
	}
	due := outstanding(states, nil, false)
	for _, s := range due {
		s.Err = a.observeDisk(s)
	}
	if len(states) == 0 {
		return nil, fault.Errorf(fault.Lineage, "there is no lineage in %s", strings.Join(a.Roots, " or ")).
			WithHint("certbot certificates lists certbot's; set CERTBOT_CONFIG_DIR to its --config-dir")
	}
	err = a.compare(ctx, outstanding(states, nil, false))
	for n := range states {
		if err := states[n].Err; err != nil {
			states[n].Problem = err.Error()
		}
	}
	return states, err
}

// compare holds lineages against what HAProxy has.
func (a *Applier) compare(ctx context.Context, due []*State) error {
	m := a.recall()
	i, err := a.look(ctx)
	if err != nil {
		return err
	}
	if !i.up {
		down := fault.Errorf(fault.Pending, "HAProxy is not running").WithHint("start it; haproxy-apply puts in its folder what it will load then")
		for _, s := range due {
			s.Err = down
		}
		return nil
	}
	if err := i.learn(ctx, due); err != nil {
		return err
	}
	hint := "run haproxy-apply" // once
	for _, s := range due {
		switch s.Err = a.observe(ctx, i, s, true); {
		case s.Err != nil:
		case a.done(i, &m, s):
			s.Served = true
		case s.held() && s.Disk == Same:
			s.Err = a.shadowed(i, s)
		default:
			s.Err = fault.Errorf(fault.Verdict, "HAProxy does not serve what the lineage %q has", s.Name).WithHint("%s", hint)
			hint = ""
		}
	}
	return nil
}

// Expiring returns an error of kind Verdict for each lineage whose certificate ends within days, and has not yet.
func Expiring(states []State, days int, now time.Time) []error {
	var errs []error
	for _, s := range states {
		left := s.NotAfter.Sub(now)
		if s.NotAfter.IsZero() || left < 0 || left >= time.Duration(days)*24*time.Hour {
			continue
		}
		errs = append(errs, fault.Errorf(fault.Verdict, "the certificate of %q ends on %s, in %d days", s.Name, s.NotAfter.Format(time.DateOnly), int(left.Hours()/24)).
			WithHint("certbot renew --cert-name %s tells why it has not been renewed", s.Name))
	}
	return errs
}

// severity orders kinds of failure from the worst.
var severity = []fault.Kind{fault.Usage, fault.Refused, fault.Other, fault.Verdict, fault.Lineage, fault.Unknown, fault.Pending}

// Err joins what is wrong with lineages, and whatever else is, each thing once and the worst first: it decides the exit
// code.
func Err(states []State, more ...error) error {
	var errs []error
	var told []string
	tell := func(err error) {
		if err != nil && !slices.Contains(told, err.Error()) {
			errs = append(errs, err)
			told = append(told, err.Error())
		}
	}
	for _, s := range states {
		tell(s.Err)
	}
	for _, err := range more {
		tell(err)
	}
	slices.SortStableFunc(errs, func(a, b error) int {
		return cmp.Compare(slices.Index(severity, fault.KindOf(a)), slices.Index(severity, fault.KindOf(b)))
	})
	return errors.Join(errs...)
}

// wire sums up what the handshakes showed.
func (s State) wire() Place {
	if len(s.Wire) == 0 {
		return Unseen
	}
	for _, w := range s.Wire {
		if w.State != Same && w.State != Unasked {
			return w.State
		}
	}
	if s.Wire[0].State == Unasked {
		return Unasked
	}
	return Same
}

// memory sums up what HAProxy holds.
func (s State) memory() Place {
	switch {
	case !s.asked:
		return Unseen
	case len(s.Memory) == 0:
		return Absent
	}
	for _, h := range s.Memory {
		if h.State != Same {
			return h.State
		}
	}
	return Same
}

// WriteTable prints states for people: where they have what the lineage has, and where something else.
func WriteTable(w io.Writer, states []State) {
	width := len("LINEAGE")
	for _, s := range states {
		width = max(width, len(s.Name))
	}
	row := func(columns ...any) {
		fmt.Fprintf(w, fmt.Sprintf("%%-%ds  %%-10s  %%-8s  %%-8s  %%-8s  %%s\n", width), columns...)
	}
	row("LINEAGE", "UNTIL", "DISK", "MEMORY", "WIRE", "SERIAL")
	for _, s := range states {
		until, serial := "-", cmp.Or(s.Serial, "-")
		if !s.NotAfter.IsZero() {
			until = s.NotAfter.Format(time.DateOnly)
		}
		if s.desired == nil {
			row(s.Name, until, "unusable", "-", "-", serial)
			continue
		}
		row(s.Name, until, cmp.Or(s.Disk, Unseen), s.memory(), s.wire(), serial)
	}
}

// WriteJSON prints states for programs. err is what kept Status from looking at HAProxy.
func WriteJSON(w io.Writer, states []State, err error) error {
	report := struct {
		Lineages []State `json:"lineages"`
		Problem  string  `json:"problem,omitempty"`
	}{Lineages: append([]State{}, states...)}
	if err != nil {
		report.Problem = err.Error()
	}
	for n := range report.Lineages { // lists are never null
		s := &report.Lineages[n]
		s.Names, s.Memory, s.Wire = append([]string{}, s.Names...), append([]Held{}, s.Memory...), append([]Seen{}, s.Wire...)
		s.Disk = cmp.Or(s.Disk, Unseen)
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(report)
}

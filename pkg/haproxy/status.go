package haproxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"github.com/certhook/certhook/pkg/fault"
)

// Status looks at the lineages that are named, or all, and changes nothing.
func (a *Applier) Status(ctx context.Context, names ...string) ([]State, error) {
	ctx, cancel := context.WithTimeout(ctx, a.Timeout)
	defer cancel()
	states, err := a.lineages(ctx, names)
	if err != nil {
		return nil, err
	}
	m := a.recall()
	i, err := a.look(ctx)
	if err != nil {
		return nil, err
	}
	due := outstanding(states, nil, false)
	if err := i.learn(ctx, due); err != nil {
		return nil, err
	}
	for _, s := range due {
		switch s.Err = a.observe(ctx, i, s, true); {
		case s.Err != nil, i.up && a.done(i, &m, s):
		case !i.up:
			s.Err = fault.Errorf(fault.Pending, "HAProxy is not running")
		case s.held() && s.Disk == Same:
			s.Err = a.shadowed(i, s)
		default:
			s.Err = fault.Errorf(fault.Verdict, "HAProxy does not serve what the lineage %q has", s.Name).
				WithHint("run haproxy-apply")
		}
	}
	for n := range states {
		if err := states[n].Err; err != nil {
			states[n].Problem = err.Error()
		}
	}
	return states, nil
}

// Expiring returns an error of kind Verdict for each lineage whose certificate ends within days.
func Expiring(states []State, days int, now time.Time) error {
	var errs []error
	for _, s := range states {
		if left := s.NotAfter.Sub(now); !s.NotAfter.IsZero() && left < time.Duration(days)*24*time.Hour {
			errs = append(errs, fault.Errorf(fault.Verdict, "the certificate of %q ends on %s, in %d days", s.Name, s.NotAfter.Format(time.DateOnly), int(left.Hours()/24)))
		}
	}
	return errors.Join(errs...)
}

// severity orders kinds of failure from the worst.
var severity = []fault.Kind{fault.Usage, fault.Refused, fault.Other, fault.Verdict, fault.Lineage, fault.Unknown, fault.Pending}

// Err joins what is wrong with lineages, the worst first.
func Err(states []State) error {
	var errs []error
	var told []string
	for _, s := range states {
		if s.Err != nil && !slices.Contains(told, s.Err.Error()) {
			errs = append(errs, s.Err)
			told = append(told, s.Err.Error())
		}
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
	if len(s.Memory) == 0 {
		return Absent
	}
	for _, h := range s.Memory {
		if h.State != Same {
			return h.State
		}
	}
	return Same
}

// WriteTable prints states for people.
func WriteTable(w io.Writer, states []State) {
	width := len("LINEAGE")
	for _, s := range states {
		width = max(width, len(s.Name))
	}
	fmt.Fprintf(w, "%-*s  %-10s  %-8s  %-8s  %-8s  %s\n", width, "LINEAGE", "UNTIL", "DISK", "MEMORY", "WIRE", "SERIAL")
	for _, s := range states {
		if s.desired == nil {
			fmt.Fprintf(w, "%-*s  unusable: %v\n", width, s.Name, s.Err)
			continue
		}
		fmt.Fprintf(w, "%-*s  %-10s  %-8s  %-8s  %-8s  %s\n", width, s.Name, s.NotAfter.Format(time.DateOnly), s.Disk, s.memory(), s.wire(), s.Serial)
	}
}

// WriteMetrics replaces a file for node_exporter's textfile collector.
func WriteMetrics(path string, states []State, now time.Time) error {
	var b strings.Builder
	metric := func(name, help string, value func(State) float64) {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name)
		for _, s := range states {
			fmt.Fprintf(&b, "%s{lineage=%q} %g\n", name, s.Name, value(s))
		}
	}
	metric("certhook_certificate_not_after_seconds", "End of the lineage's certificate, in Unix time; 0 if it is unusable.", func(s State) float64 {
		if s.NotAfter.IsZero() {
			return 0
		}
		return float64(s.NotAfter.Unix())
	})
	metric("certhook_haproxy_served", "Whether HAProxy serves what the lineage has: on disk, in memory and on the wire.", func(s State) float64 {
		if s.Err != nil {
			return 0
		}
		return 1
	})
	fmt.Fprintf(&b, "# HELP certhook_haproxy_checked_seconds When this was looked at, in Unix time.\n# TYPE certhook_haproxy_checked_seconds gauge\ncerthook_haproxy_checked_seconds %d\n", now.Unix())
	if err := renameio.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		return fault.Errorf(fault.Usage, "write metrics: %w", err)
	}
	return nil
}

package guide

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
)

// WriteText prints prescriptions for people: each record once, on a line of its own that can be pasted into a
// zone file, what it is for above it.
func WriteText(w io.Writer, list []Prescription) {
	printed := map[string]bool{}
	for i, p := range list {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "# %s\n", p.Name)
		for _, r := range p.Records {
			if printed[r.Line()] {
				fmt.Fprintf(w, "# takes the %s at %s above\n", r.Type, r.Name)
				continue
			}
			printed[r.Line()] = true
			fmt.Fprintf(w, "\n# %s\n%s\n", r.Note, r.Line())
		}
		for _, text := range p.LeftOut {
			fmt.Fprintf(w, "\n# LEFT OUT: %s\n", text)
		}
		for _, text := range p.Notes {
			fmt.Fprintf(w, "\n# note: %s\n", text)
		}
	}
}

// zoneTTL is the TTL of records in a zone file, in seconds: short enough to correct a mistake soon.
const zoneTTL = 300

// WriteZoneFile prints prescriptions as a zone file (RFC 1035, section 5) to import: each record once, sorted
// by name, below comments that say what is left out and what else to know.
func WriteZoneFile(w io.Writer, list []Prescription) {
	if missing := LeftOut(list); len(missing) > 0 {
		fmt.Fprintln(w, "; THIS FILE IS NOT COMPLETE. What is left out, and why:")
		for _, text := range missing {
			fmt.Fprintf(w, ";   %s\n", text)
		}
	}
	for _, text := range gather(list, func(p Prescription) []string { return p.Notes }) {
		fmt.Fprintf(w, "; note: %s\n", text)
	}
	var records []Record
	for _, p := range list {
		for _, r := range p.Records {
			if !slices.ContainsFunc(records, func(o Record) bool { return o.Line() == r.Line() }) {
				records = append(records, r)
			}
		}
	}
	slices.SortStableFunc(records, func(a, b Record) int { return strings.Compare(reversed(a.Name), reversed(b.Name)) })
	for _, r := range records {
		fmt.Fprintf(w, "%s. %d IN %s %s\n", r.Name, zoneTTL, r.Type, r.Value)
	}
}

// LeftOut lists what is left out of prescriptions, each thing once with the names that it is left out for.
func LeftOut(list []Prescription) []string {
	return gather(list, func(p Prescription) []string { return p.LeftOut })
}

// gather lists the texts of all prescriptions, each once, with the names that it is about before it.
func gather(list []Prescription, texts func(Prescription) []string) []string {
	var order []string
	names := map[string][]string{}
	for _, p := range list {
		for _, text := range texts(p) {
			if names[text] == nil {
				order = append(order, text)
			}
			names[text] = append(names[text], p.Name)
		}
	}
	for i, text := range order {
		order[i] = strings.Join(names[text], ", ") + ": " + text
	}
	return order
}

// reversed puts the labels of a name in the order from the root down, so that what belongs to one zone
// stands together.
func reversed(name string) string {
	labels := strings.Split(name, ".")
	slices.Reverse(labels)
	return strings.Join(labels, "\x00")
}

// label says a finding's kind to people.
func (k Kind) label() string {
	return cmp.Or(map[Kind]string{ChallengeCNAME: "challenge", ValidationTXT: "validation", CAA: "CAA", CNAME: "routing", TXT: "routing TXT"}[k], string(k))
}

// Line tells a finding in one line.
func (f Finding) Line(name string) string {
	status := string(f.Status)
	if f.Accepted {
		status = "accepted"
	}
	text := fmt.Sprintf("%-8s  %-11s  %s: %s", status, f.Kind.label(), name, f.Detail)
	if !f.Fine() || f.Accepted {
		if f.Advice != "" {
			text += "; " + f.Advice
		}
	}
	return text
}

// More tells what else there is to a finding, a line each. verbose adds everything that went wrong on the way.
func (f Finding) More(verbose bool) []string {
	var lines []string
	if verbose && f.Cause != "" {
		lines = strings.Split(f.Cause, "\n")
	}
	for _, l := range f.Lagging {
		lines = append(lines, fmt.Sprintf("lagging: %s %s", l.Server, l.Says))
	}
	if f.Warning != "" {
		lines = append(lines, "warning: "+f.Warning)
	}
	for _, n := range f.Notes {
		lines = append(lines, "note: "+n)
	}
	switch {
	case f.Status == Unknown:
	case f.Source == Resolvers:
		lines = append(lines, "note: told by resolvers, since no authoritative server could be asked")
	case f.Source == PlainDNS:
		lines = append(lines, "note: told by resolvers over plain DNS, which is weaker evidence: anybody on the way could have written it")
	}
	return lines
}

// WriteReport prints all findings for people; verbose is that of [Finding.More].
func WriteReport(w io.Writer, results []Result, verbose bool) {
	for _, r := range results {
		for _, f := range r.Findings {
			fmt.Fprintln(w, f.Line(r.Name))
			for _, line := range f.More(verbose) {
				fmt.Fprintln(w, "          "+line)
			}
		}
	}
}

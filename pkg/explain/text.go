package explain

import (
	"fmt"
	"io"
	"strings"
)

// Text prints the explanation for people. The verdict is the last line.
func (e Explanation) Text(w io.Writer) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", e.Name, e.Type)
	if len(e.Zones) > 0 {
		b.WriteString("\nzones on the way\n")
	}
	for _, z := range e.Zones {
		z.text(&b)
	}
	for i, h := range e.Chain {
		fmt.Fprintf(&b, "\n%d. %s", i+1, h.Name)
		if h.Zone != "" {
			fmt.Fprintf(&b, ", in the zone %s", h.Zone)
		}
		b.WriteString("\n")
		h.text(&b)
	}
	fmt.Fprintf(&b, "\n%s: %s\n", e.Verdict, e.Reason)
	_, _ = io.WriteString(w, b.String())
}

func (z Zone) text(b *strings.Builder) {
	ds := map[DS]string{
		DSPresent: ", signed: the zone above has a DS for it",
		DSAbsent:  ", not signed: the zone above has no DS for it",
	}
	fmt.Fprintf(b, "  %s%s\n", z.Name, ds[z.DS])
	width := 0
	for _, s := range z.Servers {
		width = max(width, len(s.Name))
	}
	for _, s := range z.Servers {
		addresses := "no address"
		if len(s.Addresses) > 0 {
			addresses = strings.Join(s.Addresses, ", ")
		}
		fmt.Fprintf(b, "    %-*s  %s\n", width, s.Name, addresses)
	}
	if len(z.Resolvers) > 0 {
		b.WriteString("    resolvers on its SOA:\n")
		list(b, "      ", z.Resolvers)
	}
}

func (h Hop) text(b *strings.Builder) {
	if h.Error != "" {
		fmt.Fprintf(b, "  %s\n", strings.ReplaceAll(h.Error, "\n", "\n    "))
	}
	list(b, "  ", h.Servers)
	switch {
	case h.NotAsked != "":
		fmt.Fprintf(b, "  resolvers: not asked; %s\n", h.NotAsked)
	case len(h.Resolvers) > 0:
		b.WriteString("  resolvers:\n")
		list(b, "    ", h.Resolvers)
	}
}

// list prints answers in two columns, every record on a line of its own.
func list(b *strings.Builder, indent string, said []Said) {
	width := 0
	for _, s := range said {
		width = max(width, len(s.Server))
	}
	for _, s := range said {
		who := s.Server
		for _, line := range s.lines() {
			fmt.Fprintf(b, "%s%-*s  %s\n", indent, width, who, line)
			who = ""
		}
	}
}

// lines is the answer in full.
func (s Said) lines() []string {
	var lines []string
	switch s.Answer {
	case Records, CNAME:
		for _, r := range s.Records {
			lines = append(lines, fmt.Sprintf("%s %s (TTL %d)", r.Type, r.Data, r.TTL))
		}
	case NoData:
		lines = []string{"no such record (NODATA)"}
	case NXDomain:
		lines = []string{"no such name (NXDOMAIN)"}
	case Referral:
		lines = []string{"refers to the servers of " + s.Detail}
	case Lame:
		lines = []string{"not authoritative"}
	case Refused:
		lines = []string{"REFUSED"}
	case Timeout:
		lines = []string{"no answer in time"}
	case Bogus:
		lines = []string{"SERVFAIL: DNSSEC validation fails"}
		for _, r := range s.Records {
			lines = append(lines, fmt.Sprintf("withheld: %s %s", r.Type, r.Data))
		}
	default:
		lines = []string{s.Detail}
	}
	var notes []string
	if s.Lags {
		notes = append(notes, "not what the servers say: an older answer")
	}
	if s.Validated {
		notes = append(notes, "validated by DNSSEC")
	}
	if s.Plain {
		notes = append(notes, "over plain DNS")
	}
	notes = append(notes, s.Errors...)
	if len(notes) > 0 {
		lines[0] += "; " + strings.Join(notes, ", ")
	}
	return lines
}

package guide

import (
	"fmt"
	"strings"

	"github.com/certhook/certhook/pkg/resolver"
)

// view is what comes of what some servers of a zone have, while others have something else.
type view struct {
	servers []string
	Finding
}

// worst is the finding on several views: a CA may ask any server, so that it is fine only where all are, and not only
// where none is.
func worst(what string, views []view) Finding {
	sum := views[0].Finding
	if len(views) == 1 {
		return sum
	}
	fine, unknown := 0, 0
	var told, causes []string
	for _, v := range views {
		if v.Cause != "" {
			causes = append(causes, v.Cause)
		}
		if v.Fine() {
			fine++
		}
		if v.Status == Unknown {
			unknown++
		}
		if v.Accepted || v.Status == Wrong && sum.Status != Wrong {
			sum = v.Finding
		}
		told = append(told, fmt.Sprintf("%s: %s", strings.Join(v.servers, " and "), v.Detail))
	}
	differ := strings.Join(told, "; ")
	switch {
	case fine == len(views):
		sum.Notes = append(sum.Notes, fmt.Sprintf("the servers differ about %s, and either is fine: %s", what, differ))
		return sum
	case fine+unknown == 0:
		sum.Detail = fmt.Sprintf("the servers differ about %s, and none is fine: %s", what, differ)
		return sum
	}
	return Finding{
		Status: Unknown,
		Cause:  strings.Join(causes, "\n"),
		Detail: fmt.Sprintf("the servers differ about %s, and a CA may ask any of them: %s", what, differ),
		Advice: "have all servers say the same; if it was changed just now, look again in a while",
	}
}

// with takes over what was found out, besides what f says of itself.
func (f Finding) with(found Finding) Finding {
	found.Kind, found.Records, found.Notes = f.Kind, f.Records, append(f.Notes, found.Notes...)
	return found
}

// failing notes the authoritative servers that do not answer while others of their zone do.
func (f *Finding) failing(servers []resolver.Laggard) {
	for _, s := range servers {
		f.Notes = append(f.Notes, fmt.Sprintf("the server %s %s; a CA may ask it", s.Server, s.Says))
	}
}

// hears takes in what resolvers make of what authoritative servers have at a name. Where it is fine there and every
// resolver fails, a CA's will likely fail as well.
func (f *Finding) hears(e resolver.Echo, name, qtype string) {
	f.Lagging = append(f.Lagging, e.Lagging...)
	switch {
	case e.Fails() && f.Fine():
		f.Status, f.Accepted = Unknown, false
		f.Detail = fmt.Sprintf("%s, say its servers, but every resolver fails when asked for it, and a CA's likely too: %s", f.Detail, told(e.Failing))
		f.Advice = fmt.Sprintf("dnsguide explain %s %s tells whether DNSSEC is the reason", name, qtype)
		return
	case e.Deaf():
		f.Notes = append(f.Notes, fmt.Sprintf("no resolver could be asked whether it shows that, too: %s", told(e.Silent)))
		return
	}
	for _, s := range append(e.Failing, e.Silent...) {
		f.Notes = append(f.Notes, fmt.Sprintf("the resolver %s %s", s.Server, s.Says))
	}
}

func told(servers []resolver.Laggard) string {
	var parts []string
	for _, s := range servers {
		parts = append(parts, s.Server+" "+s.Says)
	}
	return strings.Join(parts, ", ")
}

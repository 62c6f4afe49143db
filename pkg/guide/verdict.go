package guide

import (
	"errors"
	"fmt"
	"slices"

	"github.com/certhook/certhook/pkg/fault"
)

// Err is the verdict on results: nil where nothing has to be done, an error of kind Verdict where something
// is missing or wrong, whatever else could not be told, and else one of kind Unknown. A lock that is missing
// is an error of its own, so that it is read.
func Err(results []Result) error {
	var no, cannot int
	var locks []error
	for _, r := range results {
		for _, f := range r.Findings {
			switch {
			case f.Fine():
			case f.Status == Unknown:
				cannot++
			case f.Status == Open:
				no++
				locks = append(locks, fault.Errorf(fault.Verdict, "%s; %s", f.Detail, f.Advice).
					WithHint("without it whoever passes the check of any CA gets a certificate for %s; ALLOW_MISSING_CAA=true accepts that", r.Name))
			default:
				no++
			}
		}
	}
	switch {
	case no > 0:
		summary := fmt.Errorf("%s missing or wrong", count(no, "record is", "records are"))
		if cannot > 0 {
			summary = fmt.Errorf("%w, and %s", summary, cannotTell(cannot))
		}
		return errors.Join(append(locks, &fault.Error{Kind: fault.Verdict, Err: summary, Hint: "dnsguide records prints all that the names need"})...)
	case cannot > 0:
		return fault.Errorf(fault.Unknown, "%s", cannotTell(cannot)).
			WithHint("this is not the same as missing: each line says why; where nobody answers, look at the network and at DNS_RESOLVERS, then try again")
	}
	return nil
}

func cannotTell(n int) string {
	return fmt.Sprintf("%s could not be decided", count(n, "check", "checks"))
}

// Accepted lists the locks that are missing with the settings' leave: one loud line each.
func Accepted(results []Result) []string {
	var lines []string
	for _, r := range results {
		for _, f := range r.Findings {
			if f.Accepted {
				lines = append(lines, fmt.Sprintf("ACCEPTED WITHOUT A LOCK (ALLOW_MISSING_CAA): %s; %s", f.Detail, f.Advice))
			}
		}
	}
	return lines
}

// Warnings lists what is fine now and will not be soon, a line each.
func Warnings(results []Result) []string {
	var lines []string
	for _, r := range results {
		for _, f := range r.Findings {
			if line := fmt.Sprintf("%s: %s", r.Name, f.Warning); f.Warning != "" {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

func count(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

// Fine reports whether nothing has to be done for any name.
func Fine(results []Result) bool {
	return !slices.ContainsFunc(results, func(r Result) bool { return !r.Fine() })
}

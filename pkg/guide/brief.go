package guide

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"syscall"

	"github.com/certhook/certhook/pkg/authority"
	"github.com/certhook/certhook/pkg/resolver"
)

// undecided fills in that a check could not be made: what could not be learnt, and of the error as much as fits
// into a row. All of it is the finding's Cause.
func (f Finding) undecided(what string, err error) Finding {
	f.Status, f.Detail, f.Cause = Unknown, what+": "+brief(err), err.Error()
	return f
}

// brief tells an error in which many servers may have failed in a few words: who gave no answer, for each reason once.
func brief(err error) string {
	var reasons []string
	servers := map[string][]string{}
	for _, e := range failures(err) {
		reason := silence(e)
		if servers[reason] == nil {
			reasons = append(reasons, reason)
		}
		if name := hostOf(e.Server); !slices.Contains(servers[reason], name) {
			servers[reason] = append(servers[reason], name)
		}
	}
	if len(reasons) == 0 {
		return oneLine(err.Error())
	}
	for i, reason := range reasons {
		reasons[i] = few(servers[reason]) + ": " + reason
	}
	return strings.Join(reasons, "; ")
}

// failures lists the questions without an answer in an error, each server's with one reason once.
func failures(err error) []*resolver.Error {
	switch e := err.(type) {
	case nil:
		return nil
	case *resolver.Error:
		return []*resolver.Error{e}
	case interface{ Unwrap() []error }:
		var all []*resolver.Error
		for _, err := range e.Unwrap() {
			all = append(all, failures(err)...)
		}
		return all
	}
	return failures(errors.Unwrap(err))
}

// silence says in a few words why a server gave no answer.
func silence(e *resolver.Error) string {
	switch {
	case e.Rcode != 0:
		return resolver.RcodeName(e.Rcode)
	case errors.Is(e, resolver.ErrTimeout), errors.Is(e, context.DeadlineExceeded):
		return "no answer in time"
	case errors.Is(e, authority.ErrNotAuthoritative):
		return "does not serve the zone"
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](e.Err); ok {
		return "its TLS certificate is not valid"
	}
	if errno, ok := errors.AsType[syscall.Errno](e.Err); ok {
		return errno.Error()
	}
	// What wraps an error names the server once more.
	inner := e.Err
	for next := errors.Unwrap(inner); next != nil; next = errors.Unwrap(inner) {
		inner = next
	}
	const most = 80 // characters
	text, _, _ := strings.Cut(cmp.Or(inner, error(e)).Error(), "\n")
	if r := []rune(text); len(r) > most {
		text = string(r[:most]) + "…"
	}
	return text
}

// hostOf names a server by what tells it from others: the host of a resolver's URL.
func hostOf(server string) string {
	u, err := url.Parse(server)
	switch {
	case err != nil || u.Host == "":
		return server
	case u.User != nil: // https://dns.google@8.8.8.8/dns-query
		return u.User.Username()
	}
	return u.Host
}

// few names some of many.
func few(names []string) string {
	const most = 4
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

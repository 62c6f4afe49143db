package challenge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/certhook/certhook/pkg/caa"
	"github.com/certhook/certhook/pkg/certbot"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/journal"
)

// Issuance is who is to issue and to whom.
type Issuance struct {
	Server     string // directory URL of the CA
	CertbotDir string // certbot's --config-dir, where the account is found

	// Issuers tells what CAA records call the CA, the name to use first; it may have to ask the CA. An error
	// means that they are not checked. Without it they are not even looked at.
	Issuers func(context.Context) ([]string, error)
}

// issuersTimeout is how long the CA may take to tell its name: a hook call waits as long at worst.
const issuersTimeout = 5 * time.Second

const (
	// StepCAA happens once a domain.
	StepCAA StepName = "caa"
	// StepLock happens once an order, if a domain is open to others than the account.
	StepLock StepName = "lock"
)

// method is how we have the CA validate.
const method = "dns-01"

// lookup is what was found of a domain's CAA records, and of what they call the CA.
type lookup struct {
	issuers []string
	unnamed error // why there are no issuers
	set     caa.Set
	err     error
	took    time.Duration
}

// lookUpCAA starts to look for the CAA records and returns a function that waits for the outcome.
func (h *Hooks) lookUpCAA(ctx context.Context, domain string) func() lookup {
	if h.Issuance.Issuers == nil {
		return func() lookup { return lookup{} }
	}
	done := make(chan lookup, 1)
	go func() {
		began := time.Now()
		var l lookup
		var wg sync.WaitGroup
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, issuersTimeout)
			defer cancel()
			l.issuers, l.unnamed = h.Issuance.Issuers(ctx)
		})
		wg.Go(func() { l.set, l.err = caa.Lookup(ctx, h.DNS, h.Panel, domain) })
		wg.Wait()
		l.took = time.Since(began)
		done <- l
	}()
	return func() lookup { return <-done }
}

// checkCAA tells whether the domain's CAA records forbid what the order is for: an error, of kind Verdict,
// only by proof of authoritative servers. unlocked says that others than the account may get certificates
// for it, and what to do about that; "" if not.
func (h *Hooks) checkCAA(c certbot.Challenge, l lookup) (unlocked string, err error) {
	if h.Issuance.Issuers == nil {
		return "", nil
	}
	if l.unnamed != nil {
		level := slog.LevelInfo
		if c.First() {
			level = slog.LevelWarn
		}
		h.Log.Log(context.Background(), level, fmt.Sprintf("CAA records are not checked: %v; set ISSUER_DOMAIN_NAME", l.unnamed))
		return "", nil
	}
	s := Step{Name: StepCAA, Domain: c.Domain, Took: l.took}
	if l.err != nil {
		h.cannotTell(s, l.err)
		return "", nil
	}
	set := l.set
	owner := h.Issuance.account(c.Names)
	if c.First() && len(owner.several) > 0 {
		h.Log.Warn(fmt.Sprintf("certbot has several accounts at %s, and no certificate for these names that would tell which one counts: CAA records are checked without the account", h.Issuance.Server))
	}
	q := caa.Question{Domain: c.Domain, Issuer: l.issuers[0], Also: l.issuers[1:], Method: method, Account: owner.uri}
	result, forbidden := judge(q, set, c)
	for _, v := range set.Views { // what the CA finds where it asks one server rather than another; none of it is proof
		if r, _ := judge(q, v.Set, c); v.Err == nil && worse(r, result) {
			result, set = r, v.Set
		}
	}
	switch {
	case forbidden && set.Proven:
		s.Err = fault.Errorf(fault.Verdict, "CAA forbids certificates for %s: %s", c.Domain, owner.mend(q, set, result)).
			WithHint("this is so for the CA at %s; if certbot uses another one (--server, --staging), set ACME_SERVER", h.Issuance.Server)
	case !result.Allowed:
		s.Warn = true
		s.Detail = "CAA may forbid it: " + owner.mend(q, set, result)
	case len(set.Records) == 0:
		s.Detail = "no CAA records: every CA may issue"
	default:
		s.Detail = fmt.Sprintf("CAA of %s allows it, %s", set.Owner, map[caa.Lock]string{
			caa.Locked: "and nobody else", caa.Open: "and others", caa.Absent: "for it forbids nothing",
		}[result.Lock])
	}
	h.step(s)
	if s.Err != nil || s.Warn {
		return "", s.Err
	}
	for _, n := range result.Notes {
		h.Log.Info("a CAA record is odd", "domain", c.Domain, "record", n.Record, "why", n.Why)
	}
	switch result.Lock {
	case caa.Absent:
		unlocked = fmt.Sprintf("no CAA record locks %s to the ACME account; %s", c.Domain, owner.advice(q, set, result))
	case caa.Open:
		unlocked = fmt.Sprintf("CAA does not lock %s to the ACME account: %s", c.Domain, owner.mend(q, set, result))
	}
	return unlocked, nil
}

// cannotTell is a warning only where it is the servers that fail: to a CA they will fail as well, and it has
// to know. Where it is our way to them, a CA may see more.
func (h *Hooks) cannotTell(s Step, err error) {
	s.Warn = true
	s.Detail = fmt.Sprintf("cannot tell whether CAA records allow it: %v", err)
	if e, ok := errors.AsType[*caa.Error](err); ok && e.Refused {
		s.Detail = fmt.Sprintf("the servers fail when asked for CAA records, and a CA does not issue then: %v", err)
		h.step(s)
		return
	}
	h.Log.Info("caa unknown", "domain", s.Domain, "detail", s.Detail)
	if h.Observe != nil {
		h.Observe(s)
	}
}

// judge evaluates what the order may be about. Certbot does not tell a wildcard from its base name, so that
// a domain that occurs once may be either: it is forbidden if both are.
func judge(q caa.Question, set caa.Set, c certbot.Challenge) (result caa.Result, forbidden bool) {
	name := caa.Evaluate(q, set)
	q.Wildcard = true
	wildcard := caa.Evaluate(q, set)
	times := 0
	for _, n := range c.Names {
		if n == c.Domain {
			times++
		}
	}
	switch {
	case times > 1 && !wildcard.Allowed && name.Allowed:
		return wildcard, true
	case times > 1:
		return name, !name.Allowed
	}
	return name, !name.Allowed && !wildcard.Allowed
}

// worse reports whether a result forbids or opens what another one does not.
func worse(r, other caa.Result) bool {
	if r.Allowed != other.Allowed {
		return other.Allowed
	}
	return other.Lock == caa.Locked && r.Lock != caa.Locked
}

// owner is the account that the certificate is for, as far as that is known.
type owner struct {
	uri     string
	several []string // URIs of which it is one
	unknown string   // why it is not known, and what to do
}

func (i Issuance) account(names []string) owner {
	account, err := certbot.AccountFor(i.CertbotDir, i.Server, names)
	several, _ := errors.AsType[certbot.SeveralAccounts](err)
	switch {
	case err == nil:
		return owner{uri: account.URI}
	case len(several) > 0:
		return owner{several: several.URIs()}
	case errors.Is(err, certbot.ErrNoAccount):
		return owner{unknown: fmt.Sprintf("%s has no account at %s to lock it to yet: after certbot register this line tells the record to add", i.CertbotDir, i.Server)}
	}
	return owner{unknown: fmt.Sprintf("which record to add cannot be told: %v", err)}
}

// mend says what is wrong and how to mend it.
func (o owner) mend(q caa.Question, set caa.Set, r caa.Result) string {
	what := []string{r.Fault.String()}
	if r.Allowed {
		what = nil
		for _, gap := range r.Gaps {
			what = append(what, gap.String())
		}
	}
	return fmt.Sprintf("%s; %s", strings.Join(what, ", and "), o.advice(q, set, r))
}

func (o owner) advice(q caa.Question, set caa.Set, r caa.Result) string {
	switch {
	case o.unknown != "":
		return o.unknown
	case len(o.several) > 0:
		q.Account = "ACCOUNT"
		return q.Advice(set, r) + ", where ACCOUNT is one of " + strings.Join(o.several, ", ")
	}
	return q.Advice(set, r)
}

// most is how many domains one warning tells of in full.
const most = 3

// warnUnlocked keeps in mind what checkCAA says of a domain that is open to others, and tells it with the
// order's last call in one line.
func (h *Hooks) warnUnlocked(f *journal.File, c certbot.Challenge, unlocked string) {
	if unlocked != "" && !slices.Contains(f.Unlocked, unlocked) {
		h.Log.Info(unlocked)
		f.Unlocked = append(f.Unlocked, unlocked)
		if !c.Last() {
			if err := f.Save(); err != nil {
				h.Log.Warn("a warning will be missing", "error", err)
			}
		}
	}
	if !c.Last() || len(f.Unlocked) == 0 {
		return
	}
	line := strings.Join(f.Unlocked[:min(most, len(f.Unlocked))], ". Also: ")
	if more := len(f.Unlocked) - most; more > 0 {
		line += fmt.Sprintf(". The same goes for %s: see the log", plural(more, "more name"))
	}
	h.Log.Warn(line)
	if h.Observe != nil {
		h.Observe(Step{Name: StepLock, Detail: line, Warn: true})
	}
}

package main

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/tests/cloudflaretest"
	"github.com/certhook/certhook/tests/dnstest"
	"github.com/certhook/certhook/tests/lab"
)

// foreign is the value that somebody else has at the names of our challenges.
const foreign = "somebody-else-put-this-here"

// detail is how much a watch tells. What the CA sees it tells in any case, unless it is silent.
type detail int

const (
	silent detail = iota
	brief         // calls of the API are counted, name servers left out
	full
)

// watch tells what the other side sees: the DNS provider's API, the name servers, and the CA's resolver
// through them. Nothing that it finds out itself comes from the hooks.
type watch struct {
	event  func(at time.Time, who, what string)
	stored func() []cloudflaretest.Record // what the alias zone holds at the provider

	mu      sync.Mutex
	detail  detail
	told    map[string]bool   // in this act, what is told once
	calls   map[string]int    // in this act, by method
	waiting []apiCall         // calls of a kind that ran at once, to be told in one line
	values  map[string]string // of the provider's records, by their ids
	// About our names in the alias zone:
	answers int      // so many were given
	gaps    []string // and the servers whose answers lacked the foreign value
}

func newWatch(event func(time.Time, string, string), stored func() []cloudflaretest.Record) *watch {
	return &watch{
		event: event, stored: stored,
		told: map[string]bool{}, calls: map[string]int{}, values: map[string]string{},
	}
}

// begin starts an act.
func (w *watch) begin(d detail) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flush()
	w.detail = d
	clear(w.told)
	clear(w.calls)
}

// end ends an act; after a brief one it says how many calls there were.
func (w *watch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flush()
	if w.detail == brief {
		var counts []string
		for _, method := range slices.Sorted(maps.Keys(w.calls)) {
			counts = append(counts, fmt.Sprintf("%d %s", w.calls[method], method))
		}
		w.event(time.Now(), "api", strings.Join(counts, ", "))
	}
}

// say tells what was found out elsewhere.
func (w *watch) say(who, what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tell(time.Now(), who, what)
}

func (w *watch) tell(at time.Time, who, what string) {
	w.flush()
	w.event(at, who, what)
}

// flush tells the calls that wait for another of their kind.
func (w *watch) flush() {
	if len(w.waiting) > 0 {
		w.event(w.waiting[len(w.waiting)-1].End, "api", apiLine(w.waiting))
		w.waiting = nil
	}
}

// once reports whether something has yet to be told in this act.
func (w *watch) once(key ...string) bool {
	k := strings.Join(key, " ")
	fresh := !w.told[k]
	w.told[k] = true
	return fresh
}

// foreignSeen returns how many answers there were about our names, and who gave one without the foreign
// value.
func (w *watch) foreignSeen() (answers int, gaps []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.answers, w.gaps
}

// call is told of every call of the provider's API.
func (w *watch) call(call cloudflaretest.Call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := apiCall{Call: call}
	switch c.Method {
	case http.MethodPost:
		for _, r := range w.stored() {
			w.values[r.ID] = strings.Trim(r.Content, `"`)
		}
	case http.MethodDelete:
		c.removed = w.values[c.record()]
	}
	w.calls[c.Method]++
	if w.detail < full {
		return
	}
	if len(w.waiting) > 0 && !c.joins(w.waiting[0]) {
		w.flush()
	}
	w.waiting = append(w.waiting, c)
}

// query is told of every question to a name server and its answer. It is about the records that
// challenges use.
func (w *watch) query(q dnstest.Query) {
	if q.Type != dns.TypeTXT || !q.AA || !dnsname.Within(q.Name, lab.AliasZone) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answers++
	if !slices.Contains(q.Answer, foreign) {
		w.gaps = append(w.gaps, q.Server)
	}
	values := slices.Sorted(slices.Values(q.Answer))
	if q.From.String() == lab.CAResolver {
		if w.detail > silent && w.once("ca", q.Name, strings.Join(values, " ")) {
			w.tell(q.Time, "ca", fmt.Sprintf("looks, and sees at %s: %s", q.Server, shortAll(values)))
		}
		return
	}
	fresh := slices.DeleteFunc(values, func(v string) bool { return v == foreign || !w.once(q.Server, v) })
	if len(fresh) > 0 && w.detail == full {
		w.tell(q.Time, "dns", q.Server+" shows "+shortAll(fresh))
	}
}

// short is enough of a challenge's value to tell it from others.
func short(value string) string {
	const most = 8
	return clip(value, most)
}

// shortAll lists values, the foreign one last.
func shortAll(values []string) string {
	var all []string
	for _, v := range values {
		if v != foreign {
			all = append(all, short(v))
		}
	}
	if slices.Contains(values, foreign) {
		all = append(all, "somebody else's")
	}
	return strings.Join(all, ", ")
}

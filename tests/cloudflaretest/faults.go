package cloudflaretest

import (
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strconv"
	"time"
)

// Fault makes some calls go wrong. The first fields choose them, the others say how; several may be
// combined. Without Act the call has no effect where the fault replaces its answer.
type Fault struct {
	Method string // "" = any
	Path   string // pattern of path.Match after [Prefix], such as "/zones/*/dns_records"; "" = any
	After  int    // so many matching calls pass first
	Count  int    // so many then fail; 0 = all

	Act        bool                // carry the call out first
	Status     int                 // answer with this status; 0 = leave the answer alone, or 200 if Body is set
	Body       string              // the answer's body
	RetryAfter int                 // seconds; 0 = no such header
	Location   string              // redirect: with Status 3xx
	Drop       bool                // close the connection without an answer
	Rewrite    func([]byte) []byte // carry the call out, change the body of its true answer

	Delay time.Duration // wait before anything happens
	Slow  time.Duration // send the body byte by byte, with so much time between
	Cut   bool          // send half the body, then close the connection

	// Then is called when the answer is ready and before it is sent; the connection ends with that answer.
	// With [Server.SetRefusing] or [Server.SetCertificate] the next call is the first that fails.
	Then func()
}

// Paths for [Fault.Path].
const (
	Zones     = "/zones"
	RecordSet = "/zones/*/dns_records"
	OneRecord = "/zones/*/dns_records/*"
)

// HTML502 is what the edge answers when the API behind it is down.
var HTML502 = Fault{Status: http.StatusBadGateway, Body: "<html><head><title>502 Bad Gateway</title></head><body>cloudflare</body></html>"}

// Forbidden is a refusal for want of a permission.
var Forbidden = Fault{Status: http.StatusForbidden, Body: `{"success":false,"errors":[{"code":10000,"message":"Authentication error"}],"messages":[],"result":null}`}

// RateLimited is a refusal for too many calls. Set RetryAfter where it is wanted.
var RateLimited = Fault{Status: http.StatusTooManyRequests, Body: `{"success":false,"errors":[{"code":10429,"message":"Rate limited. Please wait and consider throttling your request speed"}],"messages":[],"result":null}`}

// Unsuccessful is a failure that calls itself 200 OK.
var Unsuccessful = Fault{Body: `{"success":false,"errors":[],"messages":[],"result":null}`}

// NullResult is a success without a result.
var NullResult = Fault{Body: `{"success":true,"errors":[],"messages":[],"result":null}`}

// LostReply carries the call out and closes the connection.
var LostReply = Fault{Act: true, Drop: true}

// On returns the fault for calls of that method and path only.
func (f Fault) On(method, path string) Fault {
	f.Method, f.Path = method, path
	return f
}

// Times returns the fault for the next n matching calls only.
func (f Fault) Times(n int) Fault {
	f.Count = n
	return f
}

type armed struct {
	Fault
	seen int
}

// Break arms a fault until lift is called. The first armed fault that matches a call applies.
func (s *Server) Break(f Fault) (lift func()) {
	if _, err := path.Match(f.Path, ""); err != nil {
		s.tb.Fatalf("fault with path pattern %q: %v", f.Path, err)
	}
	a := &armed{Fault: f}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, a)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.faults = slices.DeleteFunc(s.faults, func(x *armed) bool { return x == a })
	}
}

// faultFor returns the fault for a call, or one that does nothing.
func (s *Server) faultFor(method, p string) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.faults {
		if a.Method != "" && a.Method != method {
			continue
		}
		if match, _ := path.Match(a.Path, p); a.Path != "" && !match {
			continue
		}
		a.seen++
		if a.seen > a.After && (a.Count == 0 || a.seen <= a.After+a.Count) {
			return a.Fault
		}
	}
	return Fault{}
}

// replaces reports whether the answer is the fault's own.
func (f Fault) replaces() bool {
	return f.Status != 0 || f.Body != "" || f.Drop
}

// send answers with rep, or what the fault makes of it, and returns the status sent, 0 for none.
func (f Fault) send(s *Server, w http.ResponseWriter, r *http.Request, rep reply) int {
	if f.Drop {
		panic(http.ErrAbortHandler)
	}
	if f.replaces() {
		rep = reply{status: f.Status, body: []byte(f.Body), header: http.Header{"Content-Type": {"text/html"}}}
		if rep.status == 0 {
			rep.status = http.StatusOK
		}
	}
	if f.Rewrite != nil {
		rep.body = f.Rewrite(rep.body)
	}
	for key, values := range rep.header {
		w.Header()[key] = values
	}
	if f.RetryAfter != 0 {
		w.Header().Set("Retry-After", strconv.Itoa(f.RetryAfter))
	}
	if f.Location != "" {
		w.Header().Set("Location", f.Location)
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(rep.body)))
	if f.Then != nil {
		w.Header().Set("Connection", "close")
		f.Then()
	}
	w.WriteHeader(rep.status)
	if f.Cut {
		rep.body = rep.body[:len(rep.body)/2]
	}
	if f.Slow > 0 {
		s.trickle(w, r, f.Slow, rep.body)
	} else {
		_, _ = w.Write(rep.body) // a client that has gone is no failure of ours
	}
	if f.Cut {
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	return rep.status
}

func (s *Server) trickle(w io.Writer, r *http.Request, pause time.Duration, body []byte) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	flush := http.NewResponseController(w.(http.ResponseWriter))
	for _, b := range body {
		if _, err := w.Write([]byte{b}); err != nil || flush.Flush() != nil {
			return
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		case <-s.closing.Done():
			return
		}
	}
}

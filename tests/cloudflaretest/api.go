package cloudflaretest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// reply is an answer before it is sent.
type reply struct {
	status int
	header http.Header
	body   []byte
}

type apiError struct {
	Code    int        `json:"code"`
	Message string     `json:"message"`
	Chain   []apiError `json:"error_chain,omitempty"`
}

type resultInfo struct {
	Page       int `json:"page"`
	PerPage    int `json:"per_page"`
	Count      int `json:"count"`
	TotalCount int `json:"total_count"`
	TotalPages int `json:"total_pages"`
}

type envelope struct {
	Result   any         `json:"result"`
	Success  bool        `json:"success"`
	Errors   []apiError  `json:"errors"`
	Messages []apiError  `json:"messages"`
	Info     *resultInfo `json:"result_info,omitempty"`
}

func succeed(result any, info *resultInfo) reply {
	return encode(http.StatusOK, envelope{Result: result, Success: true, Errors: []apiError{}, Messages: []apiError{}, Info: info})
}

func refuse(status, code int, message string, chain ...apiError) reply {
	return encode(status, envelope{Errors: []apiError{{Code: code, Message: message, Chain: chain}}, Messages: []apiError{}})
}

func encode(status int, e envelope) reply {
	body, err := json.Marshal(e)
	if err != nil {
		panic(err) // plain structs of ours always encode
	}
	return reply{status: status, body: body, header: http.Header{"Content-Type": {"application/json"}}}
}

// ServeHTTP answers one call and writes it down.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, isAPI := strings.CutPrefix(r.URL.Path, Prefix)
	call, ok := s.begin(r, path)
	if !ok {
		panic(http.ErrAbortHandler)
	}
	status := 0 // stays 0 where the connection is closed without a reply
	defer func() { s.end(call, status) }()

	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil { // the client died while it sent
		panic(http.ErrAbortHandler)
	}
	s.intercepted(call, Arrived)
	fault := s.faultFor(r.Method, path)
	s.pause(r, fault.Delay)
	if r.Context().Err() != nil { // the client gave up: it must not see effects later
		panic(http.ErrAbortHandler)
	}

	var rep reply
	switch {
	case !isAPI:
		rep = s.misuse(r, http.StatusNotFound, 7000, "No route for that URI", "unknown endpoint")
	case !fault.replaces() || fault.Act:
		rep = s.route(r, path, body)
	}
	s.intercepted(call, Decided)
	status = fault.send(s, w, r, rep)
}

// pause waits for the server's delay and extra, or until the client or the test has gone.
func (s *Server) pause(r *http.Request, extra time.Duration) {
	s.mu.Lock()
	d := s.delay + extra
	s.mu.Unlock()
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
	case <-s.closing.Done():
	}
}

// misuse fails the test and refuses the call.
func (s *Server) misuse(r *http.Request, status, code int, message, why string) reply {
	s.tb.Errorf("cloudflaretest: %s %s: %s", r.Method, r.URL.Path, why)
	return refuse(status, code, message)
}

func (s *Server) route(r *http.Request, path string, body []byte) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.HasSuffix(path, "/tokens/verify") {
		return s.verify(r, strings.TrimSuffix(path, "/tokens/verify"))
	}
	token, rep, ok := s.authenticate(r)
	if !ok {
		return rep
	}
	if r.Method == http.MethodPut || r.Method == http.MethodPatch {
		return s.misuse(r, http.StatusMethodNotAllowed, 10405, "Method not allowed", "it would replace what others wrote")
	}
	part := strings.Split(strings.TrimPrefix(path, "/"), "/")
	if part[0] != "zones" || len(part) > 4 || len(part) > 2 && part[2] != "dns_records" {
		return s.misuse(r, http.StatusNotFound, 7000, "No route for that URI", "unknown endpoint")
	}
	if len(part) == 1 {
		if r.Method != http.MethodGet {
			return s.misuse(r, http.StatusMethodNotAllowed, 10405, "Method not allowed", "unknown endpoint")
		}
		return s.listZones(r, token)
	}

	z := s.zoneByID(part[1])
	if z == nil {
		return refuse(http.StatusNotFound, 7003, fmt.Sprintf("Could not route to %s, perhaps your object identifier is invalid?", path))
	}
	if !token.covers(z.name) && !token.sees(z.name) {
		if !s.tolerated {
			s.tb.Errorf("cloudflaretest: %s %s: zone %q is not the token's", r.Method, r.URL.Path, z.name)
		}
		return refuse(http.StatusForbidden, 10000, "Authentication error")
	}
	switch {
	case len(part) == 2 && r.Method == http.MethodGet:
		if !token.sees(z.name) {
			return refuse(http.StatusForbidden, 9109, "Unauthorized to access requested resource")
		}
		return succeed(s.show(z, token), nil)
	case len(part) > 2 && (!token.DNSEdit || !token.covers(z.name)):
		return refuse(http.StatusForbidden, 10000, "Authentication error")
	case len(part) == 3 && r.Method == http.MethodGet:
		return s.listRecords(r, z)
	case len(part) == 3 && r.Method == http.MethodPost:
		return s.createRecord(r, z, body)
	case len(part) == 4 && r.Method == http.MethodGet:
		return s.getRecord(z, part[3], path)
	case len(part) == 4 && r.Method == http.MethodDelete:
		return s.deleteRecord(z, part[3], path)
	}
	return s.misuse(r, http.StatusMethodNotAllowed, 10405, "Method not allowed", "unknown endpoint")
}

func wellFormed(secret string) bool {
	return secret != "" && strings.Trim(secret, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

// query returns the parameters of a request; one that is not known here fails the test, since it would be
// ignored in silence, or mean something else.
func (s *Server) query(r *http.Request, known ...string) (url.Values, reply, bool) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, s.misuse(r, http.StatusBadRequest, 6003, "Invalid request", err.Error()), false
	}
	for key, values := range query {
		if !slices.Contains(known, key) || len(values) != 1 {
			why := fmt.Sprintf("query parameter %q is unknown or given %d times", key, len(values))
			return nil, s.misuse(r, http.StatusBadRequest, 6003, "Invalid request", why), false
		}
	}
	return query, reply{}, true
}

// page cuts the asked-for page out of all.
func page(query url.Values, all []any, perPage, least, most int) reply {
	number := 1
	for key, into := range map[string]*int{"page": &number, "per_page": &perPage} {
		if !query.Has(key) {
			continue
		}
		n, err := strconv.Atoi(query.Get(key))
		if err != nil || n < 1 || key == "per_page" && (n < least || n > most) {
			return refuse(http.StatusBadRequest, 6003, "Invalid request",
				apiError{Code: 6103, Message: fmt.Sprintf("Invalid value for %s", key)})
		}
		*into = n
	}
	from := min((number-1)*perPage, len(all))
	to := min(from+perPage, len(all))
	shown := all[from:to]
	if shown == nil {
		shown = []any{}
	}
	return succeed(shown, &resultInfo{
		Page: number, PerPage: perPage, Count: len(shown), TotalCount: len(all),
		TotalPages: (len(all) + perPage - 1) / perPage,
	})
}

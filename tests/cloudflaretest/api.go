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
	Messages []string    `json:"messages"`
	Info     *resultInfo `json:"result_info,omitempty"`
}

func succeed(result any, info *resultInfo) reply {
	return encode(http.StatusOK, envelope{Result: result, Success: true, Errors: []apiError{}, Messages: []string{}, Info: info})
}

func refuse(status, code int, message string, chain ...apiError) reply {
	return encode(status, envelope{Errors: []apiError{{Code: code, Message: message, Chain: chain}}, Messages: []string{}})
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
	if !token.covers(z.name) {
		if !s.tolerated {
			s.tb.Errorf("cloudflaretest: %s %s: zone %q is not the token's", r.Method, r.URL.Path, z.name)
		}
		return refuse(http.StatusForbidden, 10000, "Authentication error")
	}
	switch {
	case len(part) == 2 && r.Method == http.MethodGet:
		if !token.ZoneRead {
			return refuse(http.StatusForbidden, 9109, "Unauthorized to access requested resource")
		}
		return succeed(z.json(), nil)
	case len(part) > 2 && !token.DNSEdit:
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

func (s *Server) authenticate(r *http.Request) (Token, reply, bool) {
	secret, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || !wellFormed(secret) {
		return Token{}, refuse(http.StatusBadRequest, 6003, "Invalid request headers",
			apiError{Code: 6111, Message: "Invalid format for Authorization header"}), false
	}
	for _, t := range s.tokens {
		if t.Secret == secret {
			return t, reply{}, true
		}
	}
	status, code, message := s.quirks.BadTokenStatus, s.quirks.BadTokenCode, "Invalid access token"
	if status == 0 {
		status = http.StatusForbidden
	}
	if code == 0 {
		code = 9109
	}
	if code == 10000 {
		message = "Authentication error"
	}
	return Token{}, refuse(status, code, message), false
}

func wellFormed(secret string) bool {
	return secret != "" && strings.Trim(secret, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

func (z *zone) json() map[string]any {
	return map[string]any{
		"id": z.id, "name": z.shown, "status": z.status, "paused": false, "type": "full", "development_mode": 0,
		"account":      map[string]any{"id": ZoneID("account"), "name": "test"},
		"name_servers": []string{"ada.ns.cloudflare.com", "bob.ns.cloudflare.com"},
		"created_on":   created, "modified_on": created, "activated_on": created,
	}
}

// created is the time that everything here was made at; nothing depends on it.
const created = "2026-01-02T03:04:05.678901Z"

func (s *Server) listZones(r *http.Request, token Token) reply {
	query, rep, ok := s.query(r, "name", "page", "per_page")
	if !ok {
		return rep
	}
	scoped := !token.AllZones && !query.Has("name") && !s.quirks.FilteredList
	if !token.ZoneRead || scoped {
		return refuse(http.StatusForbidden, 0, "Actor 'com.cloudflare.api.token.test' requires permission "+
			"'com.cloudflare.api.account.zone.list' to list zones")
	}
	name := strings.TrimSuffix(strings.ToLower(query.Get("name")), ".")
	var visible []any
	for _, z := range s.zones {
		// An IDN zone is not found by its A-labels (cloudflare-go issue 347).
		if token.covers(z.name) && (!query.Has("name") || z.shown == name) {
			visible = append(visible, z.json())
		}
	}
	return page(query, visible, 20, 5, 50)
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

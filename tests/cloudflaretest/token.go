package cloudflaretest

import (
	"net/http"
	"strings"
	"time"
)

// AccountID is the id of the account that all zones belong to.
var AccountID = ZoneID("account")

// authenticate finds the token of a call. One that is not good at the time is answered as one that nobody
// issued.
func (s *Server) authenticate(r *http.Request) (Token, reply, bool) {
	token, known, rep := s.find(r)
	if known && token.status() == active {
		return token, reply{}, true
	}
	if rep.status != 0 {
		return Token{}, rep, false
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

// find returns the token that a call bears. The reply is set if there is nothing that looks like one.
func (s *Server) find(r *http.Request) (token Token, known bool, rep reply) {
	secret, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || !wellFormed(secret) {
		return Token{}, false, refuse(http.StatusBadRequest, 6003, "Invalid request headers",
			apiError{Code: 6111, Message: "Invalid format for Authorization header"})
	}
	for _, t := range s.tokens {
		if t.Secret == secret {
			return t, true, reply{}
		}
	}
	return Token{}, false, reply{}
}

const active = "active"

func (t Token) status() string {
	now := time.Now()
	switch {
	case !t.Expires.IsZero() && !now.Before(t.Expires):
		return "expired"
	case t.Disabled || now.Before(t.NotBefore):
		return "disabled"
	}
	return active
}

// verify tells a token's validity. whose is "/user" or "/accounts/<id>"; a token is unknown at the other's.
func (s *Server) verify(r *http.Request, whose string) reply {
	if r.Method != http.MethodGet || len(r.URL.RawQuery) > 0 {
		return s.misuse(r, http.StatusMethodNotAllowed, 10405, "Method not allowed", "unknown endpoint")
	}
	if whose != "/user" && whose != "/accounts/"+AccountID {
		return s.misuse(r, http.StatusNotFound, 7003, "Could not route to "+r.URL.Path, "unknown account")
	}
	token, known, rep := s.find(r)
	if rep.status != 0 {
		return rep
	}
	right := known && token.OfAccount == (whose != "/user")
	if !right || s.quirks.DeadUnverified && token.status() != active {
		return refuse(http.StatusUnauthorized, 1000, "Invalid API Token")
	}
	result := map[string]any{"id": ZoneID("token " + token.Secret), "status": token.status()}
	for key, at := range map[string]time.Time{"expires_on": token.Expires, "not_before": token.NotBefore} {
		if !at.IsZero() {
			result[key] = at.UTC().Format(time.RFC3339)
		}
	}
	e := envelope{Result: result, Success: true, Errors: []apiError{}, Messages: []apiError{}}
	if token.status() == active {
		e.Messages = append(e.Messages, apiError{Code: 10000, Message: "This API Token is valid and active"})
	}
	return encode(http.StatusOK, e)
}

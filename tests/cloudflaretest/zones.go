package cloudflaretest

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
)

// show is a zone as a token sees it.
func (s *Server) show(z *zone, t Token) map[string]any {
	shown := map[string]any{
		"id": z.id, "name": z.shown, "status": z.status, "paused": false, "type": "full", "development_mode": 0,
		"account":      map[string]any{"id": AccountID, "name": "test"},
		"name_servers": []string{"ada.ns.cloudflare.com", "bob.ns.cloudflare.com"},
		"created_on":   created, "modified_on": created, "activated_on": created,
	}
	if !s.quirks.NoPermissions {
		permissions := []string{"#zone:read"}
		if t.DNSEdit && t.covers(z.name) {
			permissions = []string{"#dns_records:edit", "#dns_records:read", "#zone:read"}
		}
		shown["permissions"] = permissions
	}
	return shown
}

// created is the time that everything here was made at; nothing depends on it.
const created = "2026-01-02T03:04:05.678901Z"

func (s *Server) listZones(r *http.Request, token Token) reply {
	query, rep, ok := s.query(r, "name", "page", "per_page", "order", "direction")
	if !ok {
		return rep
	}
	if query.Has("order") && query.Get("order") != "name" || query.Has("direction") && query.Get("direction") != "asc" {
		return s.misuse(r, http.StatusBadRequest, 6003, "Invalid request", "zones are listed by name, ascending, or unordered")
	}
	scoped := !token.AllZones && !query.Has("name") && !s.quirks.FilteredList
	blind := !token.ZoneRead && len(token.ReadZones) == 0 && !s.quirks.EmptyList
	if blind || scoped {
		return refuse(http.StatusForbidden, 0, "Actor 'com.cloudflare.api.token.test' requires permission "+
			"'com.cloudflare.api.account.zone.list' to list zones")
	}
	name := strings.TrimSuffix(strings.ToLower(query.Get("name")), ".")
	var visible []*zone
	for _, z := range s.zones {
		// An IDN zone is not found by its A-labels (cloudflare-go issue 347).
		if token.sees(z.name) && (!query.Has("name") || z.shown == name) {
			visible = append(visible, z)
		}
	}
	if query.Has("order") {
		slices.SortStableFunc(visible, func(a, b *zone) int { return cmp.Compare(a.shown, b.shown) })
	}
	var all []any
	for _, z := range visible {
		all = append(all, s.show(z, token))
	}
	return page(query, all, 20, 5, 50)
}

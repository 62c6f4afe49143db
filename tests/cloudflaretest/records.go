package cloudflaretest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/certhook/certhook/pkg/dnsname"
)

type record struct {
	id, kind, name, content string
	ttl                     int // seconds; 1 = automatic
}

// Record is a record as the API has it.
type Record struct {
	ID, Type, Name string
	Content        string // as it was sent, in quotes or not
	TTL            int    // seconds; 1 means automatic
}

var idForm = regexp.MustCompile(`^[0-9a-f]{32}$`)

// Seed puts a record into a zone as somebody else would have, and returns its id. Content is kept as it is,
// so that a TXT can be there with and without quotes. The test fails if the zone does not exist.
func (s *Server) Seed(zone, kind, name, content string) string {
	s.tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	z := s.zoneByName(zone)
	if z == nil {
		s.tb.Fatalf("seed a record: no zone %q", zone)
		return ""
	}
	return s.insert(z, &record{kind: kind, name: name, content: content, ttl: 300}).id
}

// Records returns what a zone holds, oldest first.
func (s *Server) Records(zone string) []Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Record
	if z := s.zoneByName(zone); z != nil {
		for _, r := range z.records {
			all = append(all, Record{ID: r.id, Type: r.kind, Name: r.name, Content: r.content, TTL: r.ttl})
		}
	}
	return all
}

// TXT returns the values, unquoted, of all TXT records at a name, whatever zone they are in, one for every
// record.
func (s *Server) TXT(name string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var values []string
	for _, z := range s.zones {
		for _, r := range z.records {
			if r.kind == "TXT" && r.name == name {
				values = append(values, unquote(r.content))
			}
		}
	}
	return values
}

func (s *Server) createRecord(r *http.Request, z *zone, body []byte) reply {
	if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); kind != "application/json" {
		return s.misuse(r, http.StatusBadRequest, 6003, "Invalid request headers", "Content-Type is not application/json")
	}
	var sent struct {
		Type, Name, Content string
		TTL                 int
	}
	if err := json.Unmarshal(body, &sent); err != nil {
		return s.misuse(r, http.StatusBadRequest, 9207, "Request body is invalid.", "the body is not JSON: "+err.Error())
	}
	invalid := func(code int, message string) reply {
		return refuse(http.StatusBadRequest, 1004, "DNS Validation Error", apiError{Code: code, Message: message})
	}
	if sent.Type != "TXT" {
		return s.misuse(r, http.StatusBadRequest, 1004, "DNS Validation Error", fmt.Sprintf("record type %q; certhook writes TXT only", sent.Type))
	}
	name, err := z.absolute(sent.Name)
	if err != nil {
		return invalid(9000, "DNS name is invalid.")
	}
	if sent.Content == "" {
		return invalid(9005, "Content for TXT record must not be empty.")
	}
	if strings.ContainsFunc(sent.Content, func(c rune) bool { return c < 0x20 || c > 0x7e }) {
		return invalid(9051, "Content for TXT record must be printable.")
	}
	if sent.TTL == 0 {
		sent.TTL = 1
	}
	if sent.TTL != 1 && (sent.TTL < 60 || sent.TTL > 86400) {
		return invalid(9021, "Invalid TTL. Must be between 60 and 86400 seconds, or 1 for Automatic.")
	}
	for _, old := range z.records {
		same := old.content == sent.Content || s.quirks.IdenticalUnquoted && unquote(old.content) == unquote(sent.Content)
		if old.kind == sent.Type && old.name == name && same {
			return s.identical()
		}
	}
	made := s.insert(z, &record{kind: sent.Type, name: name, content: sent.Content, ttl: sent.TTL})
	return succeed(s.json(z, made), nil)
}

func (s *Server) identical() reply {
	if s.quirks.IdenticalCode == 81057 {
		return refuse(http.StatusBadRequest, 81057, "Record already exists.")
	}
	return refuse(http.StatusBadRequest, 81058, "An identical record already exists.")
}

// absolute is the name that a record sent under name gets: one that ends in the zone's name counts as
// absolute, any other is taken as relative.
func (z *zone) absolute(name string) (string, error) {
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	switch {
	case name == "@":
		return z.name, nil
	case !dnsname.Within(name, z.name):
		name += "." + z.name
	}
	return dnsname.Parse(name)
}

// insert stores a record and shows it in DNS unless a twin of the same value is there already.
func (s *Server) insert(z *zone, r *record) *record {
	s.serial++
	r.id = ZoneID(fmt.Sprintf("record %d", s.serial))
	shown := r.kind != "TXT" || z.holds(r.name, unquote(r.content))
	z.records = append(z.records, r)
	if s.backend != nil && !shown {
		ttl := uint32(r.ttl)
		if r.ttl == 1 {
			ttl = 300
		}
		if err := s.backend.AddTXT(z.name, r.name, unquote(r.content), ttl); err != nil {
			s.tb.Errorf("cloudflaretest: show TXT %q in DNS: %v", r.name, err)
		}
	}
	return r
}

func (z *zone) holds(name, value string) bool {
	return slices.ContainsFunc(z.records, func(r *record) bool {
		return r.kind == "TXT" && r.name == name && unquote(r.content) == value
	})
}

func (s *Server) listRecords(r *http.Request, z *zone) reply {
	query, rep, ok := s.query(r, "type", "name", "content.contains", "content.exact", "page", "per_page")
	if !ok {
		return rep
	}
	name := strings.TrimSuffix(strings.ToLower(query.Get("name")), ".")
	part := strings.ToLower(query.Get("content.contains"))
	var found []any
	for _, rec := range z.records {
		if query.Has("type") && rec.kind != query.Get("type") ||
			query.Has("name") && rec.name != name ||
			query.Has("content.exact") && rec.content != query.Get("content.exact") ||
			!strings.Contains(strings.ToLower(rec.content), part) {
			continue
		}
		found = append(found, s.json(z, rec))
	}
	return page(query, found, 100, 5, 5_000_000)
}

func (s *Server) getRecord(z *zone, id, path string) reply {
	i, rep := z.find(id, path)
	if i < 0 {
		return rep
	}
	return succeed(s.json(z, z.records[i]), nil)
}

func (s *Server) deleteRecord(z *zone, id, path string) reply {
	i, rep := z.find(id, path)
	if i < 0 {
		return rep
	}
	r := z.records[i]
	z.records = slices.Delete(z.records, i, i+1)
	if s.backend != nil && r.kind == "TXT" && !z.holds(r.name, unquote(r.content)) {
		if err := s.backend.RemoveTXT(z.name, r.name, unquote(r.content)); err != nil {
			s.tb.Errorf("cloudflaretest: take TXT %q out of DNS: %v", r.name, err)
		}
	}
	return succeed(map[string]string{"id": id}, nil)
}

// find returns the index of a record, or -1 and the refusal.
func (z *zone) find(id, path string) (int, reply) {
	if !idForm.MatchString(id) {
		return -1, refuse(http.StatusNotFound, 7003, fmt.Sprintf("Could not route to %s, perhaps your object identifier is invalid?", path))
	}
	i := slices.IndexFunc(z.records, func(r *record) bool { return r.id == id })
	if i < 0 {
		return -1, refuse(http.StatusNotFound, 81044, "Record does not exist.")
	}
	return i, reply{}
}

func (s *Server) json(z *zone, r *record) map[string]any {
	m := map[string]any{
		"id": r.id, "name": r.name, "type": r.kind, "content": r.content, "ttl": r.ttl,
		"proxiable": false, "proxied": false, "settings": map[string]any{}, "meta": map[string]any{},
		"comment": nil, "tags": []string{}, "created_on": created, "modified_on": created,
	}
	if s.quirks.ZoneFields {
		m["zone_id"], m["zone_name"] = z.id, z.shown
	}
	return m
}

// unquote returns the value that DNS shows for a TXT content: quoted strings one after the other, or, without
// quotes, the text itself.
func unquote(content string) string {
	if !strings.HasPrefix(content, `"`) {
		return content
	}
	var value strings.Builder
	inside := false
	for i := 0; i < len(content); i++ {
		switch c := content[i]; {
		case c == '"':
			inside = !inside
		case c == '\\' && i+1 < len(content):
			i++
			value.WriteByte(content[i])
		case inside:
			value.WriteByte(c)
		}
	}
	return value.String()
}

package cloudflare

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/certhook/certhook/pkg/dnsname"
)

// record is a DNS record as far as this package looks at it. The zone's fields are filled by older versions
// of the API only.
type record struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Name     string `json:"name"`
	Content  string `json:"content"`
	ZoneID   string `json:"zone_id"`
	ZoneName string `json:"zone_name"`
}

// ours reports whether r is exactly the record of this call: its name, TXT, its value.
func (c *call) ours(r record) bool {
	return r.Type == "TXT" && sameName(r.Name, c.name) && c.holdsValue(r) && c.inZone(r) && validID(r.ID)
}

// holdsValue reports whether r's content is the value, in quotes or not: the API keeps what was sent, and
// DNS shows the same for both.
func (c *call) holdsValue(r record) bool {
	return r.Content == c.value || r.Content == `"`+c.value+`"`
}

func (c *call) inZone(r record) bool {
	return (r.ZoneID == "" || r.ZoneID == c.zone.ID) && (r.ZoneName == "" || sameName(r.ZoneName, c.zone.Name))
}

// sameName reports whether the API's spelling of a name, perhaps in Unicode, is the canonical name.
func sameName(spelt, canonical string) bool {
	name, err := dnsname.Parse(spelt)
	return err == nil && name == canonical
}

// parseList returns the records of an answer to [call.list]. Since absence is concluded from it, a list
// that is incomplete, or has a record that was not asked for, is no answer at all.
func (c *call) parseList(answer *envelope, name string) ([]record, error) {
	var records []record
	if err := json.Unmarshal(answer.Result, &records); err != nil {
		return nil, fmt.Errorf("the answer is not a list of records: %w", err)
	}
	if answer.Info != nil && answer.Info.TotalCount > len(records) {
		return nil, fmt.Errorf("the answer is incomplete: %d of %d records", len(records), answer.Info.TotalCount)
	}
	for _, r := range records {
		contains := strings.Contains(strings.ToLower(r.Content), strings.ToLower(c.value)) // any case, as the API has it
		if r.Type != "TXT" || !sameName(r.Name, name) || !contains || !c.inZone(r) || !validID(r.ID) {
			return nil, fmt.Errorf("the answer lists a record that was not asked for, %s %q with id %q", r.Type, r.Name, r.ID)
		}
	}
	return records, nil
}

package main

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/certhook/certhook/tests/cloudflaretest"
)

// apiCall is a call of the provider's API.
type apiCall struct {
	cloudflaretest.Call
	removed string // the value of the record that it deleted
}

// record is the id of the record in the path, "" if it has none.
func (c apiCall) record() string {
	if part := strings.Split(c.Path, "/"); len(part) == 5 {
		return part[4]
	}
	return ""
}

// joins reports whether the call ran beside another and is told with it.
func (c apiCall) joins(other apiCall) bool {
	return c.Method != http.MethodDelete && c.Method == other.Method && c.Path == other.Path &&
		c.Status == other.Status && c.Start.Before(other.End)
}

// apiLine is a call in columns: method, path, status, time, and how many such there were or what one
// removed. In the path the zone's name stands for its id.
func apiLine(calls []apiCall) string {
	c := calls[0]
	path := c.Path
	if part := strings.Split(path, "/"); len(part) > 2 {
		part[2] = "{" + c.Zone + "}"
		if id := c.record(); id != "" {
			part[4] = clip(id, 5)
		}
		path = strings.Join(part, "/")
	} else if c.Query.Has("name") {
		path += "?name=" + c.Zone
	}
	status := fmt.Sprint(c.Status)
	if c.Status == 0 {
		status = "---" // no reply
	}
	note := ""
	switch {
	case len(calls) > 1:
		note = fmt.Sprintf("  %d at once", len(calls))
	case c.removed != "":
		note = "  " + short(c.removed) + " gone"
	}
	last := calls[len(calls)-1]
	return fmt.Sprintf("%-6s %-44s  %s %4d ms%s", c.Method, path, status, last.End.Sub(last.Start).Milliseconds(), note)
}

package cloudflare

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	libcloudflare "github.com/libdns/cloudflare"
	"github.com/libdns/libdns"

	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/pkg/provider"
)

// call is one Add or Remove: the HTTP client that libdns gets for it. It answers the look-up of the zone
// itself, sends on what concerns this zone and value, refuses the rest, and keeps what the API said, since
// libdns loses some of it.
type call struct {
	api      *client
	zone     provider.Zone
	name     string // canonical
	relative string // name without the zone's
	value    string

	err     error    // the first failure
	made    *record  // echo of the creation
	listed  bool     // whether a look-up succeeded
	found   []record // ours, as the look-up showed them
	deleted int      // how many of them the API confirmed as deleted
}

const (
	maxPosts = 3 // creations tried while the API is down
	maxTwins = 5 // records that may hold one value; two, with and without quotes, are already rare
)

// undoTime is what taking back a record costs at most, once our own time may be over.
const undoTime = 10 * time.Second

// libdns returns a provider that speaks through c. It is a fresh one every time, for it would keep a zone's
// first id for ever. The token stays with the client.
func (c *call) libdns() *libcloudflare.Provider {
	c.err, c.made, c.listed, c.found, c.deleted = nil, nil, false, nil, 0
	return &libcloudflare.Provider{HTTPClient: c}
}

// add creates the record. It is done only when the API's echo is this very record, or when a look-up after
// an unclear answer shows it; the request is repeated only after a look-up did not show it.
func (c *call) add(ctx context.Context, ttl time.Duration) error {
	wait := c.api.wait
	for try := 1; ; try++ {
		err := c.create(ctx, ttl)
		if err == nil || !doubt(err) || ctx.Err() != nil {
			return err
		}
		there, lookErr := c.look(ctx)
		switch {
		case lookErr != nil:
			return fmt.Errorf("%w; whether it is there all the same cannot be told: %w", err, lookErr)
		case there:
			return nil
		case !unanswered(err) || try == maxPosts:
			return fmt.Errorf("%w; a look-up shows that the value is not there", err)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return err
		}
		wait *= 2
	}
}

// create sends the record once, under its complete name, as the API's documentation has it. In a zone that
// does not hold the name, which only a wrong zone id leads to, the API takes it as relative, so that no
// name in use is hit, and the echo shows it.
func (c *call) create(ctx context.Context, ttl time.Duration) error {
	_, err := c.libdns().AppendRecords(ctx, c.zone.Name, []libdns.Record{
		libdns.TXT{Name: c.name, TTL: ttl, Text: c.value},
	})
	switch {
	case c.err != nil:
		return c.err
	case c.made != nil && c.ours(*c.made):
		return nil // whatever libdns makes of the rest of the answer
	case c.made != nil:
		return c.mismatch(ctx, *c.made)
	case err != nil:
		return err
	}
	return errors.New("libdns sent no record")
}

// stray is a record that came to be at another name than the one asked for: the zone id is another zone's.
type stray struct {
	record
	zoneID string
	undone error // nil = it was taken back
}

func (e *stray) Error() string {
	text := fmt.Sprintf("the zone with id %s is another one: the record became %q", e.zoneID, e.Name)
	if e.undone != nil {
		return text + fmt.Sprintf(" and is still there (record id %s): %v", e.ID, e.undone)
	}
	return text + "; it was removed again"
}

// mismatch handles an echo that is not our record: either it shows where a wrong zone id led, and the record
// is taken back, or the answer is worth nothing.
func (c *call) mismatch(ctx context.Context, echo record) error {
	at, err := dnsname.Parse(echo.Name)
	elsewhere := err == nil && strings.HasPrefix(at, c.name+".")
	if !elsewhere || echo.Type != "TXT" || !c.holdsValue(echo) || !validID(echo.ID) {
		return unusable(request{method: http.MethodPost, path: c.records()},
			fmt.Errorf("the answer is about another record, %s %q", echo.Type, echo.Name))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	return &stray{record: echo, zoneID: c.zone.ID, undone: c.undo(ctx, echo, at)}
}

// undo deletes a record that create made at the wrong name, after making sure that the id is that record's.
func (c *call) undo(ctx context.Context, echo record, at string) error {
	there, err := c.list(ctx, at)
	if err != nil {
		return err
	}
	same := func(r record) bool { return r.ID == echo.ID && c.holdsValue(r) }
	if !slices.ContainsFunc(there, same) {
		return errors.New("a look-up does not show it under this id")
	}
	_, err = c.api.do(ctx, request{method: http.MethodDelete, path: c.records() + "/" + echo.ID})
	return err
}

// remove deletes all records of the value. Each round is one look-up and one deletion by libdns, which takes
// one of several twins; one round is the rule.
func (c *call) remove(ctx context.Context) (removed bool, err error) {
	for range maxTwins {
		_, err := c.libdns().DeleteRecords(ctx, c.zone.Name, []libdns.Record{
			libdns.TXT{Name: c.relative, Text: c.value},
		})
		if c.err != nil {
			err = c.err // libdns takes a failed look-up for an empty one
		}
		switch {
		case c.listed && doubt(err): // the deletion's, "no such record" too: our first try may have done it
			return c.gone(ctx, err)
		case err != nil && c.deleted == 0:
			return false, err
		case !c.listed:
			return false, errors.New("libdns did not look the record up")
		case len(c.found) == 0:
			return removed, nil
		case c.deleted == 0:
			return false, fmt.Errorf("libdns did not delete record %s", c.found[0].ID)
		case c.deleted == len(c.found):
			return true, nil
		default:
			removed = true
		}
	}
	return false, fmt.Errorf("the value is still there after %d rounds", maxTwins)
}

// gone settles a deletion with an unclear answer.
func (c *call) gone(ctx context.Context, unclear error) (bool, error) {
	there, err := c.look(ctx)
	switch {
	case err != nil:
		return false, fmt.Errorf("%w; whether it is gone all the same cannot be told: %w", unclear, err)
	case there:
		return false, fmt.Errorf("%w; a look-up shows that the value is still there", unclear)
	}
	return true, nil
}

// look reports whether the value is there.
func (c *call) look(ctx context.Context) (bool, error) {
	records, err := c.list(ctx, c.name)
	return slices.ContainsFunc(records, c.ours), err
}

// list asks for the TXT records at a name that contain the value, as libdns does.
func (c *call) list(ctx context.Context, name string) ([]record, error) {
	query := url.Values{"type": {"TXT"}, "name": {name}, "content.contains": {c.value}}
	return c.ask(ctx, request{method: http.MethodGet, path: c.records(), query: query.Encode()}, name)
}

func (c *call) ask(ctx context.Context, r request, name string) ([]record, error) {
	answer, err := c.api.do(ctx, r)
	if err != nil {
		return nil, err
	}
	records, err := c.parseList(answer, name)
	if err != nil {
		return nil, unusable(r, err)
	}
	return records, nil
}

func (c *call) records() string { return "/zones/" + c.zone.ID + "/dns_records" }

// Do is the HTTP client of libdns.
func (c *call) Do(r *http.Request) (*http.Response, error) {
	answer, err := c.pass(r)
	if err != nil {
		if c.err == nil {
			c.err = err
		}
		return nil, err
	}
	return &http.Response{
		StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   io.NopCloser(bytes.NewReader(answer.raw)),
	}, nil
}

// pass sends a request of libdns on if it is one that this call may make.
func (c *call) pass(r *http.Request) (*envelope, error) {
	path, ok := strings.CutPrefix(r.URL.Path, apiPrefix)
	out := request{method: r.Method, path: path, query: r.URL.RawQuery}
	if !ok || r.URL.Host != apiHost {
		return nil, fmt.Errorf("refused to send %s to %s", out, r.URL.Host)
	}
	if r.Body != nil {
		var err error
		if out.body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	id, one := strings.CutPrefix(path, c.records()+"/")
	switch {
	case r.Method == http.MethodGet && path == "/zones" && r.URL.Query().Get("name") == c.zone.Name:
		return localAnswer([]any{map[string]string{"id": c.zone.ID, "name": c.zone.Name}})
	case r.Method == http.MethodPost && path == c.records():
		return c.passCreate(r.Context(), out)
	case r.Method == http.MethodGet && path == c.records():
		return c.passList(r.Context(), out)
	case r.Method == http.MethodDelete && one && slices.ContainsFunc(c.found, func(f record) bool { return f.ID == id }):
		return c.passDelete(r.Context(), out, id)
	}
	return nil, fmt.Errorf("refused to send %s", out)
}

// localAnswer is an answer to libdns that did not come from the API.
func localAnswer(result any) (*envelope, error) {
	raw, err := json.Marshal(map[string]any{"success": true, "errors": []any{}, "result": result})
	return &envelope{raw: raw}, err
}

func (c *call) passCreate(ctx context.Context, out request) (*envelope, error) {
	answer, err := c.api.do(ctx, out)
	if err != nil {
		return nil, err
	}
	var echo record
	if err := json.Unmarshal(answer.Result, &echo); err != nil {
		return nil, unusable(out, fmt.Errorf("the answer is not a record: %w", err))
	}
	c.made = &echo
	return answer, nil
}

// passList shows libdns our records only, so that there is nothing else for it to choose.
func (c *call) passList(ctx context.Context, out request) (*envelope, error) {
	records, err := c.ask(ctx, out, c.name)
	if err != nil {
		return nil, err
	}
	c.found = slices.DeleteFunc(records, func(r record) bool { return !c.ours(r) })
	c.listed = true
	return localAnswer(c.found)
}

func (c *call) passDelete(ctx context.Context, out request, id string) (*envelope, error) {
	answer, err := c.api.do(ctx, out)
	if err != nil {
		return nil, err
	}
	var echo record
	if err := json.Unmarshal(answer.Result, &echo); err != nil || echo.ID != id {
		return nil, unusable(out, fmt.Errorf("the answer is about another record, %q", echo.ID))
	}
	c.deleted++
	return answer, nil
}

// unusable is a success in form only.
func unusable(r request, reason error) *failure {
	return &failure{asked: r, status: http.StatusOK, reason: reason}
}

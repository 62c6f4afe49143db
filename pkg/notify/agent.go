package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	quoteTimeout = 15 * time.Second // of one agent
	maxQuote     = 1 << 20          // octets of an agent's answer; quote and event log take some tens of thousands
	reportSize   = 64               // octets of the report data that a quote covers
)

// agents are the guest agents of dstack, the one of today first: its socket, and what it is asked there. The
// older one takes report data of the full size only; the newer one pads it with zeros itself.
var agents = []struct{ socket, path string }{
	{"dstack.sock", "/GetQuote"},
	{"tappd.sock", "/prpc/Tappd.RawQuote"},
}

// Agent is the guest agent of an attested machine, if there is one.
type Agent struct {
	Dir string // where its socket is; "" = /var/run
}

// Quote asks the agent to vouch for reportData, at most 64 octets in hex, which it pads with zeros, and returns
// the answer: a JSON object whose member report_data is reportData as given. Without an agent's socket it
// returns nil and no error. It is an error if there is a socket and no agent answers.
func (a Agent) Quote(ctx context.Context, reportData string) (json.RawMessage, error) {
	dir := a.Dir
	if dir == "" {
		dir = "/var/run"
	}
	var errs []error
	for _, agent := range agents {
		socket := filepath.Join(dir, agent.socket)
		if _, err := os.Stat(socket); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		quote, err := askAgent(ctx, socket, agent.path, reportData)
		if err == nil {
			return quote, nil
		}
		errs = append(errs, fmt.Errorf("ask the guest agent at %q for a quote: %w", socket, err))
	}
	return nil, errors.Join(errs...)
}

func askAgent(ctx context.Context, socket, path, reportData string) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, quoteTimeout, fmt.Errorf("no answer within %v", quoteTimeout))
	defer cancel()
	quote, err := getQuote(ctx, socket, path, reportData)
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return quote, err
}

func getQuote(ctx context.Context, socket, path, reportData string) (json.RawMessage, error) {
	var d net.Dialer
	transport := &http.Transport{
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return d.DialContext(ctx, "unix", socket) },
		DisableKeepAlives: true,
	}
	padded := reportData + strings.Repeat("0", max(0, 2*reportSize-len(reportData)))
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+path+"?report_data="+padded, nil)
	if err != nil {
		return nil, err
	}
	resp, err := transport.RoundTrip(req) // which follows no redirect
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxQuote+1))
	switch {
	case err != nil:
		return nil, err
	case len(body) > maxQuote:
		return nil, fmt.Errorf("the answer is longer than %d octets", maxQuote)
	}
	var answer map[string]json.RawMessage
	err = json.Unmarshal(body, &answer)
	switch {
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("HTTP %d%s", resp.StatusCode, reason(answer["error"]))
	case err != nil:
		return nil, fmt.Errorf("the answer is not a JSON object: %w", err)
	case !filled(answer["quote"]):
		return nil, fmt.Errorf("the answer has no quote%s", reason(answer["error"]))
	}
	if answer["report_data"], err = json.Marshal(reportData); err != nil {
		return nil, err
	}
	return json.Marshal(answer)
}

// filled reports whether a member is a string that is not empty.
func filled(member json.RawMessage) bool {
	var s string
	return json.Unmarshal(member, &s) == nil && s != ""
}

// reason returns an agent's own words on its failure, behind a colon.
func reason(member json.RawMessage) string {
	var s string
	if json.Unmarshal(member, &s) != nil || s == "" {
		return ""
	}
	return fmt.Sprintf(": %.200q", s)
}

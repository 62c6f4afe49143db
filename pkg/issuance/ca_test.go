package issuance

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/tests/acmetest"
)

// answer makes one of the CA's for a path, once; later requests go through.
func (s *scene) answer(path string, status int, header http.Header, body string) {
	n := 0
	s.network.answer = func(req *http.Request) *http.Response {
		if req.URL.Path != path {
			return nil
		}
		if n++; n > 1 {
			return nil
		}
		header.Set("Content-Type", "application/problem+json")
		return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: header, Body: io.NopCloser(strings.NewReader(body)), Request: req, ProtoMajor: 1, ProtoMinor: 1}
	}
}

const newOrder = "/order-plz" // Pebble's path

// A failure that passes costs a moment, one that does not in time is told at once, in the CA's words.
func TestFailuresOfTheCA(t *testing.T) {
	const limited = `{"type": "urn:ietf:params:acme:error:rateLimited", "detail": "too many\u001b[31m orders", "status": 429}`
	const busy = `{"type": "urn:ietf:params:acme:error:serverInternal", "detail": "try later", "status": 503}`
	const compound = `{"type": "urn:ietf:params:acme:error:malformed", "detail": "some are refused", "status": 400, "subproblems": [
		{"type": "urn:ietf:params:acme:error:rejectedIdentifier", "detail": "it is on a list", "identifier": {"type": "dns", "value": "p.example.com"}}]}`
	for name, tc := range map[string]struct {
		status int
		after  string
		body   string
		want   []string // of the error; none: it succeeds
		hint   string
	}{
		"busy":                  {503, "1", busy, nil, ""},
		"busy for long":         {503, "3600", busy, []string{"the CA says: serverInternal: try later"}, ""},
		"an old nonce":          {400, "", `{"type": "urn:ietf:params:acme:error:badNonce", "detail": "old", "status": 400}`, nil, ""},
		"a rate limit":          {429, "3600", limited, []string{"the CA says: rateLimited: too many [31m orders"}, "the CA says when to try again: 2"},
		"several names refused": {400, "", compound, []string{"malformed: some are refused", "\np.example.com: rejectedIdentifier: it is on a list"}, ""},
		"no problem document":   {502, "3600", "<html>", []string{"<html>"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, acmetest.Options{})
			s.register()
			s.publish("p.example.com")
			header := http.Header{}
			if tc.after != "" {
				header.Set("Retry-After", tc.after)
			}
			s.answer(newOrder, tc.status, header, tc.body)
			start := time.Now()
			_, err := s.Issue(t.Context(), "p.example.com", []string{"p.example.com"}, false)
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("took %v", took)
			}
			if (err == nil) != (tc.want == nil) || err != nil && fault.KindOf(err) != fault.Other {
				t.Fatalf("error %v", err)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\x1b") {
					t.Errorf("error %q, want %q", err, want)
				}
			}
			if !strings.HasPrefix(fault.HintOf(err), tc.hint) {
				t.Errorf("hint %q, want %q", fault.HintOf(err), tc.hint)
			}
		})
	}
}

// A URI that no record can hold is refused before it is kept.
func TestAccountURIOfNoUse(t *testing.T) {
	for _, uri := range []string{"", "acct/1", "https://ca.example/a;b", "https://ca.example/a b", `https://ca.example/"`, "https://ca.example/\x1b"} {
		if err := (&ca{}).checkURI(uri); err == nil {
			t.Errorf("%q is taken", uri)
		}
	}
	if err := (&ca{}).checkURI("https://ca.example/acct/1"); err != nil {
		t.Error(err)
	}
}

// Answers without end are cut.
func TestAnswerTooLarge(t *testing.T) {
	s := newScene(t, acmetest.Options{})
	s.answer("/directory", 200, http.Header{}, `{"x": "`+strings.Repeat("x", maxReply)+`"}`)
	if _, err := s.Register(t.Context()); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("larger than %d octets", maxReply)) {
		t.Errorf("error %v", err)
	}
}

// A lineage of another CA is not renewed with this one.
func TestLineageOfAnotherCA(t *testing.T) {
	s := newScene(t, acmetest.Options{})
	s.register()
	s.publish("p.example.com")
	s.issue("p.example.com")
	s.again()
	s.Server = "https://ca.example/directory"
	if all, err := s.Renew(t.Context(), nil, true); fault.KindOf(err) != fault.Usage || len(all) != 1 || all[0].Issued {
		t.Errorf("%+v, %v", all, err)
	}
}

package caa

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/pkg/fault"
)

func TestIdentities(t *testing.T) {
	const two = `{"newNonce": "x", "meta": {"termsOfService": "y", "caaIdentities": ["CA.example", "ca.example.", "also.example"]}}`
	tests := map[string]struct {
		answer func(http.ResponseWriter, *http.Request)
		want   []string
		fails  string
	}{
		"two names": {text(two), []string{"ca.example", "also.example"}, ""},
		"redirect on the same host": {func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/dir" {
				http.Redirect(w, r, "/directory", http.StatusFound)
				return
			}
			text(two)(w, r)
		}, []string{"ca.example", "also.example"}, ""},

		"no meta":        {text(`{"newNonce": "x"}`), nil, "no caaIdentities"},
		"null":           {text(`{"meta": null}`), nil, "no caaIdentities"},
		"empty":          {text(`{"meta": {"caaIdentities": []}}`), nil, "no caaIdentities"},
		"no list":        {text(`{"meta": {"caaIdentities": "ca.example"}}`), nil, "read its directory"},
		"no JSON":        {text(`<html>`), nil, "read its directory"},
		"nothing":        {text(``), nil, "read its directory"},
		"underscore":     {text(`{"meta": {"caaIdentities": ["ca.example", "c_a.example"]}}`), nil, "underscore"},
		"a parameter":    {text(`{"meta": {"caaIdentities": ["ca.example;accounturi=x"]}}`), nil, "ca.example;accounturi=x"},
		"a quote":        {text(`{"meta": {"caaIdentities": ["ca.example\" CAA"]}}`), nil, "not a domain name"},
		"a line break":   {text(`{"meta": {"caaIdentities": ["ca.example\nx"]}}`), nil, `ca.example\nx`},
		"white space":    {text(`{"meta": {"caaIdentities": [" ca.example"]}}`), nil, "not a domain name"},
		"no name":        {text(`{"meta": {"caaIdentities": [""]}}`), nil, "it is empty"},
		"a long name":    {text(`{"meta": {"caaIdentities": ["` + strings.Repeat("a.", 500) + `"]}}`), nil, "1000 octets"},
		"several faults": {text(`{"meta": {"caaIdentities": ["c_a", "192.0.2.1"]}}`), nil, "192.0.2.1"},
		"error":          {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, two, http.StatusNotFound) }, nil, "404"},
		"large":          {text(two + strings.Repeat(" ", maxDirectory)), nil, fmt.Sprint(maxDirectory)},
		"redirect to another host": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://elsewhere.example/", http.StatusFound)
		}, nil, `"https://elsewhere.example" is refused`},
		"redirects without end": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/dir", http.StatusFound) }, nil, "too many"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(tt.answer))
			defer server.Close()
			got, err := Identities(t.Context(), nil, server.URL+"/dir")
			if !slices.Equal(got, tt.want) || (err == nil) != (tt.fails == "") {
				t.Fatalf("got %q, %v", got, err)
			}
			if err == nil {
				return
			}
			if !strings.Contains(err.Error(), tt.fails) || !strings.Contains(err.Error(), server.URL) {
				t.Errorf("error %v", err)
			}
			if fault.KindOf(err) != fault.Usage || !strings.Contains(fault.HintOf(err), "ISSUER_DOMAIN_NAME") {
				t.Errorf("kind %v, hint %q", fault.KindOf(err), fault.HintOf(err))
			}
		})
	}
}

func text(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(body)) }
}

func TestIdentitiesOverTLS(t *testing.T) {
	server := httptest.NewTLSServer(text(`{"meta": {"caaIdentities": ["ca.example"]}}`))
	defer server.Close()
	if got, err := Identities(t.Context(), server.Client(), server.URL); err != nil || !slices.Equal(got, []string{"ca.example"}) {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := Identities(t.Context(), nil, server.URL); err == nil {
		t.Errorf("got %q from a server whose certificate nobody knows", got)
	}
	if server.Client().CheckRedirect != nil {
		t.Error("the caller's client was changed")
	}
}

// What anybody on the way could have written is not asked for.
func TestIdentitiesUnencrypted(t *testing.T) {
	refuse := &http.Client{Transport: trip(func(r *http.Request) (*http.Response, error) {
		return nil, fmt.Errorf("was asked %v", r.URL)
	})}
	for directory, asked := range map[string]bool{
		"https://ca.example/dir":            true,
		"http://127.0.0.1:14000/dir":        true,
		"http://[::1]/dir":                  true,
		"http://localhost:14000/dir":        true,
		"http://ca.example/dir":             false,
		"http://127.0.0.1.ca.example/dir":   false,
		"http://localhost.ca.example/dir":   false,
		"http://ca.example@evil.example/":   false,
		"file:///etc/passwd":                false,
		"unix:/run/x":                       false,
		"":                                  false,
		"ca.example":                        false,
		"https://":                          false,
		"https://%zz":                       false,
		"ftp://127.0.0.1/dir":               false,
		"http://192.0.2.1:14000/directory":  false,
		"https://192.0.2.1:14000/directory": true,
	} {
		_, err := Identities(t.Context(), refuse, directory)
		if err == nil || strings.Contains(err.Error(), "was asked ") != asked {
			t.Errorf("%q: %v", directory, err)
		}
	}
}

type trip func(*http.Request) (*http.Response, error)

func (f trip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A redirect leads to nobody else, and not round and round.
func TestIdentitiesRedirect(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("another host was asked") }))
	defer elsewhere.Close()
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if r.URL.Path == "/away" {
			http.Redirect(w, r, elsewhere.URL, http.StatusFound)
			return
		}
		http.Redirect(w, r, "/round", http.StatusFound)
	}))
	defer server.Close()
	for path, most := range map[string]int{"/away": 1, "/round": maxRedirects + 1} {
		asked = 0
		if got, err := Identities(t.Context(), nil, server.URL+path); err == nil || asked > most {
			t.Errorf("%s: %q, %v, asked %d times", path, got, err, asked)
		}
	}
}

// A redirect must not lead from https to plain http of the same host.
func TestIdentitiesDowngrade(t *testing.T) {
	client := &http.Client{Transport: trip(func(r *http.Request) (*http.Response, error) {
		if r.URL.Scheme != "https" {
			t.Errorf("asked %v", r.URL)
		}
		rec := httptest.NewRecorder()
		http.Redirect(rec, r, "http://ca.example/dir", http.StatusFound)
		return rec.Result(), nil
	})}
	if got, err := Identities(t.Context(), client, "https://ca.example/dir"); err == nil {
		t.Errorf("got %q", got)
	}
}

func TestIdentitiesEndWithContext(t *testing.T) {
	asked := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	}))
	defer server.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-asked
		cancel(errors.New("called off"))
	}()
	if got, err := Identities(ctx, nil, server.URL); err == nil || !strings.Contains(err.Error(), "called off") {
		t.Errorf("got %q, %v", got, err)
	}
}

// What is configured counts before what is known, and that before what the CA says; nobody is asked in vain.
func TestIssuer(t *testing.T) {
	const le = "https://acme-v02.api.letsencrypt.org/directory"
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		text(`{"meta": {"caaIdentities": ["ca.example", "also.example"]}}`)(w, r)
	}))
	defer server.Close()
	for _, tt := range []struct {
		configured, directory string
		want                  []string
		asked                 int
	}{
		{"mine.example", le, []string{"mine.example"}, 0},
		{"mine.example", server.URL, []string{"mine.example"}, 0},
		{"", le, []string{us}, 0},
		{"", server.URL, []string{"ca.example", "also.example"}, 1},
	} {
		asked = 0
		got, err := Issuer(t.Context(), server.Client(), tt.configured, tt.directory)
		if err != nil || !slices.Equal(got, tt.want) || asked != tt.asked {
			t.Errorf("%q, %s: %q, %v, asked %d times", tt.configured, tt.directory, got, err, asked)
		}
	}
	if got, err := Issuer(t.Context(), nil, "", ""); err == nil {
		t.Errorf("without anything: %q", got)
	}
}

// FuzzDirectory holds whatever a directory says to names that can stand in a record.
func FuzzDirectory(f *testing.F) {
	for _, body := range []string{`{"meta":{"caaIdentities":["ca.example"]}}`, `{"META":{"caaidentities":["CA.Example.","ca.example"]}}`, `[]`, `{"meta":{"caaIdentities":[";",null]}}`} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		names, err := parseDirectory(body)
		if (err == nil) != (len(names) > 0) {
			t.Fatalf("%q, %v", names, err)
		}
		for i, name := range names {
			if canonical, err := dnsname.ParseHost(name); err != nil || canonical != name || slices.Contains(names[:i], name) {
				t.Errorf("%q among %q: %v", name, names, err)
			}
			q := Question{Domain: "svc.example.com", Issuer: name, Method: "dns-01", Account: acct}
			if r := Evaluate(q, Set{Owner: q.Domain, Records: []*dns.CAA{record(t, q.Record())}}); !r.Allowed || r.Lock != Locked {
				t.Errorf("%q: %+v", name, r)
			}
		}
	})
}

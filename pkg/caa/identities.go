package caa

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/pkg/fault"
)

// Bounds of one request for a directory.
const (
	directoryTimeout = 10 * time.Second
	maxDirectory     = 64 << 10 // octets; a large one has two thousand
	maxRedirects     = 3
)

// Issuer returns what the CA with that directory URL is called in CAA records, the name to use first: what is
// configured, if anything is; else what is known of the CA; else what its directory says, as
// [Identities] reads it.
func Issuer(ctx context.Context, client *http.Client, configured, directory string) ([]string, error) {
	if configured != "" {
		return []string{configured}, nil
	}
	if known := KnownIssuer(directory); known != "" {
		return []string{known}, nil
	}
	return Identities(ctx, client, directory)
}

// Identities asks an ACME server what it is called in CAA records: the caaIdentities of its directory (RFC
// 8555, section 7.1.1), canonical and in its order, at least one. It takes ten seconds at most. A nil client
// is the default one. Errors are of kind Usage: setting the name is what helps.
func Identities(ctx context.Context, client *http.Client, directory string) ([]string, error) {
	names, err := identities(ctx, client, directory)
	if err != nil {
		return nil, fault.Errorf(fault.Usage, "ask the CA at %q what CAA records call it: %w", directory, err).
			WithHint("set ISSUER_DOMAIN_NAME to the name that the CA has in CAA records; its documentation tells it")
	}
	return names, nil
}

func identities(ctx context.Context, client *http.Client, directory string) ([]string, error) {
	body, err := Directory(ctx, client, directory)
	if err != nil {
		return nil, err
	}
	return parseDirectory(body)
}

// Directory fetches an ACME server's directory (RFC 8555, section 7.1.1) as it is. It takes ten seconds at most. A nil
// client is the default one.
func Directory(ctx context.Context, client *http.Client, directory string) ([]byte, error) {
	if err := mayBeAsked(directory); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, directoryTimeout, fmt.Errorf("no answer within %v", directoryTimeout))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, directory, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := staying(client).Do(req)
	if err != nil {
		return nil, reason(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("HTTP status %d", resp.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxDirectory+1))
	if err != nil {
		return nil, reason(ctx, err)
	}
	if len(body) > maxDirectory {
		return nil, fmt.Errorf("the directory is larger than %d octets", maxDirectory)
	}
	return body, nil
}

// reason names the end of the time rather than what that did to the connection.
func reason(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return failed.Err // which the URL stands before already
	}
	return err
}

// mayBeAsked refuses a URL whose answer anybody on the way could have written.
func mayBeAsked(directory string) error {
	u, err := url.Parse(directory)
	switch {
	case err != nil || u.Hostname() == "":
		return errors.New("that is not a URL")
	case u.Scheme == "https", u.Scheme == "http" && isLoopback(u.Hostname()):
		return nil
	}
	return errors.New("only https is asked, and http on loopback")
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// staying returns the client with redirects bound to the host and scheme that were asked.
func staying(client *http.Client) *http.Client {
	if client == nil {
		client = http.DefaultClient
	}
	bound := *client
	bound.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		if asked := via[0].URL; req.URL.Host != asked.Host || req.URL.Scheme != asked.Scheme {
			return fmt.Errorf("the redirect to %q is refused", req.URL.Scheme+"://"+req.URL.Host)
		}
		if len(via) > maxRedirects {
			return errors.New("too many redirects")
		}
		return nil
	}
	return &bound
}

// parseDirectory reads the caaIdentities of a directory. One that is no host name fails the whole: the
// names go into records that an operator pastes, and a list with a gap reads like a smaller one.
func parseDirectory(body []byte) ([]string, error) {
	var directory struct {
		Meta struct {
			Identities []string `json:"caaIdentities"`
		} `json:"meta"`
	}
	if err := json.Unmarshal(body, &directory); err != nil {
		return nil, fmt.Errorf("read its directory: %w", err)
	}
	var names []string
	var errs []error
	for _, text := range directory.Meta.Identities {
		name, err := dnsname.ParseIssuer(text)
		switch {
		case len(text) > dnsname.MaxName+1:
			errs = append(errs, fmt.Errorf("a name of %d octets is no domain name", len(text)))
		case err != nil:
			errs = append(errs, err)
		case !slices.Contains(names, name):
			names = append(names, name)
		}
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("caaIdentities in its directory: %w", errors.Join(errs...))
	}
	if len(names) == 0 {
		return nil, errors.New("its directory has no caaIdentities")
	}
	return names, nil
}

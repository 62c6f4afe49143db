package oracle

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/miekg/dns"
)

// Asker answers as a recursive resolver does, with a message of any rcode. An error is SERVFAIL.
type Asker interface {
	Ask(ctx context.Context, name string, qtype uint16) (*dns.Msg, error)
}

// doh is a resolver that speaks DNS over HTTPS (RFC 8484), the only thing that Boulder speaks.
type doh struct {
	mu     sync.Mutex
	asker  Asker
	failed error // what it could not answer since show: not Boulder's doing
}

// start lets it listen on a loopback address until the test ends.
func (d *doh) start(tb testing.TB) (addr string, certificate *x509.Certificate) {
	server := httptest.NewUnstartedServer(d)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of connections that a cancelled question leaves behind
	server.EnableHTTP2 = true
	server.StartTLS()
	tb.Cleanup(server.Close)
	return server.Listener.Addr().String(), server.Certificate()
}

func (d *doh) show(a Asker) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asker, d.failed = a, nil
}

func (d *doh) failure() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failed
}

func (d *doh) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	wire, err := d.answer(r)
	if err != nil {
		d.mu.Lock()
		d.failed = errors.Join(d.failed, err)
		d.mu.Unlock()
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/dns-message")
	_, _ = w.Write(wire) // a failure shows at the other end
}

func (d *doh) answer(r *http.Request) ([]byte, error) {
	wire, err := io.ReadAll(io.LimitReader(r.Body, dns.MaxMsgSize))
	if err != nil {
		return nil, fmt.Errorf("read a question over HTTPS: %w", err)
	}
	req := new(dns.Msg)
	if err := req.Unpack(wire); err != nil || len(req.Question) != 1 {
		return nil, fmt.Errorf("unpack a question over HTTPS: %d questions, %w", len(req.Question), err)
	}
	d.mu.Lock()
	asker := d.asker
	d.mu.Unlock()
	resp := new(dns.Msg).SetReply(req)
	resp.RecursionAvailable = true
	if m, err := asker.Ask(r.Context(), req.Question[0].Name, req.Question[0].Qtype); err != nil {
		resp.Rcode = dns.RcodeServerFailure
	} else {
		resp.Rcode, resp.Truncated, resp.Answer = m.Rcode, m.Truncated, m.Answer
	}
	wire, err = resp.Pack()
	if err != nil {
		return nil, fmt.Errorf("pack an answer about %s: %w", req.Question[0].Name, err)
	}
	return wire, nil
}

package lab

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/miekg/dns"
)

// DoH is a front of the machine's resolver for DNS over HTTPS (RFC 8484).
type DoH struct {
	mu    sync.Mutex
	asked []Asked
}

// Asked is one question to a [DoH].
type Asked struct {
	Time time.Time // of arrival
	Name string    // with the trailing dot
	Type uint16
}

const dohMedia = "application/dns-message"

// StartDoH has the machine's resolver answer at https://host@at/dns-query, too.
func (l *Lab) StartDoH(host, at string) *DoH {
	l.tb.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(at, "443"))
	if err != nil {
		l.tb.Fatalf("lab: %v", err)
	}
	d := new(DoH)
	mux := http.NewServeMux()
	mux.Handle("/dns-query", d)
	srv := &http.Server{
		Handler:           mux,
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{l.Certificate(host)}, MinVersion: tls.VersionTLS12},
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = srv.ServeTLS(listener, "", "") })
	l.tb.Cleanup(func() {
		_ = srv.Close()
		serving.Wait()
	})
	return d
}

// Asked returns the questions so far, in the order of arrival.
func (d *DoH) Asked() []Asked {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.asked)
}

// ServeHTTP takes a question by GET and POST (RFC 8484, section 4.1).
func (d *DoH) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var packet []byte
	var err error
	switch r.Method {
	case http.MethodGet:
		packet, err = base64.RawURLEncoding.DecodeString(r.URL.Query().Get("dns"))
	case http.MethodPost:
		if r.Header.Get("Content-Type") != dohMedia {
			http.Error(w, "unsupported media type", http.StatusUnsupportedMediaType)
			return
		}
		packet, err = io.ReadAll(http.MaxBytesReader(w, r.Body, dns.MaxMsgSize))
	default:
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	question := new(dns.Msg)
	if err != nil || question.Unpack(packet) != nil || len(question.Question) != 1 {
		http.Error(w, "not one question", http.StatusBadRequest)
		return
	}
	d.mu.Lock()
	d.asked = append(d.asked, Asked{time.Now(), question.Question[0].Name, question.Question[0].Qtype})
	d.mu.Unlock()
	answer, err := forward(r.Context(), question)
	if err == nil {
		packet, err = answer.Pack()
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	w.Header().Set("Content-Type", dohMedia)
	_, _ = w.Write(packet) // the client may have gone
}

// forward asks the machine's resolver.
func forward(ctx context.Context, question *dns.Msg) (*dns.Msg, error) {
	client := dns.Client{Net: "tcp", Timeout: 10 * time.Second}
	answer, _, err := client.ExchangeContext(ctx, question, net.JoinHostPort(Resolver, "53"))
	return answer, err
}

package cloudflaretest

import (
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// port is where the server listens, while it does.
type port struct {
	srv  *http.Server
	addr string

	mu       sync.Mutex
	listener net.Listener // nil while connections are refused
	cert     *tls.Certificate
	serving  sync.WaitGroup
}

// SetRefusing makes the server refuse connections, as where nothing listens, or take them again. Those that
// are open stay; see [Fault.Then].
func (s *Server) SetRefusing(on bool) {
	s.tb.Helper()
	p := &s.port
	p.mu.Lock()
	refusing := p.listener == nil
	if on && !refusing {
		_ = p.listener.Close()
		p.listener = nil
	}
	p.mu.Unlock()
	if on || !refusing {
		return
	}
	l, err := net.Listen("tcp", p.addr)
	if err != nil {
		s.tb.Fatalf("listen for the Cloudflare API again: %v", err)
		return
	}
	p.open(l)
}

// SetCertificate replaces the certificate for new connections; it is for a server made [WithCertificate].
func (s *Server) SetCertificate(cert tls.Certificate) {
	s.port.mu.Lock()
	defer s.port.mu.Unlock()
	s.port.cert = &cert
}

func (p *port) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cert, nil
}

func (p *port) open(l net.Listener) {
	p.mu.Lock()
	p.listener = l
	secure := p.cert != nil
	p.mu.Unlock()
	p.serving.Go(func() {
		if secure {
			_ = p.srv.ServeTLS(l, "", "")
		} else {
			_ = p.srv.Serve(l)
		}
	})
}

func (p *port) close() {
	_ = p.srv.Close()
	p.serving.Wait()
}

package wire

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/certhook/certhook/tests/haproxytest"
)

// server is a HAProxy with one certificate folder and a bind of each kind.
type server struct {
	*haproxytest.HAProxy
	fallback, plain, wild, rsa, ecdsa, lone                haproxytest.Pair
	strict, mutual, mutual12, proxied, only13, only12, old Target
	unix, abns                                             Target
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{}
	var more strings.Builder
	bind := func(options string) Target {
		target := Target{Address: haproxytest.FreePort(t), AcceptProxy: strings.Contains(options, "accept-proxy")}
		more.WriteString("frontend f" + target.Address[strings.LastIndexByte(target.Address, ':')+1:] + "\n\tbind " + target.Address + " ssl crt {dir}/certs " + options + "\n\thttp-request return status 200\n")
		return target
	}
	s.strict = bind("strict-sni")
	s.mutual = bind("verify required ca-file {dir}/ca.pem")
	s.mutual12 = bind("ssl-max-ver TLSv1.2 verify required ca-file {dir}/ca.pem")
	s.proxied = bind("accept-proxy")
	s.only13 = bind("ssl-min-ver TLSv1.3")
	s.only12 = bind("ssl-max-ver TLSv1.2")
	s.old = bind("ssl-max-ver TLSv1.2 ciphers AES128-SHA:@SECLEVEL=0")
	name := filepath.Base(t.TempDir()) + time.Now().Format("150405.000000")
	more.WriteString("frontend unix\n\tbind {dir}/tls.sock ssl crt {dir}/certs\n\tbind abns@" + name + " ssl crt {dir}/certs\n\thttp-request return status 200\n")
	s.HAProxy = haproxytest.New(t, haproxytest.Options{More: more.String(), NoMaster: true})
	s.unix, s.abns = Target{Address: filepath.Join(s.Dir, "tls.sock")}, Target{Address: "abns@" + name}

	ca := haproxytest.NewAuthority(t)
	put := func(file string, w haproxytest.Wish, names ...string) haproxytest.Pair {
		p := ca.Issue(w, names...)
		if err := os.WriteFile(filepath.Join(s.CertDir, file), append(p.Chain(), p.PrivateKey...), 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	s.fallback = put("000.pem", haproxytest.Wish{}, "default.test")
	s.plain = put("a.pem", haproxytest.Wish{}, "a.test")
	s.wild = put("w.pem", haproxytest.Wish{}, "*.w.test")
	s.rsa = put("both.pem.rsa", haproxytest.Wish{RSA: 2048}, "both.test")
	s.ecdsa = put("both.pem.ecdsa", haproxytest.Wish{}, "both.test")
	s.lone = put("lone.pem", haproxytest.Wish{RSA: 2048}, "lone.test")
	s.Start()
	return s
}

func TestProbe(t *testing.T) {
	s := newServer(t)
	usual := Target{Address: s.Addr}
	for _, c := range []struct {
		why    string
		target Target
		name   string
		alg    Algorithm
		want   haproxytest.Pair
		err    error
	}{
		{"plain", usual, "a.test", Any, s.plain, nil},
		{"its algorithm", usual, "a.test", ECDSA, s.plain, nil},
		{"not its algorithm", usual, "a.test", RSA, s.plain, nil},
		{"not its algorithm, RSA alone", usual, "lone.test", ECDSA, s.lone, nil},
		{"wildcard", usual, "*.w.test", ECDSA, s.wild, nil},
		{"no name", usual, "", Any, s.fallback, nil},
		{"unknown name", usual, "nobody.test", ECDSA, s.fallback, nil},
		{"the name above a wildcard", usual, "w.test", Any, s.fallback, nil},
		{"bundle, either", usual, "both.test", Any, s.ecdsa, nil},
		{"bundle, RSA", usual, "both.test", RSA, s.rsa, nil},
		{"bundle, ECDSA", usual, "both.test", ECDSA, s.ecdsa, nil},
		{"bundle by TLS 1.2, RSA", s.only12, "both.test", RSA, s.rsa, nil},
		{"bundle by TLS 1.3, ECDSA", s.only13, "both.test", ECDSA, s.ecdsa, nil},
		{"bundle by TLS 1.3, RSA", s.only13, "both.test", RSA, s.ecdsa, ErrUnasked},
		{"TLS 1.3, RSA alone", s.only13, "lone.test", RSA, s.lone, nil},
		{"TLS 1.3, either", s.only13, "a.test", Any, s.plain, nil},
		{"strict, known name", s.strict, "a.test", ECDSA, s.plain, nil},
		{"strict, wildcard", s.strict, "*.w.test", ECDSA, s.wild, nil},
		{"strict, unknown name", s.strict, "nobody.test", ECDSA, haproxytest.Pair{}, ErrNoCertificate},
		{"strict, unknown name, either", s.strict, "nobody.test", Any, haproxytest.Pair{}, ErrNoCertificate},
		{"client certificate required", s.mutual, "a.test", Any, s.plain, nil},
		{"client certificate required, RSA half", s.mutual, "both.test", RSA, s.rsa, nil},
		{"client certificate required by TLS 1.2", s.mutual12, "a.test", ECDSA, s.plain, nil},
		{"PROXY line", s.proxied, "both.test", RSA, s.rsa, nil},
		{"unix socket", s.unix, "a.test", ECDSA, s.plain, nil},
		{"abstract socket", s.abns, "a.test", ECDSA, s.plain, nil},
		{"outdated cipher", s.old, "lone.test", RSA, s.lone, nil},
		{"outdated cipher, either", s.old, "lone.test", Any, s.lone, nil},
		{"no cipher for it", s.old, "a.test", ECDSA, haproxytest.Pair{}, ErrNoCertificate},
	} {
		t.Run(c.why, func(t *testing.T) {
			answer, err := Probe(t.Context(), c.target, c.name, c.alg)
			if !errors.Is(err, c.err) {
				t.Fatalf("error %v, want %v", err, c.err)
			}
			if c.want.Leaf == nil {
				if len(answer.Chain) != 0 {
					t.Errorf("it returns a chain of %d with the error %v", len(answer.Chain), err)
				}
				return
			}
			if !Same(answer.Chain, chain(t, c.want)) {
				leaf, _ := x509.ParseCertificate(answer.Chain[0])
				t.Errorf("shows %d certificates, the first of %v with %v, want that of %v with %v", len(answer.Chain), leaf.DNSNames, leaf.PublicKeyAlgorithm, c.want.Leaf.DNSNames, c.want.Leaf.PublicKeyAlgorithm)
			}
			if answer.Version < tls.VersionTLS12 {
				t.Errorf("version %x", answer.Version)
			}
		})
	}
}

// Without the PROXY line that it waits for, HAProxy says nothing that could be taken for a certificate or for none.
func TestProxyLineMissing(t *testing.T) {
	s := newServer(t)
	_, err := Probe(t.Context(), Target{Address: s.proxied.Address}, "a.test", Any)
	if err == nil || errors.Is(err, ErrNoCertificate) || errors.Is(err, ErrDown) {
		t.Errorf("error %v", err)
	}
}

func TestNobody(t *testing.T) {
	for why, address := range map[string]string{
		"dead port": haproxytest.FreePort(t), "no socket": filepath.Join(t.TempDir(), "none.sock"), "no abstract socket": "abns@" + t.Name(),
		"left socket": leftSocket(t),
	} {
		if _, err := Probe(t.Context(), Target{Address: address}, "a.test", RSA); !errors.Is(err, ErrDown) {
			t.Errorf("%s: error %v", why, err)
		}
	}
}

// leftSocket is the file of a socket at which nobody listens any more.
func leftSocket(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	return path
}

// peer accepts connections and does with each what a test wants; HAProxy cannot be made to.
func peer(t *testing.T, serve func(net.Conn)) Target {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	return Target{Address: l.Addr().String()}
}

func TestSilence(t *testing.T) {
	mute := peer(t, func(net.Conn) {})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Probe(ctx, mute, "a.test", RSA); !errors.Is(err, ErrTimeout) {
		t.Errorf("error %v", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := Probe(ctx, mute, "a.test", RSA); !errors.Is(err, context.Canceled) || errors.Is(err, ErrTimeout) {
		t.Errorf("cancelled: error %v", err)
	}
}

// What does not speak TLS, or ends in the midst of it, has not said that it has no certificate.
func TestNotTLS(t *testing.T) {
	for why, serve := range map[string]func(net.Conn){
		"closes": func(c net.Conn) { c.Close() },
		"resets": func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0); c.Close() },
		"HTTP":   func(c net.Conn) { _, _ = c.Write([]byte("HTTP/1.0 400 Bad request\r\n\r\n")); c.Close() },
	} {
		answer, err := Probe(t.Context(), peer(t, serve), "a.test", ECDSA)
		if err == nil || errors.Is(err, ErrNoCertificate) || errors.Is(err, ErrDown) || errors.Is(err, ErrTimeout) || len(answer.Chain) > 0 {
			t.Errorf("%s: error %v", why, err)
		}
	}
}

func chain(t *testing.T, p haproxytest.Pair) []*x509.Certificate {
	t.Helper()
	cert, err := tls.X509KeyPair(p.Chain(), p.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	var list []*x509.Certificate
	for _, der := range cert.Certificate {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, c)
	}
	return list
}

func TestSame(t *testing.T) {
	ca := haproxytest.NewAuthority(t)
	a, b := chain(t, ca.Issue(haproxytest.Wish{}, "a.test")), chain(t, ca.Issue(haproxytest.Wish{}, "a.test"))
	der := func(certs ...*x509.Certificate) [][]byte {
		var list [][]byte
		for _, c := range certs {
			list = append(list, c.Raw)
		}
		return list
	}
	if !Same(der(a...), a) {
		t.Error("a chain is not the same as itself")
	}
	for why, other := range map[string][][]byte{
		"another leaf": der(b[0], a[1]), "leaf alone": der(a[0]), "order": der(a[1], a[0]), "more": der(a[0], a[1], a[1]), "nothing": nil,
	} {
		if Same(other, a) {
			t.Errorf("%s: taken for the same", why)
		}
	}
}

func TestLocal(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1:443": true, "127.0.0.77:443": true, "[::1]:443": true, "/run/x.sock": true, "abns@x": true, "host.test:443": true,
		"192.0.2.1:443": false, "[2001:db8::1]:443": false,
	} {
		if got := Local(address); got != want {
			t.Errorf("%s: %t", address, got)
		}
	}
}

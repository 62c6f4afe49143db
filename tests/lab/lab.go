// Package lab is a whole small Internet for certhook and certbot to run in: authoritative DNS from the
// root down, a real resolver, Cloudflare's API and Let's Encrypt under their own names, all on loopback
// addresses of a network namespace that nothing leaves. Tests and the demo stand on it.
package lab

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/certhook/certhook/tests/acmetest"
	"github.com/certhook/certhook/tests/cloudflaretest"
	"github.com/certhook/certhook/tests/dnstest"
	"github.com/certhook/certhook/tests/labca"
)

// TB is what a lab needs of its test; [Play] gives one to a program.
type TB interface {
	Helper()
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Cleanup(func())
	Failed() bool
}

// The lab's hosts.
const (
	CAHost      = "acme-v02.api.letsencrypt.org"
	OtherCAHost = "ca.example" // of StartOtherCA
	APIHost     = "api.cloudflare.com"

	Resolver   = "127.0.0.53" // unbound with its usual cache: what the machine asks
	CAResolver = "127.0.0.54" // unbound that forgets at once, as a CA's does: what the CA asks

	// Two that share nothing, started by StartResolvers.
	UnboundResolver = "127.0.0.61"
	BINDResolver    = "127.0.0.62"

	caAddr      = "127.0.1.1"
	apiAddr     = "127.0.1.2"
	otherCAAddr = "127.0.1.3"
)

// Token is the only DNS credential in a lab.
const Token = "lab-3xKq_hT5mWz8RbYc2NvJd7LsPf4GgUa9"

// Options vary a lab. The zero value is the usual one.
type Options struct {
	// Zones that the token covers; default the first alias zone alone.
	Zones []string
	// CallDelay is how long every call of the DNS provider's API takes.
	CallDelay time.Duration
	// CACache is for how many seconds the CA's resolver remembers an answer. With 0 it is until the end of
	// the second.
	CACache int
	// Reuse has the CA reuse valid authorizations, for which certbot calls no hook.
	Reuse bool
	// Settings are added to the usual ones in the settings file; "" takes a usual one out.
	Settings map[string]string
}

// Lab is a running lab.
type Lab struct {
	World *dnstest.World
	API   *cloudflaretest.Server
	CA    *acmetest.Server

	// Alias are the servers of the alias zones, Production those of example.com.
	Alias, Production []*dnstest.Server

	tb        TB
	dir       string           // of the resolvers' files
	authority *labca.Authority // in the machine's trust store
}

// New brings up a lab that ends with the test. certbot and certhook start without any state.
func New(tb TB, o Options) *Lab {
	tb.Helper()
	if inside == "" {
		tb.Fatalf("lab: not inside the lab's namespaces; call Enter from TestMain or main")
	}
	noteSources()
	l := &Lab{tb: tb}
	l.forget()
	var err error
	if l.dir, err = os.MkdirTemp("", "lab-"); err != nil {
		tb.Fatalf("lab: %v", err)
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			l.dumpLogs()
		}
		l.forget()
		os.RemoveAll(l.dir)
	})

	if l.authority, err = labca.New(); err != nil {
		tb.Fatalf("lab: %v", err)
	}
	l.write(trustStore, 0o644, string(systemRoots)+string(l.authority.PEM()))
	l.write("/etc/hosts", 0o644, fmt.Sprintf("127.0.0.1 localhost\n%s %s\n%s %s\n%s %s\n",
		caAddr, CAHost, otherCAAddr, OtherCAHost, apiAddr, APIHost))
	l.write("/etc/resolv.conf", 0o644, "nameserver "+Resolver+"\n")

	l.buildWorld()
	l.startUnbound(Resolver, -1)
	l.startUnbound(CAResolver, o.CACache)
	l.startAPI(o)
	l.CA = acmetest.New(tb, acmetest.Options{
		Listen: net.JoinHostPort(caAddr, "443"), Host: CAHost,
		Resolver: net.JoinHostPort(CAResolver, "53"), Authority: l.authority, Reuse: o.Reuse,
	})
	l.Configure(o.Settings)
	return l
}

// Certificate is one for these names that every program in the lab believes.
func (l *Lab) Certificate(names ...string) tls.Certificate {
	l.tb.Helper()
	cert, err := l.authority.Issue(names...)
	if err != nil {
		l.tb.Fatalf("lab: %v", err)
	}
	return cert
}

func (l *Lab) startAPI(o Options) {
	l.tb.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(apiAddr, "443"))
	if err != nil {
		l.tb.Fatalf("lab: %v", err)
	}
	l.API = cloudflaretest.New(l.tb, l.World, cloudflaretest.OnListener(listener), cloudflaretest.WithCertificate(l.Certificate(APIHost)))
	for _, zone := range zonesOfAccount {
		l.API.AddZone(zone)
	}
	zones := o.Zones
	if zones == nil {
		zones = []string{AliasZone}
	}
	l.API.AddToken(cloudflaretest.Token{Secret: Token, Zones: zones, ZoneRead: true, DNSEdit: true})
	l.API.SetDelay(o.CallDelay)
}

// forget removes what certbot and certhook have written, and disks that a test put there. The folders are private
// to the namespace.
func (l *Lab) forget() {
	l.tb.Helper()
	for _, pattern := range []string{
		"/etc/letsencrypt/*", "/var/lib/letsencrypt", "/var/log/letsencrypt",
		"/etc/certhook", "/var/lib/certhook", "/var/log/certhook",
	} {
		paths, _ := filepath.Glob(pattern) // the patterns are well-formed
		for _, path := range paths {
			if filepath.Base(path) == "cli.ini" { // Debian's defaults
				continue
			}
			for unix.Unmount(path, unix.MNT_DETACH) == nil { // until nothing is mounted there
			}
			if err := os.RemoveAll(path); err != nil {
				l.tb.Fatalf("lab: %v", err)
			}
		}
	}
}

func (l *Lab) write(path string, mode os.FileMode, content string) {
	l.tb.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		l.tb.Fatalf("lab: %v", err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		l.tb.Fatalf("lab: %v", err)
	}
}

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

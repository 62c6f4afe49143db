package lab

import (
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/certhook/certhook/tests/bindtest"
)

// BINDZone is an alias zone that a real BIND serves once a test has called [Lab.StartBIND].
const BINDZone = "dyn.example.org"

const bindAddr = "127.0.6.1"

// StartBIND runs BIND as the only server of BINDZone, which is delegated to it, and makes it the hooks' DNS
// provider with a key that may do what the rules of its update-policy grant; they call it "certhook-key.".
func (l *Lab) StartBIND(settings map[string]string, rules ...string) *bindtest.Server {
	l.tb.Helper()
	// BIND listens only at addresses that an interface has, not at any other of 127.0.0.0/8.
	if err := addLoopback("lo:bind", bindAddr); err != nil {
		l.tb.Fatalf("lab: add %s to the loopback interface: %v", bindAddr, err)
	}
	key := bindtest.NewKey("certhook-key")
	server := bindtest.New(l.tb, bindtest.Options{
		Listen: netip.AddrPortFrom(addr(bindAddr), 53),
		Keys:   []bindtest.Key{key},
		Zones:  []bindtest.Zone{{Name: BINDZone, Policy: rules}},
	})
	l.World.Add("example.org", BINDZone+" NS ns."+BINDZone)
	l.World.Add("example.org", "ns."+BINDZone+" A "+bindAddr)
	all := map[string]string{
		"ACME_CHALLENGE_ALIAS": BINDZone,
		"CLOUDFLARE_API_TOKEN": "",
		"RFC2136_SERVER":       bindAddr,
		"RFC2136_TSIG_NAME":    key.Name,
		"RFC2136_TSIG_SECRET":  key.Secret,
	}
	for name, value := range settings {
		all[name] = value
	}
	l.Configure(all)
	return server
}

// addLoopback gives the loopback interface one more address, under a label.
func addLoopback(label, address string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq(label)
	if err != nil {
		return err
	}
	ip := addr(address).As4()
	if err := request.SetInet4Addr(ip[:]); err != nil {
		return err
	}
	return unix.IoctlIfreq(fd, unix.SIOCSIFADDR, request)
}

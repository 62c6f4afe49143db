package wire

import (
	"context"
	"net"
	"net/netip"
	"strings"
)

// abstract is the length of an abstract socket's name as HAProxy binds it, zeros at the end included.
const abstract = 108

func dial(ctx context.Context, address string) (net.Conn, error) {
	network := "tcp"
	if name, ok := strings.CutPrefix(address, "abns@"); ok {
		network, address = "unix", "@"+name+strings.Repeat("\x00", max(0, abstract-1-len(name)))
	} else if strings.HasPrefix(address, "/") {
		network = "unix"
	}
	var d net.Dialer
	return d.DialContext(ctx, network, address)
}

// Local reports whether whoever connects to an address reaches this machine. HAProxy can also listen at one that
// another machine has (transparent, and net.ipv4.ip_nonlocal_bind on a pair with one address): what is served there
// is not this HAProxy's word.
func Local(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return true // a unix socket
	}
	ip, err := netip.ParseAddr(host)
	if err != nil || ip.IsLoopback() {
		return true
	}
	conn, err := net.Dial("udp", address) // sends nothing, and to an address of its own the kernel speaks from it
	if err != nil {
		return false
	}
	defer conn.Close()
	from, ok := conn.LocalAddr().(*net.UDPAddr)
	return ok && from.AddrPort().Addr().Unmap() == ip.Unmap()
}

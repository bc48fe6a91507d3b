package admission

import (
	"net"
	"net/netip"
	"strings"
)

// network6 is the part of an IPv6 address that names a client: a host usually has the other
// half to itself and could use a new address for each request.
const network6 = 64

// AddressOf returns the address that is answerable for a connection from remote, an IP address
// with or without a port: an IPv4 address, or the first 64 bits of an IPv6 address. It returns
// the unspecified address for a text that is no address, which all such clients share.
func AddressOf(remote string) netip.Addr {
	addr, ok := parse(remote)
	if !ok {
		return netip.IPv4Unspecified()
	}
	return Answerable(addr)
}

// Answerable returns the part of addr that names a client.
func Answerable(addr netip.Addr) netip.Addr {
	addr = addr.Unmap().WithZone("")
	if addr.Is4() {
		return addr
	}
	prefix, err := addr.Prefix(network6)
	if err != nil { // only for bits that the address does not have
		return addr
	}
	return prefix.Addr()
}

// parse returns the address in text, with or without a port.
func parse(text string) (netip.Addr, bool) {
	text = strings.TrimSpace(text)
	if at, err := netip.ParseAddrPort(text); err == nil {
		return at.Addr().Unmap(), true
	}
	addr, err := netip.ParseAddr(strings.Trim(text, "[]"))
	return addr.Unmap(), err == nil
}

// Addresses finds the clients of requests that come through proxies.
type Addresses struct {
	// Proxies are the addresses of the proxies whose X-Forwarded-For is believed. A header of
	// any other client is ignored: it could name whom it likes.
	Proxies []netip.Prefix
}

// Trusts reports whether addr is that of a proxy.
func (a Addresses) Trusts(addr netip.Addr) bool {
	addr = addr.Unmap()
	for _, p := range a.Proxies {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// Client returns the client of a request that came over a connection from remote, in the form
// of remote, and false if that is remote itself. Each proxy appends the address that it sees to
// X-Forwarded-For, so the client is the last entry that is no proxy. With the proxies
// 10.0.0.0/8:
//
//	from 10.0.0.5, X-Forwarded-For: 198.51.100.7              198.51.100.7
//	from 10.0.0.5, X-Forwarded-For: 1.2.3.4, 198.51.100.7     198.51.100.7: the client sent 1.2.3.4
//	from 198.51.100.7, X-Forwarded-For: 1.2.3.4               198.51.100.7: it is no proxy
func (a Addresses) Client(remote string, forwarded []string) (client string, other bool) {
	if len(a.Proxies) == 0 || len(forwarded) == 0 {
		return remote, false
	}
	peer, ok := parse(remote)
	if !ok || !a.Trusts(peer) {
		return remote, false
	}
	found := peer
	for i := len(forwarded) - 1; i >= 0; i-- {
		hops := strings.Split(forwarded[i], ",")
		for j := len(hops) - 1; j >= 0; j-- {
			hop, ok := parse(hops[j])
			if !ok {
				return net.JoinHostPort(found.String(), "0"), found != peer
			}
			found = hop
			if !a.Trusts(hop) {
				return net.JoinHostPort(found.String(), "0"), true
			}
		}
	}
	return net.JoinHostPort(found.String(), "0"), found != peer
}

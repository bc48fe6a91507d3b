package hostcall

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// globalV6 holds the public addresses of IPv6. All others are reserved, local, or embed an
// IPv4 address: NAT64, compatible, translated.
var globalV6 = netip.MustParsePrefix("2000::/3")

// forbidden are the ranges of the IANA special-purpose registries that are
// global unicast by form and yet lead back inside, or embed an address that may.
var forbidden = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),        // this network
	netip.MustParsePrefix("100.64.0.0/10"),    // carrier-grade NAT; some clouds' metadata
	netip.MustParsePrefix("168.63.129.16/32"), // Azure's host
	netip.MustParsePrefix("192.0.0.0/24"),     // protocol assignments
	netip.MustParsePrefix("192.0.2.0/24"),     // documentation
	netip.MustParsePrefix("192.88.99.0/24"),   // 6to4 relays
	netip.MustParsePrefix("198.18.0.0/15"),    // benchmarking
	netip.MustParsePrefix("198.51.100.0/24"),  // documentation
	netip.MustParsePrefix("203.0.113.0/24"),   // documentation
	netip.MustParsePrefix("240.0.0.0/4"),      // reserved, broadcast
	netip.MustParsePrefix("2001::/23"),        // Teredo and other assignments
	netip.MustParsePrefix("2001:db8::/32"),    // documentation
	netip.MustParsePrefix("2002::/16"),        // 6to4
	netip.MustParsePrefix("3fff::/20"),        // documentation
}

// blockedError is the guard's refusal to dial.
type blockedError struct {
	addr string
	name string // the host name whose address it is, if the address is not to be shown
}

func (e *blockedError) Error() string {
	what := "address " + e.addr
	if e.name != "" {
		what = "an address of " + e.name
	}
	what += " is not public, or this server's own; --egress-allow of the server does not list it"
	if addr, err := netip.ParseAddr(e.addr); err == nil && addr.IsLoopback() && e.name == "" {
		what += "; --egress-allow loopback permits servers on this machine"
	}
	return what
}

// errOwnAddresses is the refusal of a guard that cannot tell which addresses are the machine's.
var errOwnAddresses = errors.New("egress: this machine's addresses are not known")

// egress guards the connections of functions: it lets them reach the public network, and
// what the operator allows, but neither private networks nor this machine. The check is
// made on the socket, before connect, when DNS, redirects and spellings are resolved:
//
//	http://127.1/            dials 127.0.0.1          refused: loopback
//	http://[::ffff:10.0.0.1] dials ::ffff:10.0.0.1    refused: private, once unmapped
//	http://rebind.example/   resolves to 169.254.169.254 at the second lookup
//	                                                  refused: the address dialled counts
type egress struct {
	allow []netip.Prefix
	// own returns the machine's addresses. A packet to one of them never passes the
	// firewall before it, however public it is.
	own func() ([]net.Addr, error)
}

// check refuses every address that is not public, unless the operator allowed it. It sees
// the address that is about to be dialled, after DNS and for every hop, so no name,
// spelling, redirect or second DNS answer evades it. Errors: a *blockedError, or that the
// machine's own addresses cannot be read: then nothing is reached.
func (e *egress) check(addr netip.Addr) error {
	// A zone or an IPv4-mapped form must not hide what the address is.
	plain := addr.WithZone("").Unmap()
	for _, p := range e.allow {
		if p.Contains(plain) {
			return nil
		}
	}
	if !plain.IsGlobalUnicast() || plain.IsPrivate() || addr.Zone() != "" {
		return &blockedError{addr: addr.String()}
	}
	for _, p := range forbidden {
		if p.Contains(plain) {
			return &blockedError{addr: addr.String()}
		}
	}
	if plain.Is6() && !globalV6.Contains(plain) {
		return &blockedError{addr: addr.String()}
	}
	return e.checkOwn(plain)
}

// checkOwn refuses the addresses of this machine's interfaces, public ones included.
func (e *egress) checkOwn(plain netip.Addr) error {
	own, err := e.own()
	if err != nil {
		return fmt.Errorf("%w: %w", errOwnAddresses, err)
	}
	for _, a := range own {
		if at, ok := a.(*net.IPNet); ok && at.IP.Equal(plain.AsSlice()) {
			return &blockedError{addr: plain.String()}
		}
	}
	return nil
}

// control is a net.Dialer's hook: the socket exists, connect has not happened.
//
// Only TCP passes: DNS goes through the resolver, which has a dialer of its own.
func (e *egress) control(_ context.Context, network, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("egress: dialled address %q: %w", address, err)
	}
	if !strings.HasPrefix(network, "tcp") {
		return &blockedError{addr: network + " " + address}
	}
	return e.check(at.Addr())
}

// transport dials through the guard and through nothing else: no proxy of the environment,
// which would dial for us. Its timeouts bound single steps; the activation bounds the
// whole.
//
// It speaks HTTP/1.1 only. A connection of HTTP/2 keeps megabytes of each stream that the
// function does not read, and answers pings and empty frames that no activation pays for,
// also while it is idle. One of HTTP/1.1 reads ahead a few KiB, and ends when something
// arrives between two exchanges.
func (e *egress) transport(resolver *net.Resolver) *http.Transport {
	dialer := &net.Dialer{
		Timeout:        10 * time.Second,
		KeepAlive:      30 * time.Second,
		Resolver:       resolver,
		ControlContext: e.control,
	}
	t := &http.Transport{
		DialContext:            dialer.DialContext,
		Protocols:              new(http.Protocols),
		MaxIdleConns:           64,
		MaxIdleConnsPerHost:    32,
		IdleConnTimeout:        30 * time.Second,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxResponseHeaderBytes: 256 << 10,
		ExpectContinueTimeout:  time.Second,
		DisableCompression:     true, // a body is decompressed in the sandbox of its function
	}
	t.Protocols.SetHTTP1(true)
	return t
}

// hostAllowed matches u against patterns: "host", "*.domain" (its subdomains), "*" (any),
// each with an optional ":port"; without one, the scheme's own port is meant.
//
//	api.example.com          https://api.example.com, http://api.example.com
//	api.example.com:8443     https://api.example.com:8443
//	*.example.com:*          any subdomain, at any port; not example.com itself
//
// Case and a final dot of the host do not matter.
func hostAllowed(patterns []string, u *url.URL) bool {
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	port := u.Port()
	standard := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	if port == "" {
		port = standard
	}
	for _, pattern := range patterns {
		if matchHost(strings.ToLower(pattern), host, port, standard) {
			return true
		}
	}
	return false
}

// matchHost compares one pattern, in lower case, with a host and its port; standard is the
// port of the URL's scheme.
func matchHost(pattern, host, port, standard string) bool {
	name, wantPort := splitPattern(pattern)
	if wantPort == "" {
		wantPort = standard
	}
	if wantPort != "*" && wantPort != port {
		return false
	}
	if domain, ok := strings.CutPrefix(name, "*."); ok {
		return strings.HasSuffix(host, "."+domain) && len(host) > len(domain)+1
	}
	return name == "*" || name == host
}

// splitPattern takes the port off, leaving bare or bracketed IPv6 hosts whole: "[::1]:80"
// is "::1" and "80", "::1" has no port.
func splitPattern(pattern string) (name, port string) {
	if h, p, err := net.SplitHostPort(pattern); err == nil {
		return h, p
	}
	return strings.Trim(pattern, "[]"), ""
}

package hostcall

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strings"

	"github.com/codesous/sous/api"
)

// fetchError maps an error to the code and the reason that the function sees. The text
// shows no more of the host's network than the function named: neither the address of a name,
// nor that of the DNS server or of this host. The capability and the guard come before the timeout, because their errors are certain.
func fetchError(ctx context.Context, err error) error {
	var refused *api.Error
	var denied *deniedError
	var blocked *blockedError
	var timeout net.Error
	switch {
	case errors.As(err, &refused):
		return refused // of outbound.traffic
	case errors.As(err, &denied):
		return api.Errorf(api.CodeRuntimeCapabilityDenied,
			"the redirect is not allowed: declare capabilities %s in the manifest", denied.declare)
	case errors.As(err, &blocked):
		return api.Errorf(api.CodeHostFetchBlocked, "fetch refused: %v", blocked.shown(err))
	case ctx.Err() != nil, errors.As(err, &timeout) && timeout.Timeout():
		return api.Errorf(api.CodeHostFetchTimeout, "fetch took too long")
	}
	return api.Errorf(api.CodeHostFetchFailed, "fetch failed: %s", withoutAddresses(cause(err)))
}

// addressText matches what may be an IP address, with or without a port.
var addressText = regexp.MustCompile(`\[?[0-9A-Fa-f:.]*[:.][0-9A-Fa-f:.]+(%[0-9A-Za-z]+)?(\](:[0-9]+)?)?`)

// withoutAddresses returns the text of an error without IP addresses and their ports. cause
// removes those of the errors that it knows; this is for all others.
func withoutAddresses(text string) string {
	return addressText.ReplaceAllStringFunc(text, func(found string) string {
		plain := strings.TrimRight(found, ":.")
		_, err := netip.ParseAddr(strings.Trim(plain, "[]"))
		if err != nil {
			_, err = netip.ParseAddrPort(plain)
		}
		if err != nil {
			return found
		}
		return "an address" + found[len(plain):]
	})
}

// cause returns the text of an error of an exchange, without the URL and the addresses that the
// packages net and net/http add.
func cause(err error) string {
	var dns *net.DNSError
	var op *net.OpError
	var exchange *url.Error
	switch {
	case errors.Is(err, errOwnAddresses):
		return "the server cannot check the address now"
	case errors.As(err, &dns) && dns.IsNotFound:
		return dns.Name + " has no address"
	case errors.As(err, &dns):
		return "the address of " + dns.Name + " cannot be resolved"
	case errors.As(err, &op):
		return op.Err.Error()
	case errors.As(err, &exchange):
		return exchange.Err.Error()
	}
	return err.Error()
}

// shown returns the refusal as the function sees it, whose exchange failed with err: an address
// that it named by a host name is not shown.
func (e *blockedError) shown(err error) error {
	var exchange *url.Error
	if !errors.As(err, &exchange) {
		return e
	}
	u, parsed := url.Parse(exchange.URL)
	if parsed != nil || net.ParseIP(u.Hostname()) != nil {
		return e
	}
	return &blockedError{name: u.Hostname()}
}

package hostcall

import (
	"context"
	"errors"
	"net"
	"net/url"

	"github.com/codesous/sous/api"
)

// fetchError maps an error to the code and the reason that the function sees. The text
// shows no more of the host's network than the function named: neither the address of a name,
// nor that of the DNS server or of this host. The capability and the guard come before the timeout, because their errors are certain.
func fetchError(ctx context.Context, err error) error {
	var denied *deniedError
	var blocked *blockedError
	var timeout net.Error
	switch {
	case errors.As(err, &denied):
		return api.Errorf(api.CodeRuntimeCapabilityDenied,
			"the redirect is not allowed: declare capabilities %s in the manifest", denied.declare)
	case errors.As(err, &blocked):
		return api.Errorf(api.CodeHostFetchBlocked, "fetch refused: %v", blocked.shown(err))
	case ctx.Err() != nil, errors.As(err, &timeout) && timeout.Timeout():
		return api.Errorf(api.CodeHostFetchTimeout, "fetch took too long")
	}
	return api.Errorf(api.CodeHostFetchFailed, "fetch failed: %v", cause(err))
}

// cause returns the text of an error of an exchange, without the URL and the addresses that the
// packages net and net/http add.
func cause(err error) string {
	var dns *net.DNSError
	var op *net.OpError
	var exchange *url.Error
	switch {
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
